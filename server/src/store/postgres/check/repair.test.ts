// Repairing a store in PostgreSQL: rows of every table are corrupted, the rest is served and ingested, a check names them, a repair restores service,
// and what is lost comes back when it is sent again.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { act, registerSigners, testStream } from '../../../../../tests/support/running-ingest.ts';
import { startPostgres } from '../../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../../tests/support/signed-reports.ts';
import { openStore, repairStore } from '../../open.ts';
import type { NewReport, Store } from '../../store.ts';

const { report, signerSets } = await createSignedReports();
const server = await startPostgres();
const database = server.connect();
afterAll(server.stop);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-repair-postgres-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const t0 = 1_763_200_020;
const feedIds = [secondStream(1), secondStream(2)] as const;
const [first, second] = feedIds;
const run = (feedId: FeedId, from: number, count: number): readonly NewReport[] =>
  Array.from({ length: count }, (_, i) => {
    const price = BigInt(from + i + 1);
    return { ...report(feedId, t0 + from + i, t0 + from + i, price), price };
  });
const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from }, (_, i) => from + i);

const withStore = async <T>(schema: string, use: (store: Store) => Promise<T>): Promise<T> => {
  const store = await openStore(server.url(schema), 'write');
  return use(store).finally(store.close);
};

/** A store with 150 reports of each stream, in five batches, and some administration. */
const fill = (schema: string): Promise<void> =>
  withStore(schema, async ({ reports, admin, quarantine }) => {
    for (let i = 0; i < 150; i += 30) await reports.append(feedIds.flatMap((feedId) => run(feedId, i, 30)));
    await admin.update('stream', [...feedIds], () => feedIds.map((feedId) => testStream(feedId)), act);
    await registerSigners({ admin }, signerSets);
    const refused = { atMs: 1, code: 'unknown_stream', message: '', feedId: null, observationsMs: null };
    await quarantine.add(['a', 'b'].map((line) => ({ ...refused, line })));
  });

const repair = (schema: string, changes: { readonly dryRun?: boolean; readonly lossesOnly?: true } = {}) =>
  repairStore(server.url(schema), { dryRun: false, asideFolder: folder, nowMs: 1_763_200_000_000, ...changes });

/** Everything that a check finds wrong, by table. */
const faults = (schema: string): Promise<readonly string[]> =>
  withStore(schema, async (store) => {
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const { entries, next } = await store.reports.scan(cursor, 100);
      found.push(...entries.flatMap(({ error, table }) => (error ? [table] : [])));
      if (next === undefined) break;
      cursor = next;
    }
    return [...found, ...(await store.findDamage()).map(({ table }) => table)];
  });

const secondsOf = ({ reports }: Store, feedId: FeedId) =>
  reports.page(feedId, t0, 1_000).then((page) => page.reports.map(({ observationsMs }) => observationsMs / 1_000 - t0));
const candlesOf = (schema: string) =>
  withStore(schema, ({ reports }) =>
    reports.candles(first, { from: t0 - 600, to: t0 + 600, resolution: 60 }, () => false),
  );
const asideFiles = () => readdirSync(folder).filter((name) => name.startsWith('set-aside-'));
const feed = (feedId: FeedId) => Buffer.from(feedId.slice(2), 'hex');
const ms = (at: number) => (t0 + at) * 1_000;

test('postgres repair: an intact store is not changed', async () => {
  await fill('sound');
  expect(await repair('sound')).toEqual({ file: null, setAside: 0, rebuilt: {}, lost: [], left: [] });
  expect([asideFiles(), await faults('sound')]).toEqual([[], []]);
});

test('postgres repair: one flipped bit of a record, and a damaged key, are corrected', async () => {
  await fill('flipped');
  for (const [at, byte] of [
    [3, 2],
    [70, 40],
    [149, 200],
  ] as const)
    await database`UPDATE flipped.reports SET record = set_byte(record, ${byte}, get_byte(record, ${byte}) # 4)
      WHERE feed_id = ${feed(first)} AND observations = ${ms(at)}`;
  // To a moment of another day, to another stream, and to another begin.
  await database`UPDATE flipped.reports SET observations = observations + 3600000 WHERE feed_id = ${feed(second)} AND observations = ${ms(7)}`;
  await database`UPDATE flipped.reports SET feed_id = set_byte(feed_id, 9, 77) WHERE feed_id = ${feed(second)} AND observations = ${ms(8)}`;
  await database`UPDATE flipped.reports SET feed_id = substring(feed_id FROM 1 FOR 3) WHERE feed_id = ${feed(second)} AND observations = ${ms(9)}`;
  await database`UPDATE flipped.reports SET valid_from = valid_from - 5000 WHERE feed_id = ${feed(second)} AND observations = ${ms(10)}`;
  const before = await candlesOf('flipped');
  expect((await faults('flipped')).filter((table) => table === 'reports')).toHaveLength(7);
  const planned = await repair('flipped', { dryRun: true });
  expect([planned.rebuilt.reports, planned.lost, asideFiles()]).toEqual([7, [], []]);
  const { rebuilt, lost, setAside } = await repair('flipped');
  expect([rebuilt.reports, lost, setAside]).toEqual([7, [], expect.any(Number)]);
  expect(await faults('flipped')).toEqual([]);
  expect(await candlesOf('flipped')).toEqual(before);
  await withStore('flipped', async (store) => {
    for (const feedId of feedIds) expect(await secondsOf(store, feedId)).toEqual(range(0, 150));
    expect((await store.reports.appendedAfter(0, 1_000)).reports).toHaveLength(300);
  });
  expect((await repair('flipped')).setAside).toBe(0);
});

