// Remembers the signatures that opened live connections, for as long as they are valid: a captured handshake opens no further connection (D250).
import type { ErrorCode } from '@sealpost/protocol';

/** A handshake whose signature was verified. */
export type Handshake = {
  readonly userId: string;
  /** Lower case. */
  readonly signature: string;
  /** The configured origin that it names. */
  readonly origin: string | undefined;
};

/** Why a handshake may not open a connection: it was used, or the table is full for this account or as a whole. */
export type SignatureRefusal = Extract<ErrorCode, 'signature_used' | 'too_many_sockets' | 'overloaded'>;

/** Uses up the signature of a handshake, by this process or by the one that all workers ask. */
export type UseSignature = (
  handshake: Handshake,
) => SignatureRefusal | undefined | Promise<SignatureRefusal | undefined>;

/** How many handshakes an account may sign beyond the connections that it may have, while their signatures are valid. */
const furtherPerAccount = 1_000;
/** About 20 MB. */
const handshakesMax = 65_536;
/** Signatures are kept for longer than they are valid, because the clock that they are kept by and the one that they are checked by may drift apart. */
const marginMs = 1_000;

type Used = { readonly userId: string; readonly origins: (string | undefined)[]; readonly untilMs: number };

export function createUsedSignatures(
  { skewMaxMs, socketsPerAccount }: { readonly skewMaxMs: number; readonly socketsPerAccount: number },
  monotonicMs: () => number,
) {
  /** In the order in which they expire: a signature is valid for twice the tolerance at most, if it was signed by a clock that is ahead. */
  const used = new Map<string, Used>();
  const perAccount = new Map<string, number>();
  const forgetExpired = (nowMs: number): void => {
    for (const [signature, { userId, untilMs }] of used) {
      if (nowMs < untilMs) return;
      used.delete(signature);
      const left = (perAccount.get(userId) ?? 0) - 1;
      if (left > 0) perAccount.set(userId, left);
      else perAccount.delete(userId);
    }
  };
  return ({ userId, signature, origin }: Handshake): SignatureRefusal | undefined => {
    const nowMs = monotonicMs();
    forgetExpired(nowMs);
    const known = used.get(signature);
    if (known !== undefined) {
      // Clients open connections to several origins at once, in one millisecond with one signature. One without an origin is the only one.
      if (origin === undefined || known.origins.includes(origin) || known.origins.includes(undefined))
        return 'signature_used';
      known.origins.push(origin);
      return undefined;
    }
    const count = perAccount.get(userId) ?? 0;
    if (count >= furtherPerAccount + socketsPerAccount) return 'too_many_sockets';
    if (used.size >= handshakesMax) return 'overloaded';
    used.set(signature, { userId, origins: [origin], untilMs: nowMs + 2 * skewMaxMs + marginMs });
    perAccount.set(userId, count + 1);
    return undefined;
  };
}

type Asked = {
  readonly handshake: Handshake;
  readonly resolve: (refusal: SignatureRefusal | undefined) => void;
};

/**
 * A worker's side: it asks the primary, which remembers the signatures of all workers (D250). One question at a time: handshakes that come meanwhile are in
 * the next one.
 */
export function createAskedSignatures(ask: (handshakes: readonly Handshake[]) => void) {
  let waiting: Asked[] = [];
  let asked: readonly Asked[] = [];
  const askNext = (): void => {
    if (asked.length > 0 || waiting.length === 0) return;
    asked = waiting;
    waiting = [];
    ask(asked.map(({ handshake }) => handshake));
  };
  return {
    use: (handshake: Handshake): Promise<SignatureRefusal | undefined> =>
      new Promise((resolve) => {
        waiting.push({ handshake, resolve });
        askNext();
      }),
    /** Takes the answer to the last question. */
    receive: (refusals: readonly (SignatureRefusal | undefined)[]): void => {
      const answered = asked;
      asked = [];
      // Each in a turn of its own: a connection is counted before the next handshake of its account is.
      for (const [i, { resolve }] of answered.entries()) setImmediate(resolve, refusals[i]);
      askNext();
    },
  };
}
