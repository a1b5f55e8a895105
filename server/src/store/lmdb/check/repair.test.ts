import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { FeedId } from '@sealpost/protocol';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { flipInFile } from '../../../../../tests/damage/flip.ts';
import { partsOf } from '../../../../../tests/damage/pages.ts';
import { act, registerSigners, testStream } from '../../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../../tests/support/signed-reports.ts';
import { openStore, repairStore } from '../../open.ts';
import type { Store, StoredReport } from '../../store.ts';
import { openEnvironment, openTable, type Table } from '../environment.ts';
import { pagesFile } from '../pages-file.ts';

const { report, signerSets } = await createSignedReports();
const t0 = 1_763_200_020;
const feedIds = [secondStream(1), secondStream(2)] as const;
const [first] = feedIds;
const run = (feedId: FeedId, from: number, count: number): readonly StoredReport[] =>
  Array.from({ length: count }, (_, i) => report(feedId, t0 + from + i, t0 + from + i, BigInt(from + i + 1)));
const priced = (reports: readonly StoredReport[]) =>
  reports.map((one) => ({ ...one, price: BigInt(one.observationsMs / 1_000 - t0 + 1) }));

let base: string;
let folder: string;
beforeAll(async () => {
  base = mkdtempSync(join(tmpdir(), 'sealpost-repair-base-'));
  const store = await openStore(base, 'write');
  // A block of 89, which fills two pages, and a tail of 61 each.
  for (const feedId of feedIds) await store.reports.append(priced(run(feedId, 0, 150)));
  await store.admin.update('stream', [...feedIds], () => feedIds.map((feedId) => testStream(feedId)), act);
  await registerSigners(store, signerSets);
  const refused = { atMs: 1, code: 'unknown_stream', message: '', feedId: null, observationsMs: null };
  await store.quarantine.add(['a', 'b'].map((line) => ({ ...refused, line })));
  await store.close();
});
afterAll(() => rmSync(base, { recursive: true, force: true }));
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-repair-'));
  cpSync(base, folder, { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const repair = (changes: { readonly dryRun?: boolean; readonly lossesOnly?: true } = {}) =>
  repairStore(folder, { dryRun: false, asideFolder: folder, nowMs: 1_763_200_000_000, ...changes });

const tamper = async (environment: string, name: string, change: (table: Table) => void): Promise<void> => {
  const opened = openEnvironment(join(folder, environment), false);
  const table = openTable(opened, name);
  opened.root.transactionSync(() => change(table));
  await opened.root.close();
};

/** Changes the nth record of a table. */
const alter = (environment: string, name: string, nth: number, change: (value: Buffer) => void): Promise<void> =>
  tamper(environment, name, (table) => {
    const { key, value } = [...table.getRange()][nth] as { key: Buffer; value: Buffer }; // there are enough
    const altered = Buffer.from(value);
    change(altered);
    table.put(key, altered);
  });

const withStore = async <T>(use: (store: Store) => Promise<T>, mode: 'read' | 'write' = 'read'): Promise<T> => {
  const store = await openStore(folder, mode);
  return use(store).finally(store.close);
};

/** Everything that a check finds wrong. */
const faults = () =>
  withStore(async (store) => {
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const { entries, next } = await store.reports.scan(cursor, 1_000);
      found.push(...entries.flatMap(({ error, table }) => (error ? [`${table}: ${error.message}`] : [])));
      if (next === undefined) break;
      cursor = next;
    }
    return [
      ...found,
      ...[...(await store.findDamage()), ...store.damage()].map(({ table, reason }) => `${table}: ${reason}`),
    ];
  });

const secondsOf = (feedId: FeedId) =>
  withStore(async ({ reports }) =>
    (await reports.page(feedId, t0, 1_000)).reports.map(({ observationsMs }) => observationsMs / 1_000 - t0),
  );
const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from }, (_, i) => from + i);
const asideFiles = () => readdirSync(folder).filter((name) => name.startsWith('set-aside-'));

test('repair: an intact store is not changed', async () => {
  expect(await repair()).toEqual({ file: null, setAside: 0, rebuilt: {}, lost: [], left: [] });
  expect(asideFiles()).toEqual([]);
  for (const feedId of feedIds) expect(await secondsOf(feedId)).toEqual(range(0, 150));
});

