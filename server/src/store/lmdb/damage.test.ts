import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { flipInFile } from '../../../../tests/damage/flip.ts';
import { partsOf } from '../../../../tests/damage/pages.ts';
import { act, testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { encodeRun } from '../format/report-run.ts';
import { openStore } from '../open.ts';
import type { Store, StoredReport } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import { openEnvironment, openTable, type Table } from './environment.ts';
import { pagesFile } from './pages-file.ts';
import { reportKey } from './report-tables.ts';

const { report } = await createSignedReports();
const t0 = 1_763_200_000;
const [first, second] = [secondStream(1), secondStream(2)];
const run = (feedId: FeedId, from: number, count: number): readonly StoredReport[] =>
  Array.from({ length: count }, (_, i) => report(feedId, t0 + from + i, t0 + from + i));
const keysOf = (reports: readonly StoredReport[]): readonly number[] =>
  reports.map(({ observationsMs }) => observationsMs / 1_000 - t0);
const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from }, (_, i) => from + i);

let folder: string;
const events: StoreEvent[] = [];
const open = (mode: 'read' | 'write' = 'write'): Promise<Store> =>
  openStore(folder, mode, { tell: (event) => void events.push(event) });
const damagedTables = (): readonly string[] =>
  events.flatMap((event) => (event.kind === 'damaged' ? [event.table] : []));

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-damaged-'));
  events.length = 0;
  const store = await open();
  // Six full runs of each, and one of 14 reports.
  await store.reports.append([...run(first, 0, 206), ...run(second, 0, 206)]);
  await store.close();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Changes records of a closed store behind its back. */
const tamper = async (environment: string, name: string, change: (table: Table) => void): Promise<void> => {
  const opened = openEnvironment(join(folder, environment), false);
  const table = openTable(opened, name, name === 'runs');
  opened.root.transactionSync(() => change(table));
  await opened.root.close();
};

const flipped = (value: Buffer, at: number): Buffer => {
  const copy = Buffer.from(value);
  copy[at] = (copy[at] as number) ^ 4;
  return copy;
};

/** Full reports of a page, as the API sends them. */
const textsOf = (json: Buffer): readonly string[] => json.toString().match(/0x[0-9a-f]{400,}/g) ?? [];
const textOf = ({ fullReport }: StoredReport): string => `0x${Buffer.from(fullReport).toString('hex')}`;

/** Flips a bit of the nth record of a table. */
const flipValue = (environment: string, name: string, nth: number, at: number): Promise<void> =>
  tamper(environment, name, (table) => {
    const { key, value } = [...table.getRange()][nth] as { key: Buffer; value: Buffer }; // there are enough
    table.put(key, flipped(value, at < 0 ? value.length + at : at));
  });

test('damage: a damaged run at the end loses its reports, does not stop writing, and they can be stored again', async () => {
  await flipValue('reports', 'runs', 6, 10);
  const store = await open();
  expect(store.reports.latest(first)?.observationsMs).toBe((t0 + 191) * 1_000);
  expect(store.reports.newestMs(first)).toBe((t0 + 191) * 1_000);
  expect(await store.reports.neighbours(first, t0 + 200)).toMatchObject({ damaged: true });
  expect(await store.reports.append([...run(second, 206, 1), ...run(first, 206, 1)])).toEqual(['stored', 'stored']);
  expect(damagedTables()).toContain('runs');
  expect(store.reports.latest(first)?.observationsMs).toBe((t0 + 206) * 1_000);
  expect(keysOf((await store.reports.page(first, t0, 1_000)).reports)).toEqual([...range(0, 192), 206]);
  const { json, damaged } = await store.reports.renderedPage(first, t0, 1_000);
  expect([textsOf(json).length, damaged]).toEqual([193, true]);
  expect(await store.reports.append(run(first, 176, 30))).toEqual([
    ...range(0, 16).map(() => 'duplicate'),
    ...range(0, 14).map(() => 'stored'),
  ]);
  for (const feedId of [first, second])
    expect(keysOf((await store.reports.page(feedId, t0, 1_000)).reports)).toEqual(range(0, 207));
  expect((await store.reports.stats()).reports).toBe(414);
  expect(await store.findDamage()).toEqual([]);
  await store.close();
});

test('damage: the newest reports of a damaged run are the latest again as soon as some of them are stored again', async () => {
  await flipValue('reports', 'runs', 6, 10);
  const store = await open();
  expect(store.reports.latest(first)?.observationsMs).toBe((t0 + 191) * 1_000);
  await store.reports.append(run(first, 192, 5));
  expect(store.reports.latest(first)?.observationsMs).toBe((t0 + 196) * 1_000);
  expect(store.reports.newestMs(first)).toBe((t0 + 196) * 1_000);
  await store.close();
});

