// Owns usage in LMDB, added to by any process: counts, one record per day, account and route, and the last use of each secret. Days come first,
// so that what is too old lies at the beginning and goes in one sweep.
import { type Environment, openTable } from './lmdb-environment.ts';
import { decodeRecord, encodeRecord } from './record.ts';
import type { SecretUse, UsageRow, UsageStore } from './store.ts';
import { addDays, firstDayKept } from './usage-days.ts';

/** Old records removed by one addition at most, so that it stays short. */
const removedMax = 10_000;

/** Days compare as texts. There must be one. */
const latest = (days: readonly string[]): string => [...days].sort().at(-1) as string;

type Count = { readonly requests: number };
type LastUse = Pick<SecretUse, 'usedAtMs'>;

/** The keys below a path; 0 follows / in ASCII. */
const below = (path: string) => ({ start: Buffer.from(`${path}/`), end: Buffer.from(`${path}0`) });

/** The last use of each secret, by account and secret. */
const createSecretUses = (environment: Environment) => {
  const table = openTable(environment, 'secretUses');
  const usedAt = (key: string): number => {
    const known = table.get(Buffer.from(key));
    return known === undefined ? 0 : decodeRecord<LastUse>(known, `use of secret ${key}`).usedAtMs;
  };
  return {
    /** Keys with the latest of these uses and of what is stored. */
    latestOf: (uses: readonly SecretUse[]): ReadonlyMap<string, number> => {
      const latestUses = new Map<string, number>();
      for (const { userId, secretId, usedAtMs } of uses) {
        const key = `${userId}/${secretId}`;
        latestUses.set(key, Math.max(latestUses.get(key) ?? usedAt(key), usedAtMs));
      }
      return latestUses;
    },
    put: (latestUses: ReadonlyMap<string, number>): void => {
      for (const [key, usedAtMs] of latestUses)
        table.put(Buffer.from(key), encodeRecord({ usedAtMs } satisfies LastUse));
    },
    list: (userId: string): readonly SecretUse[] =>
      [...table.getRange(below(userId))].map(({ key, value }) => {
        const name = key.toString();
        const { usedAtMs } = decodeRecord<LastUse>(value, `use of secret ${name}`);
        return { userId, secretId: name.slice(userId.length + 1), usedAtMs };
      }),
  };
};

export const createUsageStore = (environment: Environment): UsageStore => {
  const { root } = environment;
  const table = openTable(environment, 'usage');
  const secretUses = createSecretUses(environment);
  const dayOf = (key: Buffer): string => key.subarray(0, 10).toString();
  const endDay = (reverse: boolean): string | undefined => {
    for (const key of table.getKeys({ reverse, limit: 1 })) return dayOf(key);
    return undefined;
  };
  const requestsAt = (key: string): number => {
    const known = table.get(Buffer.from(key));
    return known === undefined ? 0 : decodeRecord<Count>(known, `usage ${key}`).requests;
  };
  const dropOld = (newestDay: string): void => {
    const oldest = firstDayKept(newestDay);
    for (const key of [...table.getKeys({ end: Buffer.from(oldest), limit: removedMax })]) table.remove(key);
  };
  return {
    // Not the synchronous kind: it runs beside requests, which must not wait for the disk or for another process.
    add: async (rows, uses = []) => {
      if (rows.length === 0 && uses.length === 0) return;
      await root.transaction(() => {
        const sums = new Map<string, number>();
        for (const { userId, day, route, requests } of rows) {
          const key = `${day}/${userId}/${route}`;
          sums.set(key, (sums.get(key) ?? requestsAt(key)) + requests);
        }
        const latestUses = secretUses.latestOf(uses);
        // Everything was read by now: what throws, throws before the first change.
        for (const [key, requests] of sums) table.put(Buffer.from(key), encodeRecord({ requests } satisfies Count));
        secretUses.put(latestUses);
        if (rows.length > 0) dropOld(latest(rows.map(({ day }) => day)));
      });
    },
    lastUses: async (userId) => {
      root.resetReadTxn();
      return secretUses.list(userId);
    },
    list: async (userId, fromDay) => {
      root.resetReadTxn();
      const [first, last] = [endDay(false), endDay(true)];
      if (first === undefined || last === undefined) return [];
      const rows: UsageRow[] = [];
      for (let day = latest([fromDay, first]); day <= last; day = addDays(day, 1)) {
        for (const { key, value } of table.getRange(below(`${day}/${userId}`))) {
          const name = key.toString();
          rows.push({
            userId,
            day,
            route: name.slice(day.length + userId.length + 2),
            ...decodeRecord<Count>(value, `usage ${name}`),
          });
        }
      }
      return rows;
    },
  };
};