test('repair: any one flipped bit of a run is corrected', async () => {
  const file = pagesFile(join(folder, 'reports'));
  const parts = partsOf(file).filter(
    ({ kind, table }) => (kind === 'key' || kind === 'value') && ['blocks', 'tail'].includes(table),
  );
  // One bit of each run's key and value; the keys of neighbors stay right.
  for (const [i, { from, to, kind }] of parts.entries())
    if (kind === (i % 4 < 2 ? 'value' : 'key')) flipInFile(file, from + ((i * 7_919) % (to - from)), i % 8);
  expect(await faults()).not.toEqual([]);
  const { lost, setAside, rebuilt } = await repair();
  expect(lost).toEqual([]);
  expect(setAside).toBeGreaterThan(2);
  expect(Object.keys(rebuilt)).toContain('blocks');
  expect(await faults()).toEqual([]);
  for (const feedId of feedIds) expect(await secondsOf(feedId)).toEqual(range(0, 150));
});

test('repair: reports that cannot be proven are lost by name, set aside in a file of their own, and come back when sent again', async () => {
  await alter('reports', 'blocks', 0, (value) => void value.fill(0xaa, value.length - 40, value.length - 20)); // the last report
  await alter('reports', 'tail', 1, (value) => void value.fill(0, 0, 20));
  const planned = await repair({ dryRun: true });
  expect([planned.file, planned.setAside, asideFiles()]).toEqual([null, 2, []]);
  const { file, setAside, lost } = await repair();
  expect(lost).toMatchObject([
    { table: 'blocks', feedId: first, fromMs: (t0 + 88) * 1_000, toMs: (t0 + 88) * 1_000, reports: 1 },
    { table: 'tail', feedId: feedIds[1], fromMs: (t0 + 89) * 1_000, toMs: (t0 + 149) * 1_000, reports: 61 },
  ]);
  expect(planned.lost.map(({ feedId, toMs, reports }) => [feedId, toMs, reports])).toEqual(
    lost.map(({ feedId, toMs, reports }) => [feedId, toMs, reports]),
  );
  expect([setAside, statSync(file ?? '').mode & 0o777]).toEqual([2, 0o600]);
  const lines = readFileSync(file ?? '', 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ environment, table }) => [environment, table])).toEqual([
    ['reports', 'blocks'],
    ['reports', 'tail'],
  ]);
  expect(await faults()).toEqual([]);
  expect(await secondsOf(first)).toEqual(range(0, 150).filter((n) => n !== 88));
  await withStore(async ({ reports }) => {
    expect(await reports.neighbours(first, t0 + 88)).toMatchObject({ damaged: true });
    expect(await reports.append(priced([...run(first, 88, 1), ...run(feedIds[1], 89, 61)]))).not.toContain('conflict');
  }, 'write');
  expect((await repair({ lossesOnly: true })).lost).toEqual([]);
  expect(await faults()).toEqual([]);
  expect(asideFiles()).toHaveLength(1);
});

test('repair: what is derived is derived again, whatever else is lost is named', async () => {
  const flip = (value: Buffer): void => void value.writeUInt8(value.readUInt8(9) ^ 4, 9);
  const candles = () =>
    withStore(({ reports }) => reports.candles(first, { from: t0 - 600, to: t0 + 600, resolution: 60 }, () => false));
  const before = await candles();
  await tamper('reports', 'numbers', (table) => void table.removeSync([...table.getKeys()][0] as Buffer));
  await tamper('reports', 'feedIds', (table) => void table.removeSync([...table.getKeys()][0] as Buffer));
  for (const name of ['candles', 'appended', 'quarantine', 'meta']) await alter('reports', name, 0, flip);
  await alter('admin', 'records', 0, flip);
  await alter('admin', 'audit', 0, flip);
  const { rebuilt, lost, left } = await repair();
  expect(rebuilt).toMatchObject({ candles: 1, numbers: 1 });
  expect(lost.map(({ table, what }) => `${table}: ${what}`)).toEqual([
    'quarantine: one quarantined line',
    'appended: the order of appending from position 1 to 150',
    'records: the ingest of reports that this signer set signed',
  ]);
  expect(left).toMatchObject([{ table: 'audit' }]);
  expect(await candles()).toEqual(before);
  for (const feedId of feedIds) expect(await secondsOf(feedId)).toEqual(range(0, 150));
  expect((await faults()).filter((fault) => !fault.startsWith('audit'))).toEqual([]);
  await withStore(async ({ reports }) => {
    expect(await reports.position()).toBe(300);
    expect(await reports.appendedAfter(3, 5)).toMatchObject({ missed: true, positions: [151, 152, 153, 154, 155] });
    expect(await reports.append(run(first, 150, 1))).toEqual(['stored']);
  }, 'write');
});

