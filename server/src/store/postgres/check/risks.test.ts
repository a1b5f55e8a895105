// What a node says of a database that can lose what was acknowledged, as a superuser and as a user without any privilege.
import { afterAll, expect, test } from 'vitest';
import { startPostgres, startStandby } from '../../../../../tests/support/running-postgres.ts';
import { parseAddress } from '../address.ts';
import { openPool, type Run } from '../connection.ts';
import { readRisks } from './risks.ts';

const server = await startPostgres({ durable: true });
const database = server.connect();
afterAll(() => server.stop());

/** In a session that begins now. */
const asks = async <T>(user: string, act: (run: Run) => Promise<T>): Promise<T> => {
  const pool = openPool(parseAddress(server.base.replace('postgres@', `${user}@`)), 1, 5_000);
  return act(pool.run).finally(pool.close);
};

/** Resolves when new sessions have it. */
const set = async (name: string, value: string): Promise<void> => {
  await database.unsafe(`ALTER SYSTEM SET ${name} = '${value}'`);
  await database`SELECT pg_reload_conf()`;
  const read = () => asks('postgres', (run) => run<{ value: string }>(`SELECT current_setting('${name}') AS value`));
  while ((await read())[0]?.value !== value);
};

const users = ['postgres', 'plain'];
await database`CREATE ROLE plain LOGIN`;

/** What each user is told. */
const risks = () => Promise.all(users.map((user) => asks(user, readRisks)));
const everybody = (...sentences: readonly unknown[]) => users.map(() => sentences);

test('postgres durability: a server that flushes, and names no standbys, has no risks', async () => {
  expect(await risks()).toEqual(everybody());
});

test('postgres durability: without fsync, everybody is told what it means, and no more once it is on', async () => {
  await set('fsync', 'off');
  expect(await risks()).toEqual(everybody(expect.stringMatching(/^fsync is off .* Turn it on\.$/)));
  await set('fsync', 'on');
  expect(await risks()).toEqual(everybody());
});

test('postgres durability: a synchronous standby that is missing is told, whatever the setting looks like', async () => {
  const missing = (names: string, found: number, count: number) =>
    everybody(
      `synchronous_standby_names is ${JSON.stringify(names)}, but ${found} of ${count} synchronous standbys are connected, so commits wait. Start the standby, or take it out of the setting.`,
    );
  await set('synchronous_standby_names', 'standby');
  expect(await risks()).toEqual(missing('standby', 0, 1));
  const standby = await startStandby(server);
  try {
    await expect.poll(risks).toEqual(everybody());
    for (const names of ['*', 'ANY 1 (other, STANDBY)', 'FIRST 1 ("standby", other)', '1 (standby)']) {
      await set('synchronous_standby_names', names);
      await expect.poll(risks).toEqual(everybody());
    }
    for (const [names, found, count] of [
      ['FIRST 2 (standby, other)', 1, 2],
      ['any 2 (standby,other)', 1, 2],
      ['other', 0, 1],
    ] as const) {
      await set('synchronous_standby_names', names);
      await expect.poll(risks).toEqual(missing(names, found, count));
    }
    await set('synchronous_commit', 'local');
    expect(await risks()).toEqual(everybody());
  } finally {
    await standby.stop();
  }
});
