// Owns usage counts in PostgreSQL: one row per account, day and route, added to by any process.
import type { Run, Writer } from './postgres-connection.ts';
import { numberList, textList } from './postgres-rows.ts';
import type { Tables } from './postgres-schema.ts';
import type { UsageRow, UsageStore } from './store.ts';
import { firstDayKept } from './usage-days.ts';

export const createUsageStore = (run: Run, { write }: Writer, t: Tables): UsageStore => ({
  add: async (rows) => {
    if (rows.length === 0) return;
    const sums = sumUp(rows);
    const newest = sums
      .map(({ day }) => day)
      .sort()
      .at(-1) as string; // there is one
    await write(async (on) => {
      await on(
        `INSERT INTO ${t.usage} AS u (user_id, day, route, requests) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
         ON CONFLICT (user_id, day, route) DO UPDATE SET requests = u.requests + excluded.requests`,
        [
          textList(sums.map(({ userId }) => userId)),
          textList(sums.map(({ day }) => day)),
          textList(sums.map(({ route }) => route)),
          numberList(sums.map(({ requests }) => requests)),
        ],
      );
      await on(`DELETE FROM ${t.usage} WHERE day < $1::text COLLATE "C"`, [firstDayKept(newest)]);
    });
  },
  list: async (userId, fromDay) => {
    const rows = await run<{ day: string; route: string; requests: number }>(
      `SELECT day, route, requests FROM ${t.usage} WHERE user_id = $1::text AND day >= $2::text ORDER BY day, route`,
      [userId, fromDay],
    );
    return rows.map((row) => ({ userId, ...row }));
  },
});

/** Each key once, in one order for all: two nodes that add the same keys never wait for each other in a circle. */
const sumUp = (rows: readonly UsageRow[]): readonly UsageRow[] => {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const key = `${row.userId}/${row.day}/${row.route}`;
    sums.set(key, { ...row, requests: row.requests + (sums.get(key)?.requests ?? 0) });
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
};