test('repair: it fails while another process may write', async () => {
  await withStore(async () => {
    await expect(repair()).rejects.toMatchObject({ code: 'store_locked' });
    expect((await repair({ dryRun: true })).lost).toEqual([]);
  }, 'write');
});

const allCandles = (feedId: FeedId) =>
  withStore(({ reports }) =>
    Promise.all(
      [60, 3_600, 86_400].map(async (resolution) => {
        const { candles } = await reports.candles(feedId, { from: t0 - 86_400, to: t0 + 86_400, resolution });
        return candles;
      }),
    ),
  );
const countsOf = async (feedId: FeedId) =>
  (await allCandles(feedId)).map((candles) => candles.map(({ reports }) => reports));

/** Has the first roll-up of each kind count a report more, as if one had been added twice. */
const countTwice = async (): Promise<void> => {
  for (const name of ['candles', 'hourCandles', 'dayCandles'])
    await alter('reports', name, 0, (value) => {
      value.writeUInt32BE(value.readUInt32BE(16) + 1, 16);
      value.writeUInt32BE(crc32(value.subarray(4), 1), 0);
    });
};

test('repair: roll-ups that are not what their reports make are rebuilt', async () => {
  const before = await allCandles(first);
  await countTwice();
  expect(await countsOf(first)).toEqual([[61, 60, 30], [151], [151]]);
  const rebuilt = { candles: 1, hourCandles: 1, dayCandles: 1 };
  expect(await repair({ dryRun: true })).toMatchObject({ setAside: 0, rebuilt, lost: [] });
  expect(await countsOf(first)).toEqual([[61, 60, 30], [151], [151]]);
  expect(await repair()).toEqual({ file: null, setAside: 0, rebuilt, lost: [], left: [] });
  expect(await allCandles(first)).toEqual(before);
  expect((await repair()).rebuilt).toEqual({});
});

test('repair: an hour or day that is not what its minutes make is rebuilt', async () => {
  const before = await allCandles(first);
  await alter('reports', 'dayCandles', 0, (value) => {
    value.writeUInt8(value.readUInt8(20 + 2 * 24 - 1) ^ 4, 20 + 2 * 24 - 1); // the end of the high
    value.writeUInt32BE(crc32(value.subarray(4), 1), 0);
  });
  expect(await allCandles(first)).not.toEqual(before);
  expect((await repair()).rebuilt).toEqual({ dayCandles: 1 });
  expect(await allCandles(first)).toEqual(before);
});

test('repair: what is lost leaves the roll-ups, and counts once when it is sent again', async () => {
  const before = await allCandles(first);
  await alter('reports', 'tail', 0, (value) => void value.fill(0, 0, 20));
  const { lost, rebuilt } = await repair();
  expect(lost).toMatchObject([{ feedId: first, reports: 61 }]);
  expect(rebuilt).toMatchObject({ candles: 2, hourCandles: 1, dayCandles: 1 });
  expect(await countsOf(first)).toEqual([[60, 29], [89], [89]]);
  for (const seconds of [run(first, 140, 1), run(first, 89, 61)])
    await withStore(({ reports }) => reports.append(priced(seconds)), 'write');
  expect(await allCandles(first)).toEqual(before);
});

test('repair: roll-ups that retention has shortened stay as they are', async () => {
  await withStore(async ({ reports }) => {
    const retention = { beforeMs: (t0 + 100) * 1_000, bytesMax: Number.POSITIVE_INFINITY };
    while ((await reports.trim(retention)).more);
  }, 'write');
  expect((await secondsOf(first))[0]).toBe(89);
  const before = await allCandles(first);
  expect((await repair()).rebuilt).toEqual({});
  expect(await allCandles(first)).toEqual(before);
});

test('repair: reports of a stream that was given another number are in its roll-ups', async () => {
  const [minutes = []] = await allCandles(first);
  for (const name of ['numbers', 'feedIds'])
    await tamper('reports', name, (table) => void table.removeSync([...table.getKeys()][0] as Buffer)); // that of the first
  await withStore(({ reports }) => reports.append(priced(run(first, 150, 1))), 'write');
  expect(await countsOf(first)).toEqual([[1], [1], [1]]);
  await repair();
  expect(await secondsOf(first)).toEqual(range(0, 151));
  expect(await countsOf(first)).toEqual([[60, 60, 31], [151], [151]]);
  expect((await allCandles(first))[0]?.slice(0, 2)).toEqual(minutes.slice(0, 2));
});
