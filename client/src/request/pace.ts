// Paces many requests to one endpoint: as fast as the account's rate limit allows, which the responses state (D100).
import { retryAfterMsOf } from '../backoff.ts';
import { SealpostError } from '../errors.ts';
import type { AnswerDetails } from './answer.ts';
import type { Sleep } from './call.ts';
import { pathOf } from './paths.ts';
import type { Requester } from './requester.ts';

/** Requests per second if the server sends no limit: the specification's limit per account and endpoint. */
const perSecondDefault = 10;
/** Share of the limit that is used: servers count in fixed windows, and network jitter bunches evenly spaced requests. */
const share = 0.9;
/** Longest wait for a limit to reset: a larger value is in another unit. */
const resetMaxMs = 60_000;

/** Shortest wait after a 429. */
const holdMinMs = 1_000;

/**
 * GET within the rate limit of each path. Waits and retries on 429; the `refusalsMax`-th in a row fails. Rejects with the signal's reason if that is aborted
 * during a wait.
 */
export function createPacedGet(
  get: Requester['get'],
  sleep: Sleep,
  monotonicMs: () => number,
  refusalsMax = Number.POSITIVE_INFINITY,
): Requester['get'] {
  const paces = new Map<string, ReturnType<typeof createPace>>();
  return async (target, options = {}) => {
    const path = pathOf(target);
    const pace = paces.get(path) ?? createPace(sleep, monotonicMs);
    paces.set(path, pace);
    const { signal = new AbortController().signal } = options;
    for (let refusals = 1; ; refusals += 1) {
      await pace.slot(signal);
      try {
        const answer = await get<never>(target, options); // passed on unchanged
        pace.learn(answer.details.rateLimit);
        return answer;
      } catch (error) {
        if (!(error instanceof SealpostError) || error.status !== 429 || refusals >= refusalsMax) throw error;
        pace.hold(Math.max(holdMinMs, retryAfterMsOf(error)));
      }
    }
  };
}

const createPace = (sleep: Sleep, monotonicMs: () => number) => {
  let intervalMs = 1_000 / (perSecondDefault * share);
  let [nextMs, pausedUntilMs] = [0, 0];
  const hold = (ms: number): void => {
    pausedUntilMs = Math.max(pausedUntilMs, monotonicMs() + ms);
  };
  return {
    /** Waits until a request may be sent. */
    slot: async (signal: AbortSignal): Promise<void> => {
      signal.throwIfAborted();
      const slotMs = Math.max(monotonicMs(), nextMs, pausedUntilMs);
      nextMs = slotMs + intervalMs;
      // A hold that starts meanwhile delays this request too.
      for (let untilMs = slotMs; ; untilMs = pausedUntilMs) {
        const waitMs = untilMs - monotonicMs();
        if (waitMs > 0) await sleep(waitMs, signal);
        if (monotonicMs() >= pausedUntilMs) return;
      }
    },
    learn: (rateLimit: AnswerDetails['rateLimit']): void => {
      if (rateLimit === undefined) return;
      const { limit, remaining, resetSeconds } = rateLimit;
      if (limit > 0) intervalMs = 1_000 / (limit * share);
      if (remaining === 0) hold(resetSeconds * 1_000 > resetMaxMs ? 1_000 : resetSeconds * 1_000);
    },
    /** Sends nothing for this long. */
    hold,
  };
};