test('postgres repair: what cannot be proven is lost by name, is told as damaged without an alarm, and comes back when sent again', async () => {
  await fill('destroyed');
  const before = await candlesOf('destroyed');
  await database`UPDATE destroyed.reports SET record = overlay(record PLACING '\\x0000000000000000'::bytea FROM 30)
    WHERE feed_id = ${feed(first)} AND observations IN (${ms(5)}, ${ms(6)}, ${ms(149)})`;
  const planned = await repair('destroyed', { dryRun: true });
  expect([planned.file, asideFiles()]).toEqual([null, []]);
  const { file, lost } = await repair('destroyed');
  expect(lost).toMatchObject([
    { table: 'reports', feedId: first, fromMs: ms(5), toMs: ms(6), reports: 2 },
    { table: 'reports', feedId: first, fromMs: ms(149), toMs: ms(149), reports: 1 },
  ]);
  expect(planned.lost).toEqual(lost);
  const rows = readFileSync(file ?? '', 'utf8')
    .trim()
    .split('\n');
  expect(rows.map((row) => JSON.parse(row)).filter(({ table }) => table === 'reports')).toHaveLength(3);
  expect(await faults('destroyed')).toEqual([]);
  await withStore('destroyed', async (store) => {
    const { reports } = store;
    expect(await reports.neighbours(first, t0 + 5)).toMatchObject({ damaged: true });
    expect(reports.latest(first)?.observationsMs).toBe(ms(148));
    expect(await reports.stats()).toMatchObject({ reports: 297, reportBytes: 297 * 736 });
    expect((await reports.windows(first, t0, t0 + 20, 100)).length).toBe(19);
    expect(store.damage()).toEqual([]);
    const again = await reports.append(run(first, 0, 150));
    expect(again.flatMap((outcome, i) => (outcome === 'stored' ? [i] : []))).toEqual([5, 6, 149]);
    expect(again.filter((outcome) => outcome === 'duplicate')).toHaveLength(147);
    expect(await secondsOf(store, first)).toEqual(range(0, 150));
    expect(await reports.stats()).toMatchObject({ reports: 300, reportBytes: 300 * 736 });
  });
  expect(await candlesOf('destroyed')).toEqual(before);
  expect(await repair('destroyed')).toMatchObject({ setAside: 0, lost: [] });
});

test('postgres repair: a lost report is forgotten once the reports around it meet', async () => {
  await fill('settled');
  await database`INSERT INTO settled.reports VALUES (${feed(first)}, ${ms(5) + 400}, ${ms(5) + 400}, ''::bytea)`;
  expect(await repair('settled', { lossesOnly: true })).toMatchObject({ lost: [] });
  expect(await database`SELECT 1 FROM settled.reports WHERE octet_length(record) = 0`).toHaveLength(0);
});

