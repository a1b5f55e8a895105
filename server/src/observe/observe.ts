// The one union of everything observable. Parts emit observations; the log and the metrics are the two listeners.
import type { ErrorCode } from '@sealpost/protocol';
import type { SecretNotOpened } from '../access/callers.ts';
import type { RequestEvent } from '../http/pipeline.ts';
import type { ConnectionDropped } from '../http/server.ts';
import type { IngestEvent } from '../ingest/ingest.ts';
import type { LiveEvent } from '../live/connections.ts';
import type { AdminReloadEvent } from '../store/admin-snapshot.ts';
import type { StoreEvent } from '../store/store-event.ts';

/** What becomes of the process. `addresses` are those it listens on. */
export type LifecycleObservation =
  | { readonly kind: 'started'; readonly version: string; readonly addresses: Readonly<Record<string, string>> }
  | { readonly kind: 'draining'; readonly reason: string }
  | { readonly kind: 'stopped'; readonly clean: boolean }
  /** Settings whose files were read again; none where nothing can be. */
  | { readonly kind: 'reloaded'; readonly settings: readonly string[]; readonly certificate?: ReloadedCertificate };

/** Whom the certificate now in use is for, and until when, ISO 8601. */
export type ReloadedCertificate = { readonly names: string; readonly validTo: string };

/** Of everything below that is a complaint: labels of a metric, so there are few. */
export const warningCodes = [
  'admin_reload_failed',
  'explorer_not_built',
  'few_descriptors',
  'ingest_token_rejected',
  'keys_not_announced',
  'limits_not_shared',
  'listener_failed',
  'live_not_read',
  'log_lines_dropped',
  'no_descriptors',
  'ops_failed',
  'ops_host_rejected',
  'ops_listener_failed',
  'retention_waits',
  'tls_reload_failed',
  'trim_failed',
  'usage_not_stored',
  'worker_ended',
  'worker_silent',
] as const;
export type WarningCode = (typeof warningCodes)[number];

/** For the operator. */
export type Complaint =
  | AdminReloadEvent
  | {
      readonly kind: 'warning';
      readonly code: WarningCode;
      readonly message: string;
      readonly error?: unknown;
      readonly address?: string;
    };

/** Everything observable. */
export type Observation =
  | RequestEvent
  | IngestEvent
  | StoreEvent
  | LiveEvent
  | LifecycleObservation
  | Complaint
  | ConnectionDropped
  | SecretNotOpened;

/** Takes observations as they come; must not wait. */
export type Listener = (observation: Observation) => void;

/** Which other counters a request increments, by the code of its answer. A code may be in several; the request is reported once. */
export const countedCodes = {
  authFailure: [
    'missing_header',
    'malformed_header',
    'repeated_header',
    'clock_skew',
    'unauthorized',
    'stream_not_accessible',
    'signature_used',
    'too_many_failures',
  ],
  rateLimited: ['rate_limited', 'too_many_failures', 'too_many_sockets'],
  shed: ['overloaded', 'draining'],
} as const satisfies Record<string, readonly ErrorCode[]>;

/** Passes each observation to every listener. Never throws: when a listener fails, the others get a warning. */
export function createObserver(listeners: readonly Listener[]): Listener {
  const tryToTell = (listener: Listener, observation: Observation): { readonly error: unknown } | undefined => {
    try {
      listener(observation);
      return undefined;
    } catch (error) {
      return { error };
    }
  };
  return (observation) => {
    for (const listener of listeners) {
      const failure = tryToTell(listener, observation);
      if (failure === undefined) continue;
      const message = `A listener failed at an observation of the kind ${observation.kind}.`;
      // If this fails too, there is nowhere left to report it.
      for (const other of listeners)
        if (other !== listener) tryToTell(other, { kind: 'warning', code: 'listener_failed', message, ...failure });
    }
  };
}