test('damage: the reports of a damaged run in the middle can be stored again, in any order and between restarts', async () => {
  await flipValue('reports', 'runs', 2, 10);
  for (const from of [80, 64, 95, 70]) {
    const store = await open();
    expect(await store.reports.append(run(first, from, 1))).toEqual(['stored']);
    await store.close();
  }
  const store = await open();
  expect((await store.reports.append(run(first, 60, 40))).filter((outcome) => outcome === 'stored')).toHaveLength(28);
  expect(keysOf((await store.reports.page(first, t0, 1_000)).reports)).toEqual(range(0, 206));
  expect(await store.findDamage()).toEqual([]);
  await store.close();
});

test('damage: one damaged report is one missing report, for a moment, a page, what is rendered and what was appended', async () => {
  await flipValue('reports', 'runs', 2, -20); // in the last report of the run
  const store = await open();
  const expected = [...range(0, 95), ...range(96, 206)];
  expect(await store.reports.at([first, second], t0 + 95)).toMatchObject([undefined, { feedId: second }]);
  expect(await store.reports.neighbours(first, t0 + 95)).toMatchObject({ damaged: true });
  expect(keysOf((await store.reports.page(first, t0, 1_000)).reports)).toEqual(expected);
  expect(await store.reports.renderedPage(first, t0, 95)).toMatchObject({ damaged: true, more: true });
  const page = await store.reports.renderedPage(first, t0 + 50, 50);
  expect([textsOf(page.json).length, page.lastMs]).toEqual([50, (t0 + 100) * 1_000]);
  const { reports, positions, missed } = await store.reports.appendedAfter(0, 1_000);
  expect(keysOf(reports.slice(0, 205))).toEqual(expected);
  expect([positions[94], positions[95], missed]).toEqual([95, 97, false]);
  expect(await store.reports.append(run(first, 95, 1))).toEqual(['stored']);
  expect(keysOf((await store.reports.page(first, t0, 1_000)).reports)).toEqual(range(0, 206));
  expect((await store.reports.stats()).reports).toBe(412);
  expect(await store.findDamage()).toEqual([]);
  await store.close();
});

test('damage: whichever bit of a compressed run is flipped, no wrong byte is served, other runs are, and a scan names it', async () => {
  const file = pagesFile(join(folder, 'reports'));
  const values = partsOf(file).filter(({ kind, table }) => kind === 'value' && table === 'runs');
  const known = new Set([...run(first, 0, 206), ...run(second, 0, 206)].map(textOf));
  for (const [i, { from, to, key }] of values.entries()) {
    // The byte that says how it is compressed, its length, and the rest.
    const places = [0, 1, 2, 3, 4, 5 + ((i * 7_919) % (to - from - 5))];
    const at = places[i % places.length] as number; // one of them
    const bit = [0, 7, 3, 5][i % 4] as number; // one of four
    flipInFile(file, from + at, bit);
    const reader = await open('read');
    const served = (
      await Promise.all([first, second].map((feedId) => reader.reports.renderedPage(feedId, t0, 1_000)))
    ).flatMap(({ json }) => textsOf(json));
    const name = `bit ${bit} of byte ${at} of ${key?.toString('hex')}`;
    expect(
      served.filter((text) => !known.has(text)),
      name,
    ).toEqual([]);
    expect(new Set(served).size, name).toBe(served.length);
    expect(served.length, name).toBeGreaterThanOrEqual(412 - 32);
    const { entries } = await reader.reports.scan(undefined, 100_000);
    const isNamed = entries.some(({ error }) => error !== undefined);
    expect(isNamed || served.length === 412, name).toBe(true); // a length that is too long has no effect
    await reader.close();
    flipInFile(file, from + at, bit);
  }
});

test('damage: a damaged batch of the append order counts as missed, and what follows is read', async () => {
  const store = await open();
  await store.reports.append(run(first, 206, 2));
  await store.close();
  await flipValue('reports', 'appended', 0, 9);
  const reader = await open('read');
  expect(await reader.reports.appendedAfter(3, 10)).toMatchObject({
    positions: [413, 414],
    position: 414,
    missed: true,
  });
  expect(await reader.reports.appendedAfter(412, 10)).toMatchObject({ positions: [413, 414], missed: false });
  await reader.close();
  await flipValue('reports', 'appended', 1, 9);
  const again = await open('read');
  expect(await again.reports.appendedAfter(412, 10)).toMatchObject({ positions: [], position: 414, missed: true });
  await again.close();
});

