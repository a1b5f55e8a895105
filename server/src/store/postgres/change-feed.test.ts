// The order of appending across nodes, and that no report depends on a notification.
import { afterAll, expect, test } from 'vitest';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { positionsKept } from '../bounds.ts';
import { createDamageLog } from '../damage.ts';
import { openStore } from '../open.ts';
import type { Store, StoredReport } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import { parseAddress } from './address.ts';
import { appendBatch } from './append.ts';
import { openFeed } from './change-feed.ts';
import { openPool, openWriteConnection, type Run } from './connection.ts';
import { createPartitionLookup, createPartitions } from './partitions.ts';
import { createKeyReads } from './reads.ts';
import { migratePostgres, tablesOf } from './schema.ts';

const { report } = await createSignedReports();
const server = await startPostgres();
const database = server.connect();
afterAll(server.stop);

const t0 = 1_763_200_000;
const patience = { timeout: 20_000 };
const run = (n: number, from: number, count: number): StoredReport[] =>
  Array.from({ length: count }, (_, i) => report(secondStream(n), t0 + from + i, t0 + from + i));
const keyOf = ({ feedId, observationsMs }: StoredReport) => `${Number(feedId)} ${observationsMs / 1_000 - t0}`;

const createGate = () => {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

/** Another node's writer, whose transaction a test can hold open or alter. */
const openOther = (schema: string) => {
  const url = server.url(schema);
  const writer = openWriteConnection(parseAddress(url));
  const tables = tablesOf(schema);
  let salt = 0;
  const appendOn = (run: Run, batch: readonly StoredReport[]) =>
    appendBatch(run, tables, createPartitionLookup(tables, 86_400_000), batch, { origin: 'test', salt: salt++ });
  const append = (
    batch: readonly StoredReport[],
    before: () => Promise<void> = async () => {},
    via: (run: Run) => Run = (plain) => plain,
  ) =>
    writer.write(async (plain) => {
      const appended = await appendOn(via(plain), batch);
      await before();
      return appended;
    });
  /** Several batches in one transaction. */
  const appendTogether = (batches: readonly (readonly StoredReport[])[], via: (run: Run) => Run) =>
    writer.write(async (plain) => {
      const run = via(plain);
      for (const batch of batches) await appendOn(run, batch);
    });
  return { append, appendTogether, close: writer.close };
};

const woken = ({ reports }: Store): Promise<void> =>
  new Promise((resolve) => {
    const stop = reports.onAppended(() => {
      stop();
      resolve();
    });
  });

const untilWaiting = async (): Promise<void> => {
  const waiting = () => database`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
  while ((await waiting()).length === 0);
};

test('postgres feed: an open batch delays those after it, and no follower misses one', async () => {
  const store = await openStore(server.url('ordered'), 'write');
  const other = openOther('ordered');
  try {
    const gate = createGate();
    const filled = createGate();
    const held = other.append(run(1, 0, 3), async () => {
      filled.open();
      await gate.opened;
    });
    await filled.opened;
    let done = false;
    const second = store.reports.append(run(2, 0, 2)).finally(() => {
      done = true;
    });
    await untilWaiting();
    expect(done).toBe(false);
    expect(await store.reports.appendedAfter(0, 10)).toMatchObject({ reports: [], position: 0 });
    gate.open();
    await Promise.all([held, second]);
    const { reports, positions } = await store.reports.appendedAfter(0, 10);
    expect(reports.map(keyOf)).toEqual([...run(1, 0, 3), ...run(2, 0, 2)].map(keyOf));
    expect(positions).toEqual([1, 2, 3, 4, 5]);
  } finally {
    await other.close();
    await store.close();
  }
});

test('postgres feed: control: a sequence alone loses the open batch', async () => {
  await database`CREATE TABLE by_sequence (position bigserial PRIMARY KEY, name text)`;
  const followed: string[] = [];
  let position = 0;
  const follow = async () => {
    const rows = await database<{ position: string; name: string }[]>`
      SELECT position, name FROM by_sequence WHERE position > ${position} ORDER BY position`;
    for (const row of rows) followed.push(row.name);
    position = Number(rows.at(-1)?.position ?? position);
  };
  await database.begin(async (held) => {
    await held`INSERT INTO by_sequence (name) VALUES ('held')`;
    await database`INSERT INTO by_sequence (name) VALUES ('second')`;
    await follow();
  });
  await follow();
  expect(followed).toEqual(['second']);
});

test('postgres feed: a notification that is lost costs a quarter of a second, not a report', async () => {
  await migratePostgres(server.url('deaf'));
  const reader = await openStore(server.url('deaf'), 'read');
  const other = openOther('deaf');
  try {
    const wake = woken(reader);
    const silent =
      (plain: Run): Run =>
      async (text, parameters) =>
        text.includes('pg_notify') ? [] : plain(text, parameters);
    await other.append(run(1, 0, 3), undefined, silent);
    await wake;
    expect(reader.reports.latest(secondStream(1))?.observationsMs).toBe((t0 + 2) * 1_000);
    expect((await reader.reports.appendedAfter(0, 10)).positions).toEqual([1, 2, 3]);
  } finally {
    await other.close();
    await reader.close();
  }
});

test('postgres feed: after the server ended every connection, missed reports are read', async () => {
  const store = await openStore(server.url('ended'), 'write');
  const other = openOther('ended');
  try {
    await store.reports.append(run(1, 0, 1));
    const wake = woken(store);
    await database`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sealpost'`;
    await other.append(run(2, 0, 2));
    await wake;
    expect((await store.reports.appendedAfter(0, 10)).reports.map(keyOf)).toEqual(
      [...run(1, 0, 1), ...run(2, 0, 2)].map(keyOf),
    );
    expect(await store.reports.append(run(1, 1, 1))).toEqual(['stored']);
  } finally {
    await other.close();
    await store.close();
  }
});

