// The account's rate limits by route, from the headers of each signed response.
import { signal } from '@preact/signals';

/** From the last signed response of a route. `limit`: requests per second. */
export type RateLimit = {
  readonly path: string;
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  /** By this machine's clock. */
  readonly atMs: number;
};

/** Keeps the limits of the last response per route. */
export function createRateLimits() {
  const byRoute = signal<readonly RateLimit[]>([]);
  let newestMs = 0;
  return {
    byRoute,
    receive: (path: string, headers: Headers): void => {
      const limit = readRateLimit(path, headers);
      // A response from the browser's cache has old limits.
      const dateMs = Date.parse(headers.get('Date') ?? '');
      if (limit === undefined || dateMs < newestMs) return;
      newestMs = Number.isNaN(dateMs) ? newestMs : dateMs;
      byRoute.value = [limit, ...byRoute.peek().filter((other) => other.path !== path)];
    },
    forget: (): void => {
      byRoute.value = [];
    },
  };
}

const readRateLimit = (path: string, headers: Headers): RateLimit | undefined => {
  const numberOf = (name: string): number => Number(headers.get(name) ?? Number.NaN);
  const [limit, remaining, resetSeconds] = [
    numberOf('RateLimit-Limit'),
    numberOf('RateLimit-Remaining'),
    numberOf('RateLimit-Reset'),
  ];
  if (!(limit > 0) || Number.isNaN(remaining) || Number.isNaN(resetSeconds)) return undefined;
  return { path, limit, remaining, resetSeconds, atMs: Date.now() };
};

/** Requests left now: a limit refills evenly within `resetSeconds`. */
export function remainingNow({ limit, remaining, resetSeconds, atMs }: RateLimit, nowMs: number): number {
  const filled = resetSeconds <= 0 ? 1 : Math.min(1, Math.max(0, nowMs - atMs) / (resetSeconds * 1_000));
  return Math.floor(remaining + (limit - remaining) * filled);
}

/** The route with the smallest share left. */
export const tightestOf = (limits: readonly RateLimit[], nowMs: number): RateLimit | undefined =>
  limits.toSorted((a, b) => remainingNow(a, nowMs) / a.limit - remainingNow(b, nowMs) / b.limit)[0];
