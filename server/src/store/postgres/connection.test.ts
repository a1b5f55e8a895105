// What happens when the database is away, stuck, or has no connection to spare; and that nothing is acknowledged which is not sure.
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { afterAll, afterEach, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../../tests/support/free-port.ts';
import { type CuttingProxy, openCuttingProxy } from '../../../../tests/support/proxies/cutting-proxy.ts';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { openStore } from '../open.ts';
import type { Store, StoredReport } from '../store.ts';
import { parseAddress } from './address.ts';
import { openPool, openWriteConnection, parseBytea } from './connection.ts';

const { report } = await createSignedReports();
const server = await startPostgres();
const database = server.connect();
afterAll(server.stop);

const stream = secondStream(1);
const t0 = 1_763_200_000;
const run = (from: number, count: number): StoredReport[] =>
  Array.from({ length: count }, (_, i) => report(stream, t0 + from + i, t0 + from + i));

const opened: { close: () => Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});
const openAt = async (url: string): Promise<Store> => {
  const store = await openStore(url, 'write');
  opened.push(store);
  return store;
};
const openProxy = async (): Promise<CuttingProxy> => {
  const proxy = await openCuttingProxy(server.port);
  opened.push(proxy);
  return proxy;
};
const through = ({ url }: CuttingProxy, schema: string, parameters: string): string =>
  `postgres://postgres@127.0.0.1:${new URL(url).port}/postgres?schema=${schema}&${parameters}`;