test('postgres feed: nodes that append the same and overlapping reports at once store each window once', async () => {
  const url = server.url('crowded');
  const stores = [await openStore(url, 'write'), await openStore(url, 'write'), await openStore(url, 'write')];
  try {
    const wide = report(secondStream(1), t0 + 10, t0 + 20);
    const rounds = stores.flatMap(({ reports }, i) => [
      reports.append(run(2, 0, 50)),
      reports.append(i === 0 ? [wide] : run(1, 10 + i, 5)),
    ]);
    const outcomes = (await Promise.all(rounds)).flat();
    expect(outcomes.filter((outcome) => outcome === 'conflict')).toEqual([]);
    const { reports } = await (stores[0] as Store).reports.page(secondStream(1), t0, 100);
    for (const [i, { validFromMs }] of reports.entries())
      expect(validFromMs).toBeGreaterThan(reports[i - 1]?.observationsMs ?? 0);
    const stored = outcomes.filter((outcome) => outcome === 'stored').length;
    expect((await (stores[0] as Store).reports.stats()).reports).toBe(stored);
    expect((await (stores[1] as Store).reports.page(secondStream(2), t0, 100)).reports).toHaveLength(50);
    expect(await (stores[2] as Store).reports.position()).toBe(stored);
  } finally {
    for (const store of stores) await store.close();
  }
});

/** Makes it so that nothing after position 3 was ever there. */
const lossOf = (schema: string): readonly string[] => {
  const t = tablesOf(schema);
  const newest = (t0 + 2) * 1_000;
  return [
    `DELETE FROM ${t.reports} WHERE observations > ${newest}`,
    `DELETE FROM ${t.appended} WHERE last_position > 3`,
    `UPDATE ${t.counters} SET value = 3 WHERE name = 'position'`,
    `UPDATE ${t.heads} SET observations = ${newest}`,
  ];
};

/** The loss and what comes in its place, in one transaction: nobody can look between them. */
const losing = (schema: string): ((plain: Run) => Run) => {
  let isLost = false;
  return (plain) => async (text, parameters) => {
    if (!isLost && !text.includes('advisory')) {
      isLost = true;
      for (const statement of lossOf(schema)) await plain(statement);
    }
    return plain(text, parameters);
  };
};