test.each(['numbers', 'feedIds'])(
  'damage: a damaged row of %s serves no other stream’s reports, and is derived',
  async (name) => {
    // The number of the first stream becomes that of the second, or its feed ID another one.
    await tamper('reports', name, (table) => {
      const [one] = [...table.getRange()] as [{ key: Buffer; value: Buffer }]; // there are two
      const value = Buffer.from(one.value);
      value[3] = name === 'numbers' ? 2 : 9;
      table.put(one.key, value);
    });
    const reader = await open('read');
    expect((await reader.reports.at([first], t0))[0]?.fullReport).toEqual(run(first, 0, 1)[0]?.fullReport);
    expect(damagedTables()).toEqual([name]);
    await reader.close();
    await (await open()).close();
    events.length = 0;
    await (await open()).close();
    expect(damagedTables()).toEqual([]);
  },
);

test('damage: format, counters and position are derived where they are damaged', async () => {
  for (const nth of [0, 1, 3]) await flipValue('reports', 'meta', nth, 0);
  const store = await open();
  expect(await store.reports.position()).toBe(412);
  expect(await store.reports.append(run(first, 206, 1))).toEqual(['stored']);
  expect(await store.reports.stats()).toMatchObject({ reports: 413, streams: 2 });
  expect(await store.reports.position()).toBe(413);
  await store.close();
});

test('damage: a damaged account, stream or audit entry affects nothing else, and can be written again', async () => {
  const store = await open();
  const streams = [testStream(first), testStream(second)];
  await store.admin.update('stream', [first, second], () => streams, act);
  await store.close();
  await flipValue('admin', 'records', 0, 12);
  await flipValue('admin', 'audit', 0, 12);
  const damaged = await open();
  expect(await damaged.admin.list('stream')).toEqual([streams[1]]);
  await expect(damaged.admin.get('stream', first)).rejects.toThrow(`stream/${first} does not match its checksum`);
  expect((await damaged.findDamage()).map(({ table }) => table)).toEqual(['records', 'audit']);
  await damaged.admin.update('stream', [first], () => streams.slice(0, 1), act);
  expect(await damaged.admin.list('stream')).toEqual(streams);
  expect(await damaged.admin.auditAfter(1, 10)).toMatchObject([{ sequence: 2 }]);
  await damaged.close();
});

test('damage: whichever bit of a key is flipped, no report is served in the place of another, none twice, and new ones are stored', async () => {
  const file = pagesFile(join(folder, 'reports'));
  const intact = join(folder, 'intact');
  cpSync(file, intact);
  const names = new Map(
    [first, second].flatMap((feedId) => run(feedId, 0, 207).map((one, i) => [textOf(one), `${feedId} ${i}`] as const)),
  );
  const keys = partsOf(file).filter(({ kind, table }) => kind === 'key' && table === 'runs');
  const places = [3, 5, 7, 8, 9].flatMap((byte) => [0, 1, 4, 7].map((bit) => [byte, bit] as const));
  for (const [i, { key, from }] of keys.entries()) {
    const [byte, bit] = places[(i * 3) % places.length] as readonly [number, number]; // one of them
    const name = `bit ${bit} of byte ${byte} of key ${key?.toString('hex')}`;
    flipInFile(file, from + byte, bit);
    const store = await open();
    for (const feedId of [first, second]) {
      expect((await store.reports.append(run(feedId, 206, 1)))[0], name).not.toBe('conflict');
      const { reports } = await store.reports.page(feedId, t0, 1_000);
      const { json } = await store.reports.renderedPage(feedId, t0, 1_000);
      const found = textsOf(json).map((text) => names.get(text));
      expect(found, name).toEqual(keysOf(reports).map((one) => `${feedId} ${one}`));
      expect(keysOf(reports), name).toEqual([...new Set(keysOf(reports))].sort((a, b) => a - b));
    }
    const { entries } = await store.reports.scan(undefined, 100_000);
    const found = [...(await store.findDamage()), ...entries.flatMap(({ error }) => error ?? [])];
    expect(found.length, name).toBeGreaterThan(0);
    await store.close();
    cpSync(intact, file);
  }
});