test('postgres repair: rows of every other table are derived again or named as lost, and the rest is served and ingested meanwhile', async () => {
  await fill('all');
  const before = await candlesOf('all');
  const flip = (table: string, column: string, where: string) =>
    database.unsafe(
      `UPDATE "all".${table} SET ${column} = set_byte(${column}, 10, get_byte(${column}, 10) # 4) WHERE ${where}`,
    );
  await flip('appended', 'keys', 'last_position = 120');
  await flip('appended', 'keys', 'last_position = 300');
  await database`UPDATE "all".appended SET first_position = 9 WHERE last_position = 240`;
  await database`UPDATE "all".heads SET observations = observations + 999000 WHERE feed_id = ${feed(first)}`;
  await database`UPDATE "all".heads SET feed_id = set_byte(feed_id, 20, 3) WHERE feed_id = ${feed(second)}`;
  await database`UPDATE "all".candles SET high = 'NaN', reports = 7 WHERE feed_id = ${feed(first)} AND minute = ${ms(0)}`;
  await database`UPDATE "all".candles SET feed_id = set_byte(feed_id, 20, 3) WHERE feed_id = ${feed(first)} AND minute = ${ms(60)}`;
  await database`UPDATE "all".partitions SET reports = reports + 5 WHERE reports > 0`;
  await database`UPDATE "all".partitions SET start_ms = start_ms + 4096 WHERE reports = 0`;
  await database`UPDATE "all".counters SET name = 'positiom' WHERE name = 'position'`;
  await database`DELETE FROM "all".counters WHERE name = 'trimmed'`;
  await database`UPDATE "all".lineage SET key = substring(key FROM 2)`;
  await flip('records', 'record', `key = '${first}'`);
  await database`UPDATE "all".records SET kind = 'streal' WHERE key = ${second}`;
  await flip('audit', 'record', 'sequence = 1');
  await database`UPDATE "all".audit SET sequence = 99 WHERE sequence = 2`;
  await flip('quarantine', 'record', 'sequence = 1');
  await withStore('all', async (store) => {
    for (const feedId of feedIds) expect(await secondsOf(store, feedId)).toEqual(range(0, 150));
    expect(await store.reports.append(run(first, 150, 2))).toEqual(['stored', 'stored']);
    // Without its newest report a stream is compared all the same.
    expect(await store.reports.append([report(second, t0 + 5, t0 + 5, 999n)])).toEqual(['conflict']);
    // The first report of the next day, whose partition is not listed.
    expect(await store.reports.append(run(second, 86_400, 1))).toEqual(['stored']);
    expect(await secondsOf(store, first)).toEqual(range(0, 152));
  });
  expect(new Set(await faults('all'))).toEqual(
    new Set(['appended', 'audit', 'counters', 'heads', 'lineage', 'partitions', 'quarantine', 'records']),
  );
  const { rebuilt, lost, left } = await repair('all');
  expect(rebuilt).toMatchObject({ appended: 1, candles: 3, counters: 1, lineage: 1, records: 1, audit: 1 });
  expect(Object.keys(rebuilt)).toEqual(expect.arrayContaining(['heads', 'partitions']));
  expect(lost.map(({ table, what }) => `${table}: ${what}`)).toEqual([
    'appended: the order of appending from position 61 to 120',
    'appended: the order of appending from position 241 to 300',
    'records: one stream: it is neither served nor ingested',
    'quarantine: one quarantined line',
  ]);
  expect(left).toMatchObject([{ table: 'audit', key: '1' }]);
  expect(await faults('all')).toEqual(['audit']);
  const { candles } = await candlesOf('all');
  expect(candles.slice(0, 2)).toEqual(before.candles.slice(0, 2));
  await withStore('all', async ({ reports, admin, damage }) => {
    expect(await admin.list('stream')).toEqual([testStream(second)]);
    expect(await reports.position()).toBe(303);
    expect(await reports.appendedAfter(60, 5)).toMatchObject({ missed: true, positions: [121, 122, 123, 124, 125] });
    expect(await reports.appendedAfter(240, 5)).toMatchObject({ missed: true, positions: [301, 302, 303] });
    expect(await reports.appendedAfter(120, 5)).toMatchObject({ missed: false });
    expect(await reports.append(run(first, 152, 1))).toEqual(['stored']);
    expect(damage()).toEqual([]);
  });
  expect(await repair('all')).toMatchObject({ rebuilt: {}, lost: [] });
});

test('postgres damage: a damaged report that is sent again counts once in its minute', async () => {
  await fill('counted');
  const before = await candlesOf('counted');
  await database`UPDATE counted.reports SET record = '\\x00'::bytea WHERE feed_id = ${feed(first)} AND observations = ${ms(5)}`;
  await withStore('counted', async ({ reports }) => {
    expect(await reports.append(run(first, 5, 1))).toEqual(['stored']);
  });
  expect(await candlesOf('counted')).toEqual(before);
});

test('postgres retention: a partition that is emptied for space keeps the minute of the report that stays', async () => {
  const store = await openStore(server.url('roomy'), 'write');
  try {
    await store.reports.append([...run(first, 0, 30), ...run(second, 86_400, 1)]);
    expect(await store.reports.trim({ beforeMs: 0, bytesMax: 1 })).toMatchObject({ removed: 29, more: true });
    const { candles } = await store.reports.candles(first, { from: t0, to: t0 + 60, resolution: 60 }, () => false);
    expect(candles).toEqual([{ start: t0, open: 30n, high: 30n, low: 30n, close: 30n, reports: 1 }]);
    expect(await repair('roomy')).toMatchObject({ rebuilt: {}, lost: [] });
  } finally {
    await store.close();
  }
});
