// The pace of many requests to one endpoint: as fast as the account's rate limit allows, known from the answers, never faster (D100).

import type { AnswerDetails } from './answer.ts';
import type { Sleep } from './call.ts';

/** Requests per second where the server does not tell: what the specification grants an account at each endpoint. */
const perSecondDefault = 10;
/** Part of the limit that is used: servers count by windows of their own, and clocks and networks shift what was spaced evenly. */
const share = 0.9;
/** No longer than this is waited for a limit to be reset: a server that names a later moment counts in other units. */
const resetMaxMs = 60_000;

export type Pace = {
  /** Has an answer come, so that the limit is known? */
  readonly isKnown: () => boolean;
  /** Waits for a turn; rejects with the signal's reason when that is aborted before. */
  readonly turn: (signal: AbortSignal) => Promise<void>;
  readonly learn: (rateLimit: AnswerDetails['rateLimit']) => void;
  /** The server asks to wait: nobody gets a turn before. */
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
      // Held meanwhile, a turn that was given waits too.
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
