// Paces requests: a fixed rate, slowed down by the rate-limit headers of the deployment if it sends any.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReceivedAnswer } from './exchange.ts';

export type Pace = {
  /** Resolves when the next request to this path may be sent. */
  readonly turn: (path: string, signal: AbortSignal) => Promise<void>;
  /** Reads the rate-limit headers of an answer. */
  readonly note: (path: string, answer: Pick<ReceivedAnswer, 'status' | 'headers'>) => void;
  /** The rate that applies now, in requests per second. */
  readonly rate: () => number;
};

/** Longest wait that a header can ask for: a run must end. */
const holdMaxMs = 5_000;

export const createPace = (requestsPerSecond: number): Pace => {
  let intervalMs = 1_000 / requestsPerSecond;
  let nextMs = performance.now();
  const holds = new Map<string, number>();
  return {
    turn: async (path, signal) => {
      const nowMs = performance.now();
      const atMs = Math.max(nextMs, holds.get(path) ?? 0, nowMs);
      nextMs = Math.max(nextMs, nowMs) + intervalMs;
      if (atMs > nowMs) await sleep(atMs - nowMs, undefined, { signal });
    },
    note: (path, { status, headers }) => {
      const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
        toNumber(headers[`ratelimit-${name}`] ?? headers[`x-ratelimit-${name}`]),
      );
      // Another program may use the account too: half of the limit is ours.
      if (limit !== undefined && limit > 0) intervalMs = Math.max(intervalMs, 2_000 / limit);
      const retryAfter = status === 429 ? (toNumber(headers['retry-after']) ?? 1) : 0;
      const wait = Math.max(retryAfter, remaining !== undefined && remaining < 1 ? (reset ?? 1) : 0);
      if (wait > 0) holds.set(path, performance.now() + Math.min(wait * 1_000, holdMaxMs));
    },
    rate: () => 1_000 / intervalMs,
  };
};

const toNumber = (header: string | string[] | undefined): number | undefined => {
  const value = typeof header === 'string' && header.trim() !== '' ? Number(header) : Number.NaN;
  return Number.isFinite(value) && value >= 0 ? value : undefined;
};
