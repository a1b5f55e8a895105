// Usage in LMDB, written by any process in its own thread: counts per day, account and route, and the last use of each secret. Days come first in the key, so
// that old ones are removed in one sweep. A corrupt record is noted and starts again at 0.

import { addDays, dayOf, firstDayKept } from '../bounds.ts';
import type { DamageLog } from '../damage.ts';
import { decodeKeyedRecord, encodeKeyedRecord } from '../format/record.ts';
import type { SecretUse, UsageRow, UsageStore } from '../store.ts';
import { type Environment, openTable, type Table } from './environment.ts';

/** Old records removed by one addition at most, so that it stays short. */
const removedMax = 10_000;

/** Days compare as texts. There must be one. */
const latest = (days: readonly string[]): string => [...days].sort().at(-1) as string; // never empty

type Count = { readonly requests: number };
type LastUse = Pick<SecretUse, 'usedAtMs'>;

/** The entries below a path; 0 follows / in ASCII. Where keys are out of order, a range may lead to those of other accounts. */
const entriesBelow = (table: Table, path: string) =>
  [...table.getRange({ start: Buffer.from(`${path}/`), end: Buffer.from(`${path}0`) })].filter(({ key }) =>
    key.toString().startsWith(`${path}/`),
  );

/** The last use of each secret, by account and secret. */
const createSecretUses = (environment: Environment, damage: DamageLog) => {
  const table = openTable(environment, 'secretUses');
  const useOf = (key: Buffer, value: Buffer): LastUse | undefined =>
    damage.contain({ table: 'secretUses', key: key.toString() }, () =>
      decodeKeyedRecord<LastUse>(key, value, `use of secret ${key.toString()}`),
    );
  const usedAt = (name: string): number => {
    const key = Buffer.from(name);
    const known = table.get(key);
    return (known && useOf(key, known)?.usedAtMs) ?? 0;
  };
  return {
    /** Keys with the latest of these uses and of what is stored; a stored use that is ahead of the clock is replaced. */
    latestOf: (uses: readonly SecretUse[], nowMs: number): ReadonlyMap<string, number> => {
      const storedUse = (key: string): number => (usedAt(key) > nowMs ? 0 : usedAt(key));
      const latestUses = new Map<string, number>();
      for (const { userId, secretId, usedAtMs } of uses) {
        const key = `${userId}/${secretId}`;
        latestUses.set(key, Math.max(latestUses.get(key) ?? storedUse(key), usedAtMs));
      }
      return latestUses;
    },
    put: (latestUses: ReadonlyMap<string, number>): void => {
      for (const [name, usedAtMs] of latestUses) {
        const key = Buffer.from(name);
        table.put(key, encodeKeyedRecord(key, { usedAtMs } satisfies LastUse));
      }
    },
    list: (userId: string): readonly SecretUse[] =>
      entriesBelow(table, userId).flatMap(({ key, value }) => {
        const use = useOf(key, value);
        return use === undefined ? [] : [{ userId, secretId: key.toString().slice(userId.length + 1), ...use }];
      }),
  };
};

/** A damaged count is lost; counting begins again at 0. */
const countOf = (damage: DamageLog, key: Buffer, value: Buffer): Count | undefined =>
  damage.contain({ table: 'usage', key: key.toString() }, () =>
    decodeKeyedRecord<Count>(key, value, `usage ${key.toString()}`),
  );

const endDay = (table: Table, reverse: boolean, start?: string): string | undefined => {
  for (const key of table.getKeys({ reverse, limit: 1, ...(start !== undefined && { start: Buffer.from(start) }) }))
    return key.subarray(0, 10).toString();
  return undefined;
};

/** Adds counts and uses, all or none of them. Synchronous: for the thread that writes. */
export function addUsage(
  environment: Environment,
  damage: DamageLog,
  rows: readonly UsageRow[],
  uses: readonly SecretUse[],
  nowMs: number,
): void {
  const table = openTable(environment, 'usage');
  const secretUses = createSecretUses(environment, damage);
  const requestsAt = (name: string): number => {
    const key = Buffer.from(name);
    const known = table.get(key);
    return (known && countOf(damage, key, known)?.requests) ?? 0;
  };
  const dropOld = (): void => {
    const newest = endDay(table, true, dayOf(nowMs)); // no key is a day alone, so that this one is before it
    if (newest === undefined) return; // an empty end would be no end
    const end = Buffer.from(firstDayKept(newest));
    for (const key of [...table.getKeys({ end, limit: removedMax })]) table.remove(key);
  };
  environment.root.transactionSync(() => {
    const sums = new Map<string, number>();
    for (const { userId, day, route, requests } of rows) {
      const key = `${day}/${userId}/${route}`;
      sums.set(key, (sums.get(key) ?? requestsAt(key)) + requests);
    }
    const latestUses = secretUses.latestOf(uses, nowMs);
    // Everything was read by now: what throws, throws before the first change.
    for (const [name, requests] of sums) {
      const key = Buffer.from(name);
      table.put(key, encodeKeyedRecord(key, { requests } satisfies Count));
    }
    secretUses.put(latestUses);
    if (rows.length > 0) dropOld();
  });
}

export function createLmdbUsage(environment: Environment, damage: DamageLog, add: UsageStore['add']): UsageStore {
  const { root } = environment;
  const table = openTable(environment, 'usage');
  const secretUses = createSecretUses(environment, damage);
  return {
    add: async (rows, uses, nowMs) => {
      if (rows.length > 0 || uses.length > 0) await add(rows, uses, nowMs);
    },
    lastUses: async (userId) => {
      root.resetReadTxn();
      return secretUses.list(userId);
    },
    list: async (userId, fromDay) => {
      root.resetReadTxn();
      const [first, last] = [endDay(table, false), endDay(table, true)];
      if (first === undefined || last === undefined) return [];
      const rows: UsageRow[] = [];
      for (let day = latest([fromDay, first]); day <= last; day = addDays(day, 1)) {
        for (const { key, value } of entriesBelow(table, `${day}/${userId}`)) {
          const count = countOf(damage, key, value);
          const route = key.toString().slice(day.length + userId.length + 2);
          if (count !== undefined) rows.push({ userId, day, route, ...count });
        }
      }
      return rows;
    },
  };
}
