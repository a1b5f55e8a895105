// Paces requests: a fixed rate, slowed down by the rate-limit headers of the deployment if it sends any.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReceivedAnswer } from './exchange.ts';
import { SkipError } from './verdict.ts';

export type Pace = {
  /** Resolves when the next request to this path may be sent. Rejects with a `SkipError` if that takes too long, or longer than the run. */
  readonly turn: (path: string, signal: AbortSignal) => Promise<void>;
  /** Reads the rate-limit headers of an answer. */
  readonly note: (path: string, answer: Pick<ReceivedAnswer, 'status' | 'headers'>) => void;
  /** Why no request may be sent to this path soon; undefined if one may. */
  readonly refusal: (path: string) => string | undefined;
  /** Whether any request was refused. */
  readonly hasRefused: () => boolean;
  /** The rate that applies now, in requests per second. */
  readonly rate: () => number;
};

/** Longest wait for one request, whatever the server's headers say: a run must end. */
const holdMaxMs = 5_000;

/** The key of a hold of all requests. */
const everyPath = '*';

/** `endMs`, by `performance.now`, is the end of the run: no request is sent after it. */
export function createPace(requestsPerSecond: number, endMs = Number.POSITIVE_INFINITY): Pace {
  let leastMs = 1_000 / requestsPerSecond;
  let spreadMs = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  let hasRefused = false;
  const holds = new Map<string, number>();
  const intervalMs = (): number => Math.max(leastMs, spreadMs);
  const heldMs = (path: string): number => Math.max(holds.get(path) ?? 0, holds.get(everyPath) ?? 0);
  const refusal = (path: string): string | undefined => {
    const waitMs = heldMs(path) - performance.now();
    if (waitMs <= holdMaxMs) return undefined;
    hasRefused = true;
    return `The rate limit allows the next request in ${Math.ceil(waitMs / 1_000)} s.`;
  };
  return {
    turn: async (path, signal) => {
      const slotMs = Math.max(lastMs + intervalMs(), performance.now());
      lastMs = slotMs;
      // Another answer may set a hold meanwhile.
      for (;;) {
        const reason = refusal(path);
        if (reason !== undefined) throw new SkipError(reason);
        const [nowMs, dueMs] = [performance.now(), Math.max(slotMs, heldMs(path))];
        if (Math.max(dueMs, nowMs) > endMs) {
          hasRefused = true;
          throw new SkipError('The time limit of the run ends before the next request may be sent.');
        }
        if (dueMs <= nowMs) return;
        await sleep(dueMs - nowMs, undefined, { signal });
      }
    },
    note: (path, { status, headers }) => {
      const [limit, remaining, resetAt] = ['limit', 'remaining', 'reset'].map((name) =>
        toNumber(headers[`ratelimit-${name}`] ?? headers[`x-ratelimit-${name}`]),
      );
      const reset = resetAt === undefined ? undefined : untilReset(resetAt);
      // Another program may use the account too: half of the limit is ours.
      if (limit !== undefined && limit > 0) leastMs = Math.max(leastMs, Math.min(2_000 / limit, holdMaxMs));
      // The limit may be one per minute or hour: what remains is spread over the time until it is reset.
      if (remaining !== undefined && reset !== undefined)
        spreadMs = Math.min((reset * 1_000) / Math.max(1, remaining / 2), holdMaxMs);
      const retryAfter = status === 429 ? (toNumber(headers['retry-after']) ?? 1) : 0;
      const wait = Math.max(retryAfter, remaining !== undefined && remaining < 1 ? (reset ?? 1) : 0);
      // A limit per second may count by path; one of a longer time is taken to count all requests.
      if (wait > 0) holds.set(wait * 1_000 > holdMaxMs ? everyPath : path, performance.now() + wait * 1_000);
    },
    refusal,
    hasRefused: () => hasRefused,
    rate: () => 1_000 / intervalMs(),
  };
}

/** Some deployments send the time of the reset instead of the seconds until then. */
const untilReset = (reset: number): number => (reset < 1e9 ? reset : Math.max(0, reset - Date.now() / 1_000));

const toNumber = (header: string | string[] | undefined): number | undefined => {
  const value = typeof header === 'string' && header.trim() !== '' ? Number(header) : Number.NaN;
  return Number.isFinite(value) && value >= 0 ? value : undefined;
};