test('postgres feed: after a database lost its last batch, it is reported, latest does not go back and followers continue', async () => {
  const told: StoreEvent[] = [];
  const store = await openStore(server.url('behind'), 'write', { tell: (event) => told.push(event) });
  let reloads = 0;
  store.admin.onChanged(() => {
    reloads += 1;
  });
  const other = openOther('behind');
  try {
    await store.reports.append(run(1, 0, 3));
    await store.reports.append(run(1, 3, 2));
    await database.begin(async (lossy) => {
      for (const statement of lossOf('behind')) await lossy.unsafe(statement);
    });
    const following = () => store.reports.appendedAfter(5, 10);
    await expect.poll(following, patience).toMatchObject({ reports: [], position: 3, missed: true });
    const lost = () => told.filter(({ kind }) => kind === 'commitsLost');
    await expect
      .poll(lost, patience)
      .toEqual([{ kind: 'commitsLost', reason: expect.stringContaining('position 5, and now it ends at 3') }]);
    expect(reloads).toBe(1); // the number of their changes may be the one from before
    await other.append(run(2, 0, 2));
    await expect.poll(() => store.reports.latest(secondStream(2))?.observationsMs, patience).toBe((t0 + 1) * 1_000);
    expect((await store.reports.appendedAfter(3, 10)).reports.map(keyOf)).toEqual(run(2, 0, 2).map(keyOf));
    expect(store.reports.latest(secondStream(1))?.observationsMs).toBe((t0 + 4) * 1_000);
    expect(await store.reports.append(run(1, 3, 2))).toEqual(['stored', 'stored']);
  } finally {
    await other.close();
    await store.close();
  }
});

test('postgres feed: a process that was away for longer than the order of appending is kept finds no loss', async () => {
  const told: StoreEvent[] = [];
  const store = await openStore(server.url('away'), 'write', { tell: (event) => told.push(event) });
  const other = openOther('away');
  try {
    await store.reports.append(run(1, 0, 3));
    await database.begin(async (others) => {
      await others`DELETE FROM away.appended`;
      await others`UPDATE away.counters SET value = value + ${positionsKept} WHERE name = 'position'`;
    });
    for (const n of [2, 3]) {
      await other.append(run(n, 0, 1));
      await expect.poll(() => store.reports.latest(secondStream(n))?.observationsMs, patience).toBe(t0 * 1_000);
    }
    expect(told.filter(({ kind }) => kind === 'commitsLost')).toEqual([]);
  } finally {
    await other.close();
    await store.close();
  }
});

test.each([
  ['as many reports', 2],
  ['more', 4],
])('postgres feed: %s in the place of those that a database lost are noticed', async (_, count) => {
  const schema = `replaced_${count}`;
  const store = await openStore(server.url(schema), 'write');
  const lost: StoreEvent[] = [];
  const tell = (event: StoreEvent) => void (event.kind === 'commitsLost' && lost.push(event));
  const reader = await openStore(server.url(schema), 'read', { tell });
  const other = openOther(schema);
  try {
    await store.reports.append(run(1, 0, 3));
    await store.reports.append(run(1, 3, 2));
    await expect.poll(() => reader.reports.latest(secondStream(1))?.observationsMs, patience).toBe((t0 + 4) * 1_000);
    await other.append(run(2, 0, count), undefined, losing(schema));
    for (const { reports } of [store, reader]) {
      await expect.poll(() => reports.latest(secondStream(2))?.observationsMs, patience).toBe((t0 + count - 1) * 1_000);
      expect(reports.latest(secondStream(1))?.observationsMs).toBe((t0 + 4) * 1_000);
    }
    expect(lost).toMatchObject([{ reason: expect.stringContaining('position 5, and now it has others there') }]);
    await store.reports.append(run(3, 0, 1));
    await expect.poll(() => reader.reports.latest(secondStream(3))?.observationsMs, patience).toBe(t0 * 1_000);
    expect((await reader.reports.appendedAfter(3, 10)).reports.map(keyOf)).toEqual(
      [...run(2, 0, count), ...run(3, 0, 1)].map(keyOf),
    );
  } finally {
    await other.close();
    await reader.close();
    await store.close();
  }
});

