import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { flipInFile } from '../../../../tests/damage/flip.ts';
import { partsOf } from '../../../../tests/damage/pages.ts';
import { act, testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../../../tests/support/signed-reports.ts';
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
  // Two blocks of 92, which fill two pages each, and a tail of 22 each.
  await store.reports.append([...run(first, 0, 206), ...run(second, 0, 206)]);
  await store.close();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Changes records of a closed store behind its back. */
const tamper = async (environment: string, name: string, change: (table: Table) => void): Promise<void> => {
  const opened = openEnvironment(join(folder, environment), false);
  const table = openTable(opened, name);
  opened.root.transactionSync(() => change(table));
  await opened.root.close();
};

const flipped = (value: Buffer, at: number): Buffer => {
  const copy = Buffer.from(value);
  copy[at] = (copy[at] as number) ^ 4;
  return copy;
};

/** Flips a bit of the nth record of a table. */
const flipValue = (environment: string, name: string, nth: number, at: number): Promise<void> =>
  tamper(environment, name, (table) => {
    const { key, value } = [...table.getRange()][nth] as { key: Buffer; value: Buffer }; // there are enough
    table.put(key, flipped(value, at < 0 ? value.length + at : at));
  });

test('damage: a damaged tail run loses its reports, does not stop writing, and is restored when they are sent again', async () => {
  await flipValue('reports', 'tail', 0, 10);
  const store = await open();
  expect(store.reports.latest(first)?.observationsMs).toBe((t0 + 183) * 1_000);
  expect(await store.reports.neighbours(first, t0 + 186)).toMatchObject({ damaged: true });
  expect(await store.reports.append([...run(second, 206, 1), ...run(first, 206, 1)])).toEqual(['stored', 'stored']);
  expect(damagedTables()).toContain('tail');
  expect(keysOf((await store.reports.page(first, t0, 1_000)).reports)).toEqual([...range(0, 184), 206]);
  expect((await store.reports.renderedPage(first, t0, 1_000)).json.join().match(/feedID/g)).toHaveLength(185);
  expect(await store.reports.neighbours(first, t0 + 186)).toMatchObject({ damaged: true });
  expect(await store.reports.append(run(first, 176, 30))).toEqual([
    ...range(0, 8).map(() => 'duplicate'),
    ...range(0, 22).map(() => 'stored'),
  ]);
  for (const feedId of [first, second])
    expect(keysOf((await store.reports.page(feedId, t0, 1_000)).reports)).toEqual(range(0, 207));
  expect((await store.reports.stats()).reports).toBe(414);
  await store.close();
});

test('damage: a damaged block is set aside when one of its reports is sent again', async () => {
  await flipValue('reports', 'blocks', 0, 10);
  const store = await open();
  expect(keysOf((await store.reports.page(first, t0, 1_000)).reports)).toEqual(range(92, 206));
  expect(await store.reports.append(run(first, 0, 92))).toEqual(range(0, 92).map(() => 'stored'));
  expect(keysOf((await store.reports.page(first, t0, 1_000)).reports)).toEqual(range(0, 206));
  expect((await store.reports.stats()).reports).toBe(412);
  await store.close();
  events.length = 0;
  await (await open('read')).close();
  expect(damagedTables()).toEqual(['blocks']);
});

test.each([
  ['the number of its reports', 5],
  ['a time', 10],
  ['the length of a report', 6 + 17],
])(
  'damage: where %s in the index of a run is damaged, the counters are right once its reports are sent again',
  async (_, at) => {
    for (const name of ['blocks', 'tail']) await flipValue('reports', name, 0, at);
    const store = await open();
    expect(await store.reports.append(run(first, 0, 206))).toContain('stored');
    expect((await store.reports.stats()).reports).toBe(412);
    await store.close();
    const reader = await open('read');
    expect((await reader.findDamage()).map(({ table, key }) => `${table} ${key}`)).not.toContain('meta counters');
    await reader.close();
  },
);

test('damage: one damaged report is one missing report, for a moment, a page, what is rendered and what was appended', async () => {
  await flipValue('reports', 'blocks', 0, -20); // in the last report of the run
  const store = await open();
  const expected = [...range(0, 91), ...range(92, 206)];
  expect(await store.reports.at([first, second], t0 + 91)).toMatchObject([undefined, { feedId: second }]);
  expect(await store.reports.neighbours(first, t0 + 91)).toMatchObject({ damaged: true });
  expect(keysOf((await store.reports.page(first, t0, 1_000)).reports)).toEqual(expected);
  expect(await store.reports.renderedPage(first, t0, 92)).toMatchObject({ damaged: true, more: true });
  const page = await store.reports.renderedPage(first, t0 + 50, 50);
  expect([page.json.length, page.lastMs]).toEqual([50, (t0 + 100) * 1_000]);
  const { reports, positions, missed } = await store.reports.appendedAfter(0, 1_000);
  expect(keysOf(reports.slice(0, 205))).toEqual(expected);
  expect([positions[90], positions[91], missed]).toEqual([91, 93, false]);
  expect(await store.reports.append(run(first, 91, 1))).toEqual(['stored']);
  expect(keysOf((await store.reports.page(first, t0, 1_000)).reports)).toEqual(range(0, 206));
  await store.close();
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

/** Full reports of a page, as the API sends them. */
const textsOf = (json: string): readonly string[] => json.match(/0x[0-9a-f]{400,}/g) ?? [];

test('damage: whichever bit of a key is flipped, a rendered page has the reports that the stream has', async () => {
  const fast = millisecondStream(3);
  const store = await open();
  // Three reports in half a second, which only a stream that counts in milliseconds may have.
  for (let i = 0; i < 5; i++)
    await store.reports.append(
      range(0, 3).map((n) => report(fast, (t0 + i) * 1_000 + n * 160 - 159, (t0 + i) * 1_000 + n * 160)),
    );
  for (let i = 206; i < 210; i++) await store.reports.append(run(first, i, 1));
  await store.close();
  const file = pagesFile(join(folder, 'reports'));
  const keys = partsOf(file).filter(({ kind, table }) => kind === 'key' && (table === 'tail' || table === 'blocks'));
  const pages = [
    ...range(0, 6).map((i) => [fast, t0 + i, 4] as const),
    ...[91, 92, 183, 184, 206, 207, 208, 209].map((i) => [first, t0 + i, 70] as const),
  ];
  for (const [i, { key, from }] of keys.entries()) {
    const [byte, bit] = (
      [
        [3, 0],
        [5, 1],
        [8, 2],
      ] as const
    )[i % 3] as readonly [number, number]; // one of three
    flipInFile(file, from + byte, bit);
    const reader = await open('read');
    for (const [feedId, start, limit] of pages) {
      const { reports, more } = await reader.reports.page(feedId, start, limit);
      const rendered = await reader.reports.renderedPage(feedId, start, limit);
      const texts = reports.map(({ fullReport }) => `0x${Buffer.from(fullReport).toString('hex')}`);
      const name = `bit ${bit} of byte ${byte} of key ${key?.toString('hex')}, ${feedId} from ${start - t0}`;
      expect([rendered.more, textsOf(rendered.json.join())], name).toEqual([more, texts]);
    }
    await reader.close();
    flipInFile(file, from + byte, bit);
  }
});

test('damage: whichever bit of a key’s time is flipped, every second has its report', async () => {
  const file = pagesFile(join(folder, 'reports'));
  const keys = partsOf(file).filter(({ kind, table }) => kind === 'key' && (table === 'tail' || table === 'blocks'));
  const seconds = [0, 50, 91, 92, 183, 184, 205];
  const places = [4, 5, 6, 7, 8, 9].flatMap((byte) => [0, 3, 7].map((bit) => [byte, bit] as const));
  for (const { key, from } of keys)
    for (const [byte, bit] of places) {
      flipInFile(file, from + byte, bit);
      const reader = await open('read');
      for (const feedId of [first, second]) {
        const name = `bit ${bit} of byte ${byte} of key ${key?.toString('hex')}, ${feedId}`;
        const found = await Promise.all(seconds.map((i) => reader.reports.at([feedId], t0 + i)));
        expect(keysOf(found.flat().filter((one) => one !== undefined)), name).toEqual(seconds);
      }
      await reader.close();
      flipInFile(file, from + byte, bit);
    }
});

test('damage: a run under another stream’s key neither adds a report to that stream nor hides one', async () => {
  const streams = [first, second, secondStream(3)];
  const before = await open();
  await before.reports.append(run(secondStream(3), 0, 206));
  // All three have runs of the same times, so that those of one follow those of another without a gap.
  for (const from of [206, 236]) await before.reports.append(streams.flatMap((feedId) => run(feedId, from, 30)));
  await before.close();
  const file = pagesFile(join(folder, 'reports'));
  const keys = partsOf(file).filter(({ kind, table }) => kind === 'key' && (table === 'tail' || table === 'blocks'));
  const intact = join(folder, 'intact');
  cpSync(file, intact);
  const textOf = ({ fullReport }: StoredReport): string => `0x${Buffer.from(fullReport).toString('hex')}`;
  const names = new Map(
    streams.flatMap((feedId) =>
      run(feedId, 0, 267).map((one, i) => [textOf(one), `${feedId.slice(-1)}:${i}`] as const),
    ),
  );
  const expectAll = async (store: Store, count: number, name: string): Promise<void> => {
    for (const feedId of [...streams, first]) {
      for (const from of [0, 100, 184, 206, 236]) {
        const { json } = await store.reports.renderedPage(feedId, t0 + from, 1_000);
        const found = textsOf(json.join()).map((text) => names.get(text));
        const expected = range(from, count).map((i) => `${feedId.slice(-1)}:${i}`);
        expect(found, `${name}, ${feedId} from ${from}`).toEqual(expected);
      }
      const { reports } = await store.reports.page(feedId, t0, 1_000);
      expect(keysOf(reports), `${name}, page, ${feedId}`).toEqual(range(0, count));
    }
  };
  for (const { key, from } of keys)
    for (const bit of [0, 1]) {
      if (key?.[3] === 1 << bit) continue; // there is no stream 0
      const name = `bit ${bit} of the stream of key ${key?.toString('hex')}`;
      flipInFile(file, from + 3, bit);
      const store = await open();
      await expectAll(store, 266, name);
      await store.reports.append(streams.flatMap((feedId) => run(feedId, 266, 1)));
      await expectAll(store, 267, name);
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
  const candlesOf = async (reader: Store) =>
    (await reader.reports.candles(secondStream(3), { from: t0, to: t0 + 9_000, resolution: 60 })).candles;
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

test('damage: the writer names the damaged mark of built roll-ups before it rewrites it', async () => {
  await tamper('reports', 'meta', (table) => {
    const value = table.get(Buffer.from('rollups')) as Buffer; // every store of this format has one
    table.put(Buffer.from('rollups'), flipped(value, 5));
  });
  const store = await open();
  await store.reports.append(run(first, 206, 1).map((one) => ({ ...one, price: 1n })));
  await store.close();
  expect(events).toContainEqual(expect.objectContaining({ kind: 'damaged', table: 'meta', key: 'rollups' }));
});

test('damage: a run that is stored twice is given once', async () => {
  const copied: Buffer[] = [];
  await tamper('reports', 'blocks', (table) => void copied.push(...[...table.getRange()].map(({ value }) => value)));
  await tamper('reports', 'tail', (table) => void table.put(reportKey(1, (t0 + 183) * 1_000), copied[1] as Buffer)); // one of four
  const reader = await open('read');
  expect(textsOf((await reader.reports.renderedPage(first, t0, 1_000)).json.join())).toHaveLength(206);
  await reader.close();
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
