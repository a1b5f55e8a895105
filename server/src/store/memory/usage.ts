// Usage in memory: counts per day, account and route, and the last use of each secret.
import { dayOf, firstDayKept } from '../bounds.ts';
import type { SecretUse, UsageRow, UsageStore } from '../store.ts';

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The usage of one store in memory, for all who opened it. */
export function createMemoryUsage(): UsageStore {
  const counts = new Map<string, UsageRow>();
  const lastUses = new Map<string, SecretUse>();
  const dropOld = (nowMs: number): void => {
    const before = [...counts.values()].map(({ day }) => day).filter((day) => day < dayOf(nowMs));
    const newest = before.sort(byText).at(-1);
    if (newest === undefined) return;
    const first = firstDayKept(newest);
    for (const [key, { day }] of counts) if (day < first) counts.delete(key);
  };
  return {
    add: async (rows, uses, nowMs) => {
      for (const { userId, day, route, requests } of rows) {
        const key = JSON.stringify([day, userId, route]);
        counts.set(key, { userId, day, route, requests: (counts.get(key)?.requests ?? 0) + requests });
      }
      for (const { userId, secretId, usedAtMs } of uses) {
        const key = JSON.stringify([userId, secretId]);
        const known = lastUses.get(key)?.usedAtMs ?? 0;
        lastUses.set(key, { userId, secretId, usedAtMs: Math.max(known > nowMs ? 0 : known, usedAtMs) });
      }
      if (rows.length > 0) dropOld(nowMs);
    },
    lastUses: async (userId) =>
      [...lastUses.values()].filter((use) => use.userId === userId).sort((a, b) => byText(a.secretId, b.secretId)),
    list: async (userId, fromDay) =>
      [...counts.values()]
        .filter((row) => row.userId === userId && row.day >= fromDay)
        .sort((a, b) => byText(a.day, b.day) || byText(a.route, b.route)),
  };
}