test('postgres feed: a lost batch that is sent again, and gets its position back, does not hide another one before it', async () => {
  const store = await openStore(server.url('repeated'), 'write');
  const reader = await openStore(server.url('repeated'), 'read');
  const other = openOther('repeated');
  try {
    await store.reports.append(run(1, 0, 3));
    await store.reports.append(run(1, 3, 1));
    await store.reports.append(run(1, 4, 1));
    await expect.poll(() => reader.reports.latest(secondStream(1))?.observationsMs, patience).toBe((t0 + 4) * 1_000);
    await other.appendTogether([run(2, 0, 1), run(1, 4, 1)], losing('repeated'));
    for (const { reports } of [store, reader])
      await expect.poll(() => reports.latest(secondStream(2))?.observationsMs, patience).toBe(t0 * 1_000);
  } finally {
    await other.close();
    await reader.close();
    await store.close();
  }
});

test('postgres feed: a batch over more partitions than a pool takes statements is followed', async () => {
  const url = server.url('spread');
  await migratePostgres(url, 60_000);
  const store = await openStore(url, 'write');
  const reader = await openStore(url, 'read');
  const spread = (n: number) => Array.from({ length: 60 }, (_, i) => report(secondStream(n), t0 + 60 * i, t0 + 60 * i));
  const newest = (n: number) => reader.reports.latest(secondStream(n))?.observationsMs;
  try {
    await store.reports.append(spread(1));
    await expect.poll(() => newest(1), patience).toBe((t0 + 59 * 60) * 1_000); // all partitions are known by then
    await store.reports.append(spread(2));
    await expect.poll(() => newest(2), patience).toBe((t0 + 59 * 60) * 1_000);
    expect((await reader.reports.appendedAfter(0, 200)).reports).toHaveLength(120);
  } finally {
    await reader.close();
    await store.close();
  }
});

test('postgres feed: many concurrent reads of what is no longer in memory are all answered', async () => {
  const store = await openStore(server.url('herd'), 'write');
  await store.reports.append(run(1, 0, 20));
  const restarted = await openStore(server.url('herd'), 'read');
  try {
    const asked = Array.from({ length: 200 }, () => restarted.reports.appendedAfter(0, 256));
    for (const { reports } of await Promise.all(asked)) expect(reports).toHaveLength(20);
  } finally {
    await restarted.close();
    await store.close();
  }
});

test('postgres feed: a damaged batch does not stop followers', async () => {
  const store = await openStore(server.url('damaged'), 'write');
  const reader = await openStore(server.url('damaged'), 'read');
  const other = openOther('damaged');
  try {
    const damaging =
      (plain: Run): Run =>
      async (text, parameters) => {
        const rows = await plain(text, parameters);
        if (text.includes('INSERT INTO "damaged".appended'))
          await plain('UPDATE damaged.appended SET keys = set_byte(keys, 10, 255 - get_byte(keys, 10))');
        return rows as never; // as they came
      };
    await other.append(run(1, 0, 2), undefined, damaging);
    await store.reports.append(run(2, 0, 2));
    for (const { reports } of [store, reader])
      for (const n of [1, 2])
        await expect.poll(() => reports.latest(secondStream(n))?.observationsMs, patience).toBe((t0 + 1) * 1_000);
    expect((await reader.reports.appendedAfter(2, 10)).reports.map(keyOf)).toEqual(run(2, 0, 2).map(keyOf));
  } finally {
    await other.close();
    await reader.close();
    await store.close();
  }
});

/** A feed of its own, some of whose statements can be made to fail, once or for good. */
const openFailing = async (schema: string, partitionMs: number) => {
  const pool = openPool(parseAddress(server.url(schema)), 1, 20_000);
  const tables = tablesOf(schema);
  let failing: string | undefined;
  let isForGood = false;
  const sometimes: Run = async (text, parameters) => {
    if (failing === undefined || !text.includes(failing)) return pool.run(text, parameters);
    if (!isForGood) failing = undefined;
    throw new Error('away for a moment');
  };
  const partitions = createPartitions(sometimes, tables, partitionMs);
  await partitions.refresh();
  const source = { run: sometimes, damage: createDamageLog(), byKeys: createKeyReads(sometimes, tables, partitions) };
  const feed = await openFeed({ ...source, tables, partitions, others: source });
  return {
    feed,
    fail: (text: string, forGood = false): void => {
      failing = text;
      isForGood = forGood;
    },
    hasFailed: () => failing === undefined,
    close: async () => {
      await feed.close();
      await pool.close();
    },
  };
};