test('damage: a roll-up under another stream’s key adds nothing to that stream’s candles', async () => {
  const store = await open();
  for (const [i, feedId] of [first, second, secondStream(3)].entries())
    await store.reports.append(
      range(0, 10).map((n) => ({
        ...report(feedId, t0 + 6_000 + n * 60, t0 + 6_000 + n * 60),
        price: BigInt(i + 1),
      })),
    );
  const candlesOf = (reader: Store) =>
    reader.reports.candles(secondStream(3), { from: t0, to: t0 + 9_000, resolution: 60 });
  const expected = await candlesOf(store);
  await store.close();
  const file = pagesFile(join(folder, 'reports'));
  const keys = partsOf(file).filter(({ kind, table, key }) => kind === 'key' && table === 'candles' && key?.[3] === 1);
  expect([expected.length, keys.length]).toEqual([10, 10]);
  for (const { from } of keys) {
    flipInFile(file, from + 3, 1);
    const reader = await open('read');
    expect(await candlesOf(reader)).toEqual(expected);
    await reader.close();
    flipInFile(file, from + 3, 1);
  }
});

test('damage: reports that are stored twice are given once', async () => {
  await tamper('reports', 'runs', (table) => {
    const key = reportKey(1, (t0 + 40) * 1_000);
    table.put(key, encodeRun(key, run(first, 20, 21)));
  });
  const reader = await open('read');
  expect(textsOf((await reader.reports.renderedPage(first, t0, 1_000)).json)).toHaveLength(206);
  await reader.close();
});

test.each([
  ['a report', -20],
  ['the index of a run', 10],
])('damage: where %s was damaged, what is stored again counts once in its minute, hour and day', async (_, at) => {
  const third = secondStream(3);
  const day = t0 - (t0 % 86_400);
  const priced = range(0, 206).map((i) => {
    const price = BigInt((i * 37) % 101);
    return { ...report(third, day + i, day + i, price), price };
  });
  const store = await open();
  await store.reports.append(priced);
  const candlesOf = async (reader: Store) =>
    Promise.all(
      [60, 3_600, 86_400].map((resolution) =>
        reader.reports.candles(third, { from: day, to: day + 86_399, resolution }),
      ),
    );
  const expected = await candlesOf(store);
  await store.close();
  await flipValue('reports', 'runs', 15, at); // the second of the third stream
  for (const i of [50, 63, 40]) {
    const again = await open();
    await again.reports.append(priced.slice(i, i + 1));
    await again.close();
  }
  const last = await open();
  await last.reports.append(priced);
  expect(await candlesOf(last)).toEqual(expected);
  await last.close();
});

test('lineage: it survives a restart, and a copy has a new one', async () => {
  const lineage = async (at: string): Promise<string> => {
    const store = await openStore(at, 'write');
    const { epoch, key } = await store.reports.lineage();
    await store.close();
    return Buffer.concat([epoch, key]).toString('hex');
  };
  const before = await lineage(folder);
  expect(await lineage(folder)).toBe(before);
  const copy = `${folder}-copy`;
  cpSync(folder, copy, { recursive: true });
  expect(await lineage(copy)).not.toBe(before);
  rmSync(copy, { recursive: true });
});

test('running mark: a start after a process that did not close the store says so, and counts', async () => {
  writeFileSync(join(folder, 'reports', 'running'), '{"pid":1,"unexpectedEnds":1}\n');
  await (await open()).close();
  expect(events).toContainEqual({ kind: 'endedUnexpectedly', times: 2 });
  events.length = 0;
  await (await open()).close();
  expect(events.filter(({ kind }) => kind === 'endedUnexpectedly')).toEqual([]);
});

test('running mark: it is there before LMDB reads the store, and until both environments are closed', async () => {
  const mark = join(folder, 'reports', 'running');
  const seen: boolean[] = [];
  writeFileSync(mark, '{"pid":1,"unexpectedEnds":0}\n');
  writeFileSync(join(folder, 'admin', 'data.mdb'), 'damaged');
  await expect(
    openStore(folder, 'write', {
      tell: ({ kind }) => void seen.push(kind === 'endedUnexpectedly' && existsSync(mark)),
    }),
  ).rejects.toThrow();
  expect([seen, existsSync(mark)]).toEqual([[true], false]);
});

test('running mark: a process that is rejected because another writes leaves the other’s mark', async () => {
  const store = await open();
  events.length = 0;
  await expect(open()).rejects.toMatchObject({ code: 'store_locked' });
  expect([events, existsSync(join(folder, 'reports', 'running'))]).toEqual([[], true]);
  await store.close();
  expect(existsSync(join(folder, 'reports', 'running'))).toBe(false);
});
