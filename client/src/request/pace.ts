// Paces many requests to one endpoint: as fast as the account's rate limit allows, which the responses state (D100).

import type { AnswerDetails } from './answer.ts';
import type { Sleep } from './call.ts';

/** Requests per second if the server sends no limit: the specification's limit per account and endpoint. */
const perSecondDefault = 10;
/** Share of the limit that is used: servers count in fixed windows, and network jitter bunches evenly spaced requests. */
const share = 0.9;
/** Longest wait for a limit to reset: a larger value is in another unit. */
const resetMaxMs = 60_000;

export type Pace = {
  /** Whether a response has come, so that the limit is known. */
  readonly isKnown: () => boolean;
  /** Waits until a request may be sent; rejects with the signal's reason if that is aborted first. */
  readonly turn: (signal: AbortSignal) => Promise<void>;
  readonly learn: (rateLimit: AnswerDetails['rateLimit']) => void;
  /** Sends nothing for this long, as the server asks. */
  readonly hold: (ms: number) => void;
};

export const createPace = (sleep: Sleep, monotonicMs: () => number): Pace => {
  let intervalMs = 1_000 / (perSecondDefault * share);
  let [nextMs, heldUntilMs, isKnown] = [0, 0, false];
  const hold = (ms: number): void => {
    heldUntilMs = Math.max(heldUntilMs, monotonicMs() + ms);
  };
  return {
    isKnown: () => isKnown,
    turn: async (signal) => {
      signal.throwIfAborted();
      const turnMs = Math.max(monotonicMs(), nextMs, heldUntilMs);
      nextMs = turnMs + intervalMs;
      // A hold that starts meanwhile delays this request too.
      for (let untilMs = turnMs; ; untilMs = heldUntilMs) {
        const waitMs = untilMs - monotonicMs();
        if (waitMs > 0) await sleep(waitMs, signal);
        if (monotonicMs() >= heldUntilMs) return;
      }
    },
    learn: (rateLimit) => {
      isKnown = true;
      if (rateLimit === undefined) return;
      const { limit, remaining, resetSeconds } = rateLimit;
      if (limit > 0) intervalMs = 1_000 / (limit * share);
      if (remaining === 0) hold(resetSeconds * 1_000 > resetMaxMs ? 1_000 : resetSeconds * 1_000);
    },
    hold,
  };
};
