// The messages between a primary and its workers. Workers get key and store address in their environment; the only secret in a message is the private
// key of the certificate, which may change.
import type { SpentByTable } from '../access/limit-exchange.ts';
import type { Handshake, SignatureRefusal } from '../access/used-signatures.ts';
import type { AccountCount } from '../live/shared-counts.ts';
import type { NodeSettings } from '../node/write-path.ts';
import type { MetricValues } from '../observe/metrics.ts';
import type { TlsPair } from '../runtime/tls-files.ts';
import type { Damage } from '../store/store.ts';

/** Tokens, and how many live connections accounts have where that has changed. `sentMs` is of the clock that all processes share. */
export type SpentLimits = SpentByTable & { readonly connections: readonly AccountCount[]; readonly sentMs: number };

/** The variable that a worker finds the key in, where the primary was given it and no file; empty otherwise. */
export const workerKeyVariable = 'SEALPOST_KEY';

/** The variable that a worker finds the store's address in, which may hold a password. */
export const workerStoreVariable = 'SEALPOST_STORE';

/** The variable that a worker finds the addresses of replicas in, which may hold passwords too: a list in JSON. */
export const workerReadStoreVariable = 'SEALPOST_READ_STORE';

export type ToWorker =
  /** Open; `limits` is where the buckets stand, `tls` the certificate in use. */
  | {
      readonly kind: 'start';
      readonly settings: NodeSettings;
      readonly limits: SpentLimits;
      readonly tls: TlsPair | undefined;
    }
  /** Others gave these tokens. */
  | { readonly kind: 'limits'; readonly limits: SpentLimits }
  /** The answer to `useSignatures`, in the same order. */
  | { readonly kind: 'signaturesUsed'; readonly refusals: readonly (SignatureRefusal | undefined)[] }
  /** Reports were stored (D210). */
  | { readonly kind: 'appended' }
  /** Is it there? (D235) */
  | { readonly kind: 'ping' }
  | { readonly kind: 'tellMetrics' }
  /** Use this certificate from now on; the primary has read and checked it. */
  | { readonly kind: 'reloadTls'; readonly tls: TlsPair }
  /** Take no new connections. */
  | { readonly kind: 'stopListening' }
  /** Finish what is under way, and end. */
  | { readonly kind: 'drain' };

export type FromWorker =
  /** The process runs and listens to messages. */
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready'; readonly url: string }
  /** Its event loop runs. */
  | { readonly kind: 'pong' }
  /** It accepts no new connections. */
  | { readonly kind: 'stoppedListening' }
  /** It could not open; it ends. `code` and `syscall` are those of an operating failure. */
  | { readonly kind: 'failed'; readonly message: string; readonly code?: string; readonly syscall?: string }
  /** What came up since the last time: tokens given, lines of the log. */
  | { readonly kind: 'news'; readonly limits: SpentLimits; readonly lines: readonly string[] }
  /** May these handshakes open connections? It asks again after the answer. */
  | { readonly kind: 'useSignatures'; readonly handshakes: readonly Handshake[] }
  /** What is wrong with it now while it still answers, whenever that changes; and whether it learns of nothing new. */
  | { readonly kind: 'degraded'; readonly reasons: readonly string[]; readonly isLeftBehind: boolean }
  /** It came across a damaged record. */
  | { readonly kind: 'damaged'; readonly damage: Damage }
  | { readonly kind: 'metrics'; readonly values: readonly MetricValues[] };
