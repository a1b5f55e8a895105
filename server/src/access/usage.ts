// Counts requests per account, route and UTC day, and records when each secret was last used (D109): in memory, added to the store every few seconds
// and at shutdown. The counts of several processes add up in the store.

import { dayMs } from '@sealpost/protocol';
import { createFailureState } from '../runtime/failure-state.ts';
import type { SecretUse, UsageRow, UsageStore } from '../store/store.ts';

const minuteMs = 60_000;

/** The UTC day of a timestamp, or a day so many days earlier. */
export const usageDay = (ms: number, daysBefore = 0): string =>
  new Date(ms - daysBefore * dayMs).toISOString().slice(0, 10);

/** The fields of an observation that are counted. Requests without a caller were not admitted and do not count. */
export type CountedObservation = {
  readonly kind: string;
  readonly userId?: string | null;
  readonly route?: string | null;
  readonly code?: string | null;
};

export type UsageCounterOptions = {
  readonly usage: UsageStore;
  readonly nowMs: () => number;
  /** Hears of a trouble once, not at every attempt: counts that cannot be stored, or more than can be held. */
  readonly onTrouble: (message: string, error?: unknown) => void;
  /** The secrets that open connections were opened with: in use for as long as they are open. Asked once a minute. */
  readonly secretsInUse?: () => Iterable<{ readonly userId: string; readonly secretId: string | undefined }>;
  readonly flushEveryMs?: number;
  /** Accounts times routes and days held at once; requests of others are not counted until there is room. */
  readonly countsMax?: number;
};

export type UsageCounter = {
  readonly observe: (observation: CountedObservation) => void;
  /** Notes that a secret signed something. Costs two look-ups in memory. */
  readonly noteSecret: (userId: string, secretId: string, nowMs: number) => void;
  /** Adds what was counted to the store; resolves also when that failed, and then keeps the counts. */
  readonly flush: () => Promise<void>;
  /** Flushes a last time and counts no more. */
  readonly stop: () => Promise<void>;
};

const flushEveryMsDefault = 5_000;
const countsMaxDefault = 100_000;

/** Starts counting. Answers over a limit do not count: they gave nothing. */
export function createUsageCounter(options: UsageCounterOptions): UsageCounter {
  const { usage, nowMs, onTrouble, flushEveryMs = flushEveryMsDefault } = options;
  const counts = createCounts(options.countsMax ?? countsMaxDefault);
  const uses = createSecretUses(options.countsMax ?? countsMaxDefault);
  const notStored = createFailureState<Error>({
    began: (error) => onTrouble('The usage of accounts could not be stored. It is kept in memory and retried.', error),
  });
  const tooMany = createFailureState<string>({ began: (message) => onTrouble(message) });
  let isTooMany = false; // since the last flush
  let flushed = Promise.resolve();
  const store = async (): Promise<void> => {
    if (uses.isNewMinute(nowMs()))
      for (const { userId, secretId } of options.secretsInUse?.() ?? [])
        if (secretId !== undefined) uses.note(userId, secretId, nowMs());
    if (!isTooMany) tooMany.worked();
    isTooMany = false;
    const rows = counts.take();
    const used = uses.take();
    if (rows.length === 0 && used.length === 0) return;
    try {
      await usage.add(rows, used, nowMs());
      notStored.worked();
    } catch (error) {
      counts.putBack(rows);
      uses.putBack(used);
      notStored.failed(error as Error); // of the store
    }
  };
  // One at a time: a caller that waits for a flush also waits for the one before.
  const flush = (): Promise<void> => {
    flushed = flushed.then(store);
    return flushed;
  };
  const timer = setInterval(() => void flush(), flushEveryMs).unref();
  return {
    observe: ({ kind, userId, route, code }) => {
      if (kind !== 'request' || userId == null || route == null || code === 'rate_limited') return;
      if (counts.add(userId, route, Math.floor(nowMs() / dayMs))) return;
      isTooMany = true;
      tooMany.failed('Too many accounts to count. Some requests are missing from usage.');
    },
    noteSecret: uses.note,
    flush,
    stop: async () => {
      clearInterval(timer);
      await flush();
    },
  };
}

/** Counts by day, account and route; nested, so that counting a request makes no text. */
const createCounts = (max: number) => {
  let byDay = new Map<number, Map<string, Map<string, number>>>();
  let size = 0;
  const add = (userId: string, route: string, day: number, requests = 1): boolean => {
    const byUser = byDay.get(day) ?? new Map<string, Map<string, number>>();
    const byRoute = byUser.get(userId) ?? new Map<string, number>();
    const known = byRoute.get(route);
    if (known === undefined) {
      if (size >= max) return false;
      size += 1;
      byDay.set(day, byUser);
      byUser.set(userId, byRoute);
    }
    byRoute.set(route, (known ?? 0) + requests);
    return true;
  };
  return {
    add,
    /** All counts as rows; none are left. */
    take: (): readonly UsageRow[] => {
      const rows: UsageRow[] = [];
      for (const [day, byUser] of byDay)
        for (const [userId, byRoute] of byUser)
          for (const [route, requests] of byRoute) rows.push({ userId, day: usageDay(day * dayMs), route, requests });
      byDay = new Map();
      size = 0;
      return rows;
    },
    putBack: (rows: readonly UsageRow[]): void => {
      for (const { userId, day, route, requests } of rows) add(userId, route, Date.parse(day) / dayMs, requests);
    },
  };
};

/** The last minute in which each secret was used. A secret is stored once a minute at most, however often it signs. */
const createSecretUses = (max: number) => {
  const minutes = new Map<string, Map<string, number>>();
  let size = 0;
  let waiting = new Map<string, SecretUse>();
  let lastMinute = -1;
  return {
    note: (userId: string, secretId: string, nowMs: number): void => {
      const minute = Math.floor(nowMs / minuteMs);
      const ofUser = minutes.get(userId) ?? new Map<string, number>();
      const known = ofUser.get(secretId);
      if (known === minute) return;
      if (known === undefined) {
        if (size >= max) return;
        size += 1;
        minutes.set(userId, ofUser);
      }
      ofUser.set(secretId, minute);
      waiting.set(`${userId}/${secretId}`, { userId, secretId, usedAtMs: minute * minuteMs });
    },
    /** Is this the first call in its minute? */
    isNewMinute: (nowMs: number): boolean => {
      const minute = Math.floor(nowMs / minuteMs);
      if (minute === lastMinute) return false;
      lastMinute = minute;
      return true;
    },
    /** Those noted since the last call; none are left. */
    take: (): readonly SecretUse[] => {
      const taken = [...waiting.values()];
      waiting = new Map();
      return taken;
    },
    /** What could not be stored; what was noted since is later, and stays. */
    putBack: (uses: readonly SecretUse[]): void => {
      for (const use of uses) {
        const key = `${use.userId}/${use.secretId}`;
        if (!waiting.has(key)) waiting.set(key, use);
      }
    },
  };
};
