// Owns usage counts in LMDB: one record per day, account and route, added to by any process. Day first, so that what is too old
// lies at the beginning and goes in one sweep.
import { type Environment, openTable } from './lmdb-environment.ts';
import { decodeRecord, encodeRecord } from './record.ts';
import type { UsageRow, UsageStore } from './store.ts';
import { addDays, firstDayKept } from './usage-days.ts';

/** Old records removed by one addition at most, so that it stays short. */
const removedMax = 10_000;

/** Days compare as texts. There must be one. */
const latest = (days: readonly string[]): string => [...days].sort().at(-1) as string;

type Count = { readonly requests: number };

export const createUsageStore = (environment: Environment): UsageStore => {
  const { root } = environment;
  const table = openTable(environment, 'usage');
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
    add: async (rows) => {
      if (rows.length === 0) return;
      await root.transaction(() => {
        const sums = new Map<string, number>();
        for (const { userId, day, route, requests } of rows) {
          const key = `${day}/${userId}/${route}`;
          sums.set(key, (sums.get(key) ?? requestsAt(key)) + requests);
        }
        // Everything was read by now: what throws, throws before the first change.
        for (const [key, requests] of sums) table.put(Buffer.from(key), encodeRecord({ requests } satisfies Count));
        dropOld(latest(rows.map(({ day }) => day)));
      });
    },
    list: async (userId, fromDay) => {
      root.resetReadTxn();
      const [first, last] = [endDay(false), endDay(true)];
      if (first === undefined || last === undefined) return [];
      const rows: UsageRow[] = [];
      for (let day = latest([fromDay, first]); day <= last; day = addDays(day, 1)) {
        // 0 follows / in ASCII.
        const range = { start: Buffer.from(`${day}/${userId}/`), end: Buffer.from(`${day}/${userId}0`) };
        for (const { key, value } of table.getRange(range)) {
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
