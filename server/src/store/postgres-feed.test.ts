// The order of appending across nodes, and that no report depends on a notification.
import { afterAll, expect, test } from 'vitest';
import { startPostgres } from '../../../tests/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../tests/signed-reports.ts';
import { openStore } from './open.ts';
import { parseAddress } from './postgres-address.ts';
import { appendBatch } from './postgres-append.ts';
import { openWriter, type Run } from './postgres-connection.ts';
import { spanner } from './postgres-partitions.ts';
import { migratePostgres, tablesOf } from './postgres-schema.ts';
import type { Store, StoredReport } from './store.ts';

const { report } = await createSignedReports();
const server = await startPostgres();
const database = server.connect();
afterAll(async () => {
  await database.end();
  await server.stop();
});

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
  const writer = openWriter(parseAddress(url));
  const tables = tablesOf(schema);
  const append = (
    batch: readonly StoredReport[],
    before: () => Promise<void> = async () => {},
    via: (run: Run) => Run = (plain) => plain,
  ) =>
    writer.write(async (plain) => {
      const appended = await appendBatch(via(plain), tables, spanner(tables, 86_400_000), batch);
      await before();
      return appended;
    });
  return { append, close: writer.close };
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

test('postgres feed: a batch that is held open keeps those after it waiting, and nobody who follows misses one', async () => {
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

test('postgres feed: the control, a sequence alone, loses the batch that was held open', async () => {
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

test('postgres feed: every connection is ended by the server, and what came meanwhile is read after', async () => {
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

test('postgres feed: after a database lost its last batch, latest does not go back and those who follow go on', async () => {
  const store = await openStore(server.url('behind'), 'write');
  const other = openOther('behind');
  try {
    await store.reports.append(run(1, 0, 3));
    await store.reports.append(run(1, 3, 2));
    await database.begin(async (lossy) => {
      for (const statement of lossOf('behind')) await lossy.unsafe(statement);
    });
    const following = () => store.reports.appendedAfter(5, 10);
    await expect.poll(following, patience).toMatchObject({ reports: [], position: 3, missed: true });
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

test.each([
  ['as many reports', 2],
  ['more', 4],
])('postgres feed: %s in the place of those that a database lost are noticed', async (_, count) => {
  const schema = `replaced_${count}`;
  const store = await openStore(server.url(schema), 'write');
  const reader = await openStore(server.url(schema), 'read');
  const other = openOther(schema);
  try {
    await store.reports.append(run(1, 0, 3));
    await store.reports.append(run(1, 3, 2));
    await expect.poll(() => reader.reports.latest(secondStream(1))?.observationsMs, patience).toBe((t0 + 4) * 1_000);
    // In one transaction: nobody can look between the loss and what comes in its place.
    let isLost = false;
    const losing =
      (plain: Run): Run =>
      async (text, parameters) => {
        if (!isLost && !text.includes('advisory')) {
          isLost = true;
          for (const statement of lossOf(schema)) await plain(statement);
        }
        return plain(text, parameters);
      };
    await other.append(run(2, 0, count), undefined, losing);
    for (const { reports } of [store, reader]) {
      await expect.poll(() => reports.latest(secondStream(2))?.observationsMs, patience).toBe((t0 + count - 1) * 1_000);
      expect(reports.latest(secondStream(1))?.observationsMs).toBe((t0 + 4) * 1_000);
    }
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
