// What nodes tell each other, on a real PostgreSQL.
import { afterAll, expect, test } from 'vitest';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { parseAddress } from './address.ts';
import { openPool } from './connection.ts';
import { createNodeExchange } from './nodes.ts';
import { migratePostgres, tablesOf } from './schema.ts';

const server = await startPostgres();
const database = server.connect();
const pool = openPool(parseAddress(server.url('news')), 1, 20_000);
afterAll(async () => {
  await pool.close();
  await server.stop();
});
await migratePostgres(server.url('news'));

const join = () => {
  const { exchange } = createNodeExchange(pool.run, tablesOf('news'));
  return async (told?: string) =>
    (await exchange(told === undefined ? undefined : Buffer.from(told))).map((one) => Buffer.from(one).toString());
};

test('node news: each node gets what each other node published once, and never its own', async () => {
  const [a, b, c] = [join(), join(), join()];
  expect(await a('from a')).toEqual([]);
  expect(await b('from b')).toEqual(['from a']);
  expect(await a('more')).toEqual(['from b']);
  expect((await c()).sort()).toEqual(['from a', 'from b', 'more']);
  expect(await b()).toEqual(['more']);
  expect([await a(), await b(), await c()]).toEqual([[], [], []]);
});

test.each([
  ['put back', '1 hour'],
  ['put forward', '-1 hour'],
])('node news: after the clock of the database was %s, earlier values are not returned', async (_, by) => {
  const [teller, later] = [join(), join()];
  await teller('long ago');
  await database.unsafe(`UPDATE news.node_news SET told_at = told_at + interval '${by}'`);
  expect(await later()).toEqual([]);
  expect(await database`SELECT 1 FROM news.node_news`).toHaveLength(0);
  await teller('now');
  expect(await later()).toEqual(['now']);
});