/** Again until it is answered: a bound of this test, not of the store. */
const eventually = async <T>(act: () => Promise<T>): Promise<T> => {
  for (let tries = 0; ; tries++) {
    try {
      return await act();
    } catch (error) {
      if (tries === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
};

const unavailable = { name: 'StoreError', code: 'store_unavailable' };

test('postgres: while the database is unavailable everything but latest fails with its code, and works again afterwards', async () => {
  const store = await openAt(server.url('away', 'read_ms=2000&write_ms=4000'));
  await store.reports.append(run(0, 5));
  await server.kill();
  await expect(store.reports.at([stream], t0)).rejects.toMatchObject(unavailable);
  await expect(store.reports.position()).rejects.toMatchObject(unavailable);
  await expect(store.reports.append(run(5, 1))).rejects.toMatchObject(unavailable);
  await expect(store.admin.list('account')).rejects.toMatchObject(unavailable);
  expect(store.reports.latest(stream)?.observationsMs).toBe((t0 + 4) * 1_000);
  await server.start();
  expect(await eventually(() => store.reports.append(run(5, 1)))).toEqual(['stored']);
  expect(await eventually(() => store.reports.at([stream], t0 + 5))).toHaveLength(1);
});

test('postgres: a network that drops everything leads to a time-out, and connections are replaced', async () => {
  const proxy = await openProxy();
  const store = await openAt(through(proxy, 'frozen', 'read_ms=700&write_ms=1500'));
  await eventually(() => store.reports.append(run(0, 5)));
  proxy.freeze();
  const failed = await Promise.allSettled([
    ...Array.from({ length: 30 }, () => store.reports.at([stream], t0)),
    store.reports.append(run(5, 1)),
    store.reports.append(run(6, 1)),
  ]);
  for (const one of failed)
    expect(one).toMatchObject({
      status: 'rejected',
      reason: { code: expect.stringMatching(/^store_(unavailable|outcome_unknown)$/) },
    });
  proxy.thaw();
  proxy.drop('');
  expect(await eventually(() => store.reports.at([stream], t0))).toHaveLength(1);
  const outcomes = await eventually(() => store.reports.append(run(5, 2)));
  for (const outcome of outcomes) expect(['stored', 'duplicate']).toContain(outcome);
  expect(await eventually(() => store.reports.position())).toBe(7);
});

test('postgres: one silent connection among several fails a few reads, and is replaced', async () => {
  const proxy = await openProxy();
  const [max, readers, boundMs] = [5, 12, 2_000];
  let waiting = 0;
  const pool = openPool(parseAddress(through(proxy, 'one_silent', 'read_ms=2000')), max, boundMs, {
    tell: (event) => {
      if (event.kind === 'statements') waiting += event.change;
    },
  });
  opened.push(pool);
  const read = () => pool.run<{ n: number }>('SELECT $1::int AS n', [1]);
  const readAll = () => Promise.allSettled(Array.from({ length: readers }, read));
  await eventually(async () => {
    await readAll();
    if (proxy.opened() < max) throw new Error('Not all connections are open yet.');
  });
  proxy.freezeOne();
  const failures: unknown[] = [];
  let reads = 0;
  const readOn = async (): Promise<void> => {
    while (proxy.opened() === max && failures.length <= 2 * readers) {
      reads += 1;
      await read().catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: readers }, readOn));
  for (const failure of failures) expect(failure).toMatchObject(unavailable);
  expect(proxy.opened()).toBeGreaterThan(max);
  expect(failures.length).toBeLessThanOrEqual(readers);
  expect(reads).toBeGreaterThan(10 * readers); // the other connections went on
  // No place is taken by statements of the silent one.
  await expect.poll(() => waiting).toBe(0);
  for (const one of await readAll()) expect(one).toMatchObject({ status: 'fulfilled', value: [{ n: 1 }] });
});

test.each([
  ['as the next statement is sent', 0],
  ['while it is idle', 200],
])('postgres: while new connections are dropped, those that are open answer, after one ends %s', async (_, idleMs) => {
  const proxy = await openProxy();
  const pool = openPool(parseAddress(through(proxy, 'refused', 'read_ms=2000')), 3, 2_000);
  opened.push(pool);
  const pid = async () => (await pool.run<{ pid: number }>('SELECT pg_backend_pid() AS pid'))[0]?.pid ?? 0;
  await eventually(async () => {
    if (new Set(await Promise.all([pid(), pid(), pid()])).size < 3) throw new Error('Not all are open yet.');
  });
  proxy.upstreamPort = await freePort();
  await database`SELECT pg_terminate_backend(${await pid()})`;
  await sleep(idleMs);
  const failures: unknown[] = [];
  for (let i = 0; i < 50; i++) await pid().catch((error: unknown) => failures.push(error));
  for (const failure of failures) expect(failure).toMatchObject(unavailable);
  expect(failures.length).toBeLessThanOrEqual(2);
});

test('postgres: a slow statement fails alone, and its connection is kept', async () => {
  const proxy = await openProxy();
  const pool = openPool(parseAddress(through(proxy, 'one_slow', 'read_ms=2000')), 2, 2_000);
  opened.push(pool);
  const pids = async () =>
    new Set(
      (await Promise.all([1, 2].map(() => pool.run<{ pid: number }>('SELECT pg_backend_pid() AS pid')))).map(
        ([row]) => row?.pid,
      ),
    );
  await eventually(async () => {
    if ((await pids()).size < 2) throw new Error('Not all connections are open yet.');
  });
  let isOver = false;
  const slow = pool.run('SELECT pg_sleep(60)').catch((error: unknown) => error);
  void slow.finally(() => {
    isOver = true;
  });
  while (!isOver) await pool.run('SELECT 1');
  expect(await slow).toMatchObject(unavailable);
  await eventually(async () => {
    if ((await pids()).size < 2) throw new Error('The slow statement is not over yet.');
  });
  expect(proxy.opened()).toBe(2);
});

test('postgres: a connection that ends in a transaction fails that one, not the process', async () => {
  const proxy = await openProxy();
  const writer = openWriteConnection(parseAddress(through(proxy, 'cut', 'read_ms=2000&write_ms=4000')));
  opened.push(writer);
  const cut = writer.write((send) => send('SELECT pg_sleep(60)')).catch((error: unknown) => error);
  while ((await database`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`).length === 0);
  proxy.drop('');
  expect(await cut).toMatchObject(unavailable);
  expect(await eventually(() => writer.write((send) => send('SELECT 1 AS one')))).toEqual([{ one: 1 }]);
});

test('postgres: connections that were given up while opening are not opened when the database is back', async () => {
  const proxy = await openProxy();
  const store = await openAt(through(proxy, 'given_up', 'connections=9&read_ms=300&write_ms=1000'));
  await eventually(() => store.reports.append(run(0, 5)));
  await server.kill();
  for (let i = 0; i < 4; i++) await Promise.allSettled(Array.from({ length: 8 }, () => store.reports.at([stream], t0)));
  await server.start();
  await eventually(() => store.reports.at([stream], t0));
  await store.close();
  const left = () => database`SELECT 1 FROM pg_stat_activity WHERE application_name = 'sealpost'`;
  await expect.poll(async () => (await eventually(async () => left())).length).toBe(0);
});

test('postgres: a process opens no more connections than the setting says, whatever it does', async () => {
  const store = await openAt(server.url('counted', 'connections=6&read_ms=20000&write_ms=20000'));
  await store.reports.append(run(0, 5));
  await Promise.all([
    ...Array.from({ length: 40 }, () => store.reports.page(stream, t0, 10)),
    store.reports.append(run(5, 5)),
    store.reports.stats(),
    store.quarantine.count(),
    store.nodes?.exchange(Uint8Array.of(1)),
    store.usage.list('a', '2026-01-01'),
  ]);
  const open = await database`SELECT 1 FROM pg_stat_activity WHERE application_name = 'sealpost'`;
  expect(open.length).toBeLessThanOrEqual(6);
  await expect(openStore(server.url('counted', 'connections=5'), 'write')).rejects.toMatchObject({
    code: 'store_url_invalid',
    message: expect.stringContaining('the parameter connections is 5. A node needs 6 or more.'),
  });
});

test('postgres: two writers under a database whose default isolation is serializable store each report once', async () => {
  await (await openAt(server.url('isolated'))).reports.append(run(0, 1));
  await database`ALTER ROLE postgres SET default_transaction_isolation TO 'serializable'`;
  try {
    const strict = [await openAt(server.url('isolated')), await openAt(server.url('isolated'))] as const;
    for (let i = 1; i <= 5; i++) {
      const outcomes = await Promise.all(strict.map(({ reports }) => reports.append(run(0, 10 * i))));
      expect(outcomes.flat().filter((outcome) => outcome === 'stored')).toHaveLength(i === 1 ? 9 : 10);
    }
  } finally {
    await database`ALTER ROLE postgres RESET default_transaction_isolation`;
  }
});

test('postgres: with all connections in use, reads beyond the bound fail at once and the others time out', async () => {
  const store = await openAt(server.url('taken', 'connections=7&read_ms=800&write_ms=20000'));
  await store.reports.append(run(0, 5));
  const locked = await database.reserve();
  await locked`BEGIN`;
  await locked`LOCK TABLE taken.reports IN ACCESS EXCLUSIVE MODE`;
  const asked = Array.from({ length: 300 }, () => store.reports.page(stream, t0 - 1_000_000, 10));
  const settled = await Promise.allSettled(asked);
  for (const one of settled) expect(one).toMatchObject({ status: 'rejected', reason: unavailable });
  const texts = settled.map((one) => (one as PromiseRejectedResult).reason.message as string); // all were
  expect(texts.filter((text) => text.includes('waiting already')).length).toBe(200);
  await locked`ROLLBACK`;
  locked.release();
  expect(await eventually(() => store.reports.page(stream, t0 - 1_000_000, 10))).toMatchObject({ more: false });
});

const configure = async (names: string): Promise<void> => {
  await database.unsafe(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
  await database`SELECT pg_reload_conf()`;
};
const waitingForStandby = async (isOver = () => false): Promise<number> => {
  while (!isOver()) {
    const [row] = await database<{ pid: number }[]>`SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
    if (row !== undefined) return row.pid;
  }
  return 0;
};

/** Acts while every commit waits for a standby that never comes. */
const withoutStandby = async (act: () => Promise<void>): Promise<void> => {
  const probe = postgres(server.base, { max: 1, onnotice: () => {} });
  await probe`CREATE TABLE IF NOT EXISTS acknowledged (name text)`;
  await configure('nobody');
  try {
    // The servers hear of it one after the other: a commit that waits shows that they have.
    for (let pid = 0; pid === 0; ) {
      let isOver = false;
      const insert = probe`INSERT INTO acknowledged VALUES ('probe')`.then(() => {
        isOver = true;
      });
      pid = await waitingForStandby(() => isOver);
      if (pid !== 0) await database`SELECT pg_cancel_backend(${pid})`;
      await insert;
    }
    await act();
  } finally {
    await configure('');
    await probe.end();
  }
};

test.each([
  'notice',
  'error', // the warning that tells of it is not sent
])(
  'postgres: with messages from %s up, a commit that was cancelled while it waited for its standby is not acknowledged, nor is its retry',
  async (least) => {
    await database.unsafe(`ALTER ROLE postgres SET client_min_messages = ${least}`);
    onTestFinished(async () => void (await database`ALTER ROLE postgres RESET client_min_messages`));
    const store = await openAt(server.url(`cancelled_${least}`, 'read_ms=20000&write_ms=3000'));
    await store.reports.append(run(0, 1));
    await withoutStandby(async () => {
      const refused = expect(store.reports.append(run(1, 2))).rejects.toMatchObject({ code: 'store_outcome_unknown' });
      await database`SELECT pg_cancel_backend(${await waitingForStandby()})`;
      await refused;
      // It is there, and it may be gone tomorrow: recognising it is no acknowledgement either.
      expect((await store.reports.page(stream, t0, 10)).reports).toHaveLength(3);
      await expect(store.reports.append(run(1, 2))).rejects.toMatchObject({ code: 'store_outcome_unknown' });
      await expect(store.reports.confirm()).rejects.toMatchObject({ name: 'StoreError' });
    });
    expect(await eventually(() => store.reports.append(run(1, 2)))).toEqual(['duplicate', 'duplicate']);
    expect(await store.reports.position()).toBe(3);
    expect((await store.reports.stats()).reports).toBe(3);
  },
);

test('postgres: a database that warns about its collation at every connect is written to as any other', async () => {
  const version = async (value: string | null): Promise<unknown> =>
    database`UPDATE pg_database SET datcollversion = ${value} WHERE datname = current_database()`;
  const [before] = await database<{ datcollversion: string | null }[]>`
    SELECT datcollversion FROM pg_database WHERE datname = current_database()`;
  await version('0.of.another.release');
  opened.push({ close: async () => void (await version(before?.datcollversion ?? null)) });
  const notices: string[] = [];
  const other = postgres(server.base, { max: 1, onnotice: ({ message = '' }) => void notices.push(message) });
  await other`SELECT 1`;
  await other.end();
  expect(notices.join()).toContain('collation version');
  const store = await openAt(server.url('collation'));
  expect(await store.reports.append(run(0, 1))).toEqual(['stored']);
  expect(await store.reports.append(run(0, 2))).toEqual(['duplicate', 'stored']);
});

test('postgres: control: a plain insert that is cancelled while it waits is reported as a success', async () => {
  const plain = postgres(server.base, { max: 1, onnotice: () => {} });
  opened.push({ close: () => plain.end() });
  await withoutStandby(async () => {
    const insert = plain`INSERT INTO acknowledged VALUES ('one')`.execute();
    await database`SELECT pg_cancel_backend(${await waitingForStandby()})`;
    expect((await insert).count).toBe(1);
  });
});

test('postgres: a commit that takes too long, or whose connection is ended, is unknown, and the retry finds one row', async () => {
  const store = await openAt(server.url('slow', 'read_ms=20000&write_ms=4000'));
  await eventually(() => store.reports.append(run(0, 1)));
  await withoutStandby(async () => {
    await expect(store.reports.append(run(1, 1))).rejects.toMatchObject({ code: 'store_outcome_unknown' });
    await database`SELECT pg_terminate_backend(${await waitingForStandby()})`;
    const refused = expect(store.reports.append(run(2, 1))).rejects.toMatchObject({ code: 'store_outcome_unknown' });
    await database`SELECT pg_terminate_backend(${await waitingForStandby()})`;
    await refused;
  });
  expect(await eventually(() => store.reports.append(run(0, 4)))).toEqual([
    'duplicate',
    'duplicate',
    'duplicate',
    'stored',
  ]);
  expect((await store.reports.stats()).reports).toBe(4);
});

test('postgres: a database that writes bytes with escapes is read as any other', async () => {
  await (await openAt(server.url('escaped'))).reports.append(run(0, 5));
  await database`ALTER ROLE postgres SET bytea_output TO 'escape'`;
  try {
    const store = await openAt(server.url('escaped'));
    expect((await store.reports.page(stream, t0, 10)).reports).toEqual(run(0, 5));
    expect(store.reports.latest(stream)?.observationsMs).toBe((t0 + 4) * 1_000);
    expect(store.damage()).toEqual([]);
  } finally {
    await database`ALTER ROLE postgres RESET bytea_output`;
  }
});

test('postgres: every byte is read in both formats of the database', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  for (const format of ['hex', 'escape'] as const) {
    const [row] = await database.begin(async (transaction) => {
      await transaction.unsafe(`SET LOCAL bytea_output TO '${format}'`);
      return transaction<{ text: string }[]>`SELECT ${bytes}::bytea::text AS text`;
    });
    expect(parseBytea(row?.text ?? '')).toEqual(bytes);
  }
});

test('postgres: a user who may no longer connect, or lost a privilege, gets the code of an unavailable database and advice', async () => {
  await database`CREATE ROLE reader LOGIN`;
  await database`GRANT CREATE ON DATABASE postgres TO reader`;
  const store = await openAt(server.url('refused').replace('postgres@', 'reader@'));
  await store.reports.append(run(0, 1));
  const failure = (text: string) => ({ ...unavailable, message: expect.stringContaining(text) });
  await database`ALTER SCHEMA refused OWNER TO postgres`;
  const denied = failure('permission denied for schema refused. The user must own its schema');
  await expect(store.reports.page(stream, t0, 10)).rejects.toMatchObject(denied);
  await expect(store.reports.append(run(1, 1))).rejects.toMatchObject(denied);
  await database`ALTER SCHEMA refused OWNER TO reader`;
  await database`ALTER ROLE reader NOLOGIN`;
  await database`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'`;
  await expect(store.reports.page(stream, t0, 10)).rejects.toMatchObject(unavailable);
  const locked = failure('role "reader" is not permitted to log in. Check user, password');
  await eventually(() => expect(store.reports.append(run(1, 1))).rejects.toMatchObject(locked));
  await database`ALTER ROLE reader LOGIN`;
  expect(await eventually(() => store.reports.append(run(0, 2)))).toEqual(['duplicate', 'stored']);
});
