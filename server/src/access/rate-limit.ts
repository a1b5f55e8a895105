// Rate limits for accounts and addresses: token buckets that refill continuously, in tables of bounded size (D23). They use monotonic
// milliseconds, so a change of the wall clock neither grants nor takes requests.

/** What a bucket says: the numbers of the RateLimit headers, and how long to wait when it refuses. */
export type RateDecision = {
  readonly allowed: boolean;
  readonly limit: number;
  /** Whole tokens left. */
  readonly remaining: number;
  /** Seconds until the bucket is full, rounded up. */
  readonly resetSeconds: number;
  /** Seconds until the tokens that were asked for are there, at least 1. */
  readonly retryAfterSeconds: number;
};

/** Tokens that were taken from a key's bucket of `perSecond` tokens. */
export type SpentTokens = readonly [key: string, perSecond: number, tokens: number];

type Bucket = { tokens: number; atMs: number; perSecond: number; touchedMs: number };

export type RateLimiter = {
  /**
   * Takes tokens, one unless told otherwise, from a key's bucket of `perSecond` tokens. 0 means no limit. What costs more than the bucket holds
   * is allowed when it is full, and leaves a debt.
   */
  readonly take: (key: string, perSecond: number, nowMs: number, cost?: number) => RateDecision;
  /** Takes tokens that were spent elsewhere on the same key; may leave the bucket in debt, which is repaid before more are given. */
  readonly spend: (key: string, perSecond: number, tokens: number, nowMs: number) => void;
  /** Where the bucket stands, without taking from it. */
  readonly state: (key: string, perSecond: number, nowMs: number) => RateDecision;
  /** What every bucket lacks to be full; those that lack nothing are left out. */
  readonly lacking: (nowMs: number) => readonly SpentTokens[];
};

/** Accounts and addresses whose buckets a process keeps. */
export const bucketsMax = { accounts: 100_000, addresses: 50_000 } as const;

/**
 * Each of several processes may grant a whole bucket before it learns of the others: with 64 of them that is 63 seconds of debt. A lower
 * bound would let the difference through for nothing.
 */
const debtSecondsMax = 64;

const unlimited: RateDecision = { allowed: true, limit: 0, remaining: 0, resetSeconds: 0, retryAfterSeconds: 1 };

/** Keys touched within so long of each other keep their order: keeping it to the request would cost as much as the bucket. */
const orderMs = 1_000;

/** Makes a limiter for at most `keysMax` keys; beyond that the key untouched for longest, to the second, is dropped, which only favors it. */
export function createRateLimiter(keysMax: number): RateLimiter {
  const buckets = new Map<string, Bucket>();
  const refill = (key: string, perSecond: number, nowMs: number): Bucket => {
    const known = buckets.get(key);
    if (known === undefined) return { tokens: perSecond, atMs: nowMs, perSecond, touchedMs: Number.NEGATIVE_INFINITY };
    known.tokens = Math.min(perSecond, known.tokens + ((nowMs - known.atMs) * perSecond) / 1_000);
    known.atMs = nowMs;
    known.perSecond = perSecond;
    return known;
  };
  // A Map keeps the order of insertion: taking a key out and putting it back makes the first one the least recent.
  const touch = (key: string, bucket: Bucket): void => {
    if (bucket.atMs - bucket.touchedMs < orderMs) return;
    bucket.touchedMs = bucket.atMs;
    buckets.delete(key);
    buckets.set(key, bucket);
    if (buckets.size <= keysMax) return;
    buckets.delete(buckets.keys().next().value as string); // there is one, since more are there than may be
  };
  return {
    take: (key, perSecond, nowMs, cost = 1) => {
      if (perSecond === 0) return unlimited;
      const bucket = refill(key, perSecond, nowMs);
      const needed = Math.max(1, Math.min(cost, perSecond));
      // Sums of refills carry rounding errors of about 1e-13 tokens, which must not cost a request.
      const allowed = bucket.tokens >= needed - 1e-9;
      if (allowed) bucket.tokens -= cost;
      touch(key, bucket);
      return decide(allowed, bucket.tokens, perSecond, needed);
    },
    spend: (key, perSecond, tokens, nowMs) => {
      const bucket = refill(key, perSecond, nowMs);
      bucket.tokens = Math.max(-perSecond * debtSecondsMax, bucket.tokens - tokens);
      touch(key, bucket);
    },
    state: (key, perSecond, nowMs) => {
      if (perSecond === 0) return unlimited;
      const { tokens } = refill(key, perSecond, nowMs);
      return decide(tokens >= 1 - 1e-9, tokens, perSecond, 1);
    },
    lacking: (nowMs) =>
      [...buckets].flatMap(([key, { perSecond }]): readonly SpentTokens[] => {
        const lack = perSecond - refill(key, perSecond, nowMs).tokens;
        return lack > 1e-9 ? [[key, perSecond, lack]] : [];
      }),
  };
}

const decide = (allowed: boolean, tokens: number, perSecond: number, needed: number): RateDecision => ({
  allowed,
  limit: perSecond,
  remaining: Math.max(0, Math.floor(tokens + 1e-9)),
  resetSeconds: Math.max(0, Math.ceil((perSecond - tokens) / perSecond - 1e-9)),
  retryAfterSeconds: Math.max(1, Math.ceil((needed - tokens) / perSecond - 1e-9)),
});
