// Exchanges short-lived values between the nodes on a database: rows that live for seconds, in an unlogged table that standbys lack and a crash empties.
// Their commits wait for neither disk nor standby.
import { randomUUID } from 'node:crypto';
import { type KeyHolders, keyHolderFreshMs, type NodeExchange, type RetentionLimits } from '../nodes.ts';
import type { Run } from './connection.ts';
import { numberList, textList } from './rows.ts';
import type { Tables } from './schema.ts';

/** Older values are not returned: tokens that were granted long ago have refilled. */
const heardSeconds = 1;
/** How long rows are kept, by the database's clock, and how long a node's last turn is remembered. */
const keptSeconds = 5;
/** Rows further ahead of the database's clock were written before it was set back. */
const aheadSeconds = 1;

type Heard = { readonly turn: number; readonly atMs: number };

export function createNodeExchange(run: Run, t: Tables): NodeExchange {
  const node = randomUUID();
  const heard = new Map<string, Heard>();
  let turn = 0;
  return {
    exchange: async (told = new Uint8Array()) => {
      turn += 1;
      const rows = await run<{ node: string; turn: number; news: Buffer }>(
        `WITH told AS (
           INSERT INTO ${t.nodeNews} (node, turn, news) SELECT $1::text, $2::bigint, $3::bytea WHERE length($3::bytea) > 0
         ), gone AS (
           DELETE FROM ${t.nodeNews}
           WHERE told_at NOT BETWEEN now() - interval '${keptSeconds} seconds' AND now() + interval '${aheadSeconds} seconds'
         )
         SELECT n.node, n.turn, n.news FROM ${t.nodeNews} AS n
         LEFT JOIN unnest($4::text[], $5::bigint[]) AS known(node, turn) ON known.node = n.node
         WHERE n.node <> $1::text AND n.turn > coalesce(known.turn, 0)
           AND n.told_at BETWEEN now() - interval '${heardSeconds} seconds' AND now() + interval '${aheadSeconds} seconds'
         ORDER BY n.node, n.turn`,
        [node, turn, told, textList([...heard.keys()]), numberList([...heard.values()].map((one) => one.turn))],
      );
      const nowMs = performance.now();
      for (const row of rows) heard.set(row.node, { turn: row.turn, atMs: nowMs });
      for (const [name, { atMs }] of heard) if (nowMs - atMs > keptSeconds * 1_000) heard.delete(name);
      return rows.map(({ news }) => news);
    },
  };
}

/** What the nodes announce: rows of the same table with turn 0, which no exchange reads, since its turns begin at 1, and which it removes like any other. */
export const createTableKeyHolders = (run: Run, t: Tables): KeyHolders => ({
  announce: async ({ node, keyIds, retention }) => {
    await run(
      `INSERT INTO ${t.nodeNews} (node, turn, news) VALUES ($1::text, 0, $2::bytea)
       ON CONFLICT (node, turn) DO UPDATE SET news = excluded.news, told_at = now()`,
      [node, Buffer.from(JSON.stringify([...keyIds, ...(retention ? [retention] : [])]))],
    );
  },
  withdraw: async (node) => {
    await run(`DELETE FROM ${t.nodeNews} WHERE node = $1::text AND turn = 0`, [node]);
  },
  list: async () => {
    const rows = await run<{ node: string; news: Buffer }>(
      `SELECT node, news FROM ${t.nodeNews}
       WHERE turn = 0 AND told_at BETWEEN now() - interval '${keyHolderFreshMs} milliseconds' AND now() + interval '${aheadSeconds} seconds'
       ORDER BY node`,
      [],
    );
    return rows.map(({ node, news }) => {
      const told = JSON.parse(Buffer.from(news).toString()) as (string | RetentionLimits)[]; // written above; older releases look for a key in it
      const keyIds = told.filter((one) => typeof one === 'string');
      return { node, keyIds, retention: told.find((one) => typeof one === 'object') };
    });
  },
});