test('postgres feed: what retention removed is forgotten also where the first attempt to hear of it failed', async () => {
  const url = server.url('forgotten');
  await migratePostgres(url, 60_000);
  const store = await openStore(url, 'write');
  await store.reports.append([...run(1, 0, 1), ...run(2, 600, 1)]);
  const { feed, fail, hasFailed, close } = await openFailing('forgotten', 60_000);
  try {
    expect(feed.latest(secondStream(1))?.observationsMs).toBe(t0 * 1_000);
    fail('SELECT feed_id FROM "forgotten".heads');
    expect(await store.reports.trim({ beforeMs: (t0 + 300) * 1_000, bytesMax: 1e12 })).toMatchObject({ removed: 1 });
    await expect.poll(hasFailed, patience).toBe(true);
    await expect.poll(() => feed.latest(secondStream(1)), patience).toBeUndefined();
    expect(feed.latest(secondStream(2))?.observationsMs).toBe((t0 + 600) * 1_000);
  } finally {
    await close();
    await store.close();
  }
});

test('postgres feed: a loss is recovered also when the first attempt failed', async () => {
  const store = await openStore(server.url('flaky'), 'write');
  const other = openOther('flaky');
  await store.reports.append(run(1, 0, 3));
  await store.reports.append(run(1, 3, 2));
  const { feed, fail, hasFailed, close } = await openFailing('flaky', 86_400_000);
  try {
    fail('SELECT h.feed_id');
    await other.append(run(2, 0, 2), undefined, losing('flaky'));
    await expect.poll(hasFailed, patience).toBe(true);
    await expect.poll(() => feed.latest(secondStream(2))?.observationsMs, patience).toBe((t0 + 1) * 1_000);
  } finally {
    await close();
    await other.close();
    await store.close();
  }
});

test('postgres feed: changes of administrative records are noticed also when reports cannot be read', async () => {
  const store = await openStore(server.url('apart'), 'write');
  const { feed, fail, close } = await openFailing('apart', 86_400_000);
  try {
    fail('"apart".reports', true);
    await store.reports.append(run(1, 0, 3));
    const heard = new Promise<void>((resolve) => feed.onAdminChanged(resolve));
    await store.admin.log({ atMs: 1, actor: 'test', action: 'look', detail: {} });
    await heard;
    expect(feed.latest(secondStream(1))).toBeUndefined();
  } finally {
    await close();
    await store.close();
  }
});

test('postgres feed: a reading that takes long does not keep the first report of a day from those who follow', async () => {
  const url = server.url('slowly');
  await migratePostgres(url, 60_000);
  const store = await openStore(url, 'write');
  const reader = await openStore(url, 'read');
  const held = await database.reserve();
  try {
    await held`BEGIN`;
    await held`LOCK TABLE slowly.quarantine IN ACCESS EXCLUSIVE MODE`;
    const counted = reader.quarantine.count();
    const wake = woken(reader);
    await store.reports.append(run(1, 0, 1));
    await wake;
    expect(reader.reports.latest(secondStream(1))?.observationsMs).toBe(t0 * 1_000);
    await held`COMMIT`;
    expect(await counted).toBe(0);
  } finally {
    held.release();
    await reader.close();
    await store.close();
  }
});

test('postgres feed: a damaged newest report fails no reading of those before it, and takes its place when it is sent again', async () => {
  const store = await openStore(server.url('torn'), 'write');
  await store.reports.append(run(1, 0, 3));
  await database`UPDATE torn.reports SET record = set_byte(record, 20, 255 - get_byte(record, 20))
    WHERE observations = ${(t0 + 2) * 1_000}`;
  const reader = await openStore(server.url('torn'), 'read');
  try {
    expect((await reader.reports.page(secondStream(1), t0, 2)).reports.map(keyOf)).toEqual(run(1, 0, 2).map(keyOf));
    expect((await reader.reports.page(secondStream(1), t0, 3)).reports.map(keyOf)).toEqual(run(1, 0, 2).map(keyOf));
    expect(await store.reports.append(run(1, 0, 3))).toEqual(['duplicate', 'duplicate', 'stored']);
    expect((await reader.reports.page(secondStream(1), t0, 3)).reports.map(keyOf)).toEqual(run(1, 0, 3).map(keyOf));
    expect((await store.reports.stats()).reports).toBe(3);
  } finally {
    await reader.close();
    await store.close();
  }
});
