// Shares one rate limit between processes (D63): each grants tokens at once from its own buckets and learns every few milliseconds what the
// others granted. Tokens that were granted twice meanwhile become a debt in every bucket, so that the limit holds over time.
import { bucketsMax, createRateLimiter, type RateLimiter, type SpentTokens } from './rate-limit.ts';

/** A limiter that remembers what it gave since it was last asked. */
export type SharedLimiter = RateLimiter & {
  /** What was given since the last call, one row for each key. */
  readonly drain: () => readonly SpentTokens[];
  /** Takes what other processes gave. */
  readonly receive: (spent: readonly SpentTokens[], nowMs: number) => void;
};

/** Counts tokens by key until they are collected; beyond `keysMax` keys they are not counted, which only favors their owners. */
const createTally = (keysMax: number) => {
  let rows = new Map<string, { perSecond: number; tokens: number }>();
  return {
    add: (key: string, perSecond: number, tokens: number): void => {
      const known = rows.get(key);
      if (known !== undefined) {
        known.perSecond = perSecond;
        known.tokens += tokens;
      } else if (rows.size < keysMax) rows.set(key, { perSecond, tokens });
    },
    drain: (): readonly SpentTokens[] => {
      const drained = [...rows].map(([key, { perSecond, tokens }]): SpentTokens => [key, perSecond, tokens]);
      if (drained.length > 0) rows = new Map();
      return drained;
    },
  };
};

const spendAll = (limiter: RateLimiter, spent: readonly SpentTokens[], nowMs: number): void => {
  for (const [key, perSecond, tokens] of spent) limiter.spend(key, perSecond, tokens, nowMs);
};

/** A process's own share in a limit. */
export function createSharedLimiter(keysMax: number): SharedLimiter {
  const limiter = createRateLimiter(keysMax);
  const tally = createTally(keysMax);
  return {
    ...limiter,
    take: (key, perSecond, nowMs, cost = 1) => {
      const decision = limiter.take(key, perSecond, nowMs, cost);
      if (decision.allowed && perSecond !== 0) tally.add(key, perSecond, cost);
      return decision;
    },
    drain: tally.drain,
    receive: (spent, nowMs) => spendAll(limiter, spent, nowMs),
  };
}

/** Tokens by the table of buckets that they belong to. */
export type SpentByTable = { readonly accounts: readonly SpentTokens[]; readonly addresses: readonly SpentTokens[] };

/** A process's own share in the limits of accounts and of addresses. */
export function createSharedLimiters() {
  const accounts = createSharedLimiter(bucketsMax.accounts);
  const addresses = createSharedLimiter(bucketsMax.addresses);
  return {
    limiters: { accounts, addresses },
    /** What was given since the last call. */
    drain: (): SpentByTable => ({ accounts: accounts.drain(), addresses: addresses.drain() }),
    /** Takes what others gave. */
    receive: (spent: SpentByTable): void => {
      accounts.receive(spent.accounts, performance.now());
      addresses.receive(spent.addresses, performance.now());
    },
  };
}

/** Passes counts between processes: what one reports is kept for each of the others until they collect it. */
export type LimitExchange = {
  /** Adds a process; returns the state of the buckets, for it to start with. */
  readonly join: (member: number, nowMs: number) => readonly SpentTokens[];
  readonly leave: (member: number) => void;
  readonly tell: (member: number, spent: readonly SpentTokens[], nowMs: number) => void;
  /** What the others reported since the last call. */
  readonly collect: (member: number) => readonly SpentTokens[];
};

export function createLimitExchange(keysMax: number): LimitExchange {
  const whole = createRateLimiter(keysMax); // a process that takes an ended one's place must not begin with full buckets
  const outboxes = new Map<number, ReturnType<typeof createTally>>();
  return {
    join: (member, nowMs) => {
      outboxes.set(member, createTally(keysMax));
      return whole.lacking(nowMs);
    },
    leave: (member) => void outboxes.delete(member),
    tell: (member, spent, nowMs) => {
      spendAll(whole, spent, nowMs);
      for (const [other, outbox] of outboxes) {
        if (other === member) continue;
        for (const [key, perSecond, tokens] of spent) outbox.add(key, perSecond, tokens);
      }
    },
    collect: (member) => outboxes.get(member)?.drain() ?? [],
  };
}
