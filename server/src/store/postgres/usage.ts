// Usage in PostgreSQL, written by any process: counts per account, day and route, and the last use of each secret.

import { dayOf, firstDayKept } from '../bounds.ts';
import type { SecretUse, UsageRow, UsageStore } from '../store.ts';
import type { Run, WriteConnection } from './connection.ts';
import { numberList, textList } from './rows.ts';
import type { Tables } from './schema.ts';

export const createPostgresUsage = (run: Run, { write }: WriteConnection, t: Tables): UsageStore => ({
  add: async (rows, uses, nowMs) => {
    if (rows.length === 0 && uses.length === 0) return;
    await write(async (on) => {
      if (rows.length > 0) await addCounts(on, t, sumUp(rows), nowMs);
      if (uses.length > 0) await keepLatest(on, t, latestOf(uses), nowMs);
    });
  },
  lastUses: async (userId) => {
    const rows = await run<{ secret_id: string; used_at_ms: number }>(
      `SELECT secret_id, used_at_ms FROM ${t.secretUses} WHERE user_id = $1::text ORDER BY secret_id`,
      [userId],
    );
    return rows.map(({ secret_id, used_at_ms }) => ({ userId, secretId: secret_id, usedAtMs: used_at_ms }));
  },
  list: async (userId, fromDay) => {
    const rows = await run<{ day: string; route: string; requests: number }>(
      `SELECT day, route, requests FROM ${t.usage} WHERE user_id = $1::text AND day >= $2::text ORDER BY day, route`,
      [userId, fromDay],
    );
    return rows.map((row) => ({ userId, ...row }));
  },
});

const addCounts = async (on: Run, t: Tables, sums: readonly UsageRow[], nowMs: number): Promise<void> => {
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
  const [newest] = await on<{ day: string | null }>(`SELECT max(day) AS day FROM ${t.usage} WHERE day < $1::text`, [
    dayOf(nowMs),
  ]);
  if (newest?.day == null) return;
  await on(`DELETE FROM ${t.usage} WHERE day < $1::text COLLATE "C"`, [firstDayKept(newest.day)]);
};

/** A stored use that is ahead of the clock is replaced. */
const keepLatest = async (on: Run, t: Tables, uses: readonly SecretUse[], nowMs: number): Promise<void> => {
  await on(
    `INSERT INTO ${t.secretUses} AS u (user_id, secret_id, used_at_ms) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
     ON CONFLICT (user_id, secret_id) DO UPDATE SET
       used_at_ms = CASE WHEN u.used_at_ms > $4::bigint THEN excluded.used_at_ms ELSE greatest(u.used_at_ms, excluded.used_at_ms) END`,
    [
      textList(uses.map(({ userId }) => userId)),
      textList(uses.map(({ secretId }) => secretId)),
      numberList(uses.map(({ usedAtMs }) => usedAtMs)),
      nowMs,
    ],
  );
};

/** Each secret once, in one order for all, for the same reason as the counts. */
const latestOf = (uses: readonly SecretUse[]): readonly SecretUse[] => {
  const latest = new Map<string, SecretUse>();
  for (const use of uses) {
    const key = `${use.userId}/${use.secretId}`;
    if (use.usedAtMs >= (latest.get(key)?.usedAtMs ?? 0)) latest.set(key, use);
  }
  return [...latest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, use]) => use);
};

/** Each key once, in one order for all: two nodes that add the same keys never wait for each other in a circle. */
const sumUp = (rows: readonly UsageRow[]): readonly UsageRow[] => {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const key = `${row.userId}/${row.day}/${row.route}`;
    sums.set(key, { ...row, requests: row.requests + (sums.get(key)?.requests ?? 0) });
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
};
