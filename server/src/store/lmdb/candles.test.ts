// Hours and days of a store that an older release wrote, and of one whose records are damaged.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { createDamageLog } from '../damage.ts';
import { openStore } from '../open.ts';
import type { Store } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import { buildRollups } from './candles.ts';
import { openEnvironment, type Table } from './environment.ts';
import { observationsOfKey, openReportTables, type ReportTables, reportKey, streamOfKey } from './report-tables.ts';
import { freeableBytes } from './write/retention.ts';

const { report } = await createSignedReports();
const day = 1_763_164_800; // a midnight
const streams = [secondStream(1), secondStream(2), secondStream(3)];

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-candles-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A report every minute of a range, with prices that go up and down. The bytes of one report do for all. */
const minutes = (from: number, count: number) =>
  streams.flatMap((feedId, n) => {
    const one = report(feedId, day, day);
    return Array.from({ length: count }, (_, i) => {
      const ms = (from + i * 60) * 1_000;
      return { ...one, validFromMs: ms, observationsMs: ms, price: BigInt(((i * 37) % 101) - n) };
    });
  });

const all = async ({ reports }: Store) =>
  Promise.all(
    streams.flatMap((feedId) =>
      [60, 3_600, 86_400].map(async (resolution) => {
        const range = { from: day - 86_400, to: day + 10 * 86_400, resolution };
        return (await reports.candles(feedId, range)).candles;
      }),
    ),
  );

/** Changes the tables of a closed store by hand. */
const change = async (act: (tables: ReportTables) => void): Promise<void> => {
  const environment = openEnvironment(join(folder, 'reports'), false);
  const tables = openReportTables(environment);
  environment.root.transactionSync(() => act(tables));
  await environment.root.close();
};

const bytesOf = (table: Table | undefined): number => {
  const stats = table?.getStats() as Record<string, number>; // lmdb types it as {}
  const { treeBranchPageCount = 0, treeLeafPageCount = 0, overflowPages = 0, pageSize = 0 } = stats;
  return (treeBranchPageCount + treeLeafPageCount + overflowPages) * pageSize;
};

/** What an older release left: minutes alone, and nothing that says how far the rest is made. */
const makeOld = (): Promise<void> =>
  change((tables) => {
    tables.hourCandles?.clearSync();
    tables.dayCandles?.clearSync();
    tables.meta.removeSync(Buffer.from('rollups'));
  });

/** Makes one slice; returns whether more is to be made. */
const buildSlice = async (): Promise<boolean> => {
  let isMore = true;
  await change((tables) => {
    isMore = buildRollups(tables, createDamageLog());
  });
  return isMore;
};

const readAll = async () => {
  const reader = await openStore(`lmdb:${folder}`, 'read');
  const candles = await all(reader);
  await reader.close();
  return candles;
};

test('candles: an older store answers the same before, while and after its hours and days are made', async () => {
  const batch = minutes(day - 3_600, 1_500);
  const first = await openStore(`lmdb:${folder}`, 'write');
  await first.reports.append(batch);
  const expected = await all(first);
  await first.close();
  await makeOld();
  expect(await readAll()).toEqual(expected);
  // One slice of several: reports on both sides of it find their place, and the writer makes the rest in the background.
  expect(await buildSlice()).toBe(true);
  expect(await readAll()).toEqual(expected);
  const late = batch
    .filter((_, i) => i % 500 === 7)
    .map(({ validFromMs, observationsMs, ...rest }) => ({
      ...rest,
      validFromMs: validFromMs + 30_000,
      observationsMs: observationsMs + 30_000,
      price: 10_000n,
    }));
  const writer = await openStore(`lmdb:${folder}`, 'write');
  await writer.reports.append(late);
  await writer.close();
  const added = await readAll();
  expect(added).not.toEqual(expected);
  while (await buildSlice());
  expect(await readAll()).toEqual(added);
  await makeOld();
  expect(await readAll()).toEqual(added);
});

test('candles: the writer of an older store makes its hours and days by itself', async () => {
  const first = await openStore(`lmdb:${folder}`, 'write');
  await first.reports.append(minutes(day, 100));
  await first.close();
  await makeOld();
  const daysAfter = async (reports: ReturnType<typeof minutes>): Promise<number> => {
    const writer = await openStore(`lmdb:${folder}`, 'write');
    await writer.reports.append(reports);
    await writer.close();
    let days = 0;
    await change((tables) => {
      days = tables.dayCandles?.getKeysCount() ?? 0;
    });
    return days;
  };
  await daysAfter(minutes(day + 86_400, 1));
  let minute = 0; // the thread makes them between batches, as soon as it has time
  await expect.poll(() => daysAfter(minutes(day + 2 * 86_400 + 60 * minute++, 1))).toBe(9);
});

test('candles: hours and days count as what retention by bytes frees', async () => {
  const store = await openStore(`lmdb:${folder}`, 'write');
  // A report for each day: as many records of hours and of days as of minutes.
  const daily = minutes(day, 1_000).map((one, i) => {
    const ms = (day + (i % 1_000) * 86_400) * 1_000;
    return { ...one, validFromMs: ms, observationsMs: ms };
  });
  await store.reports.append(daily);
  await store.close();
  const measured = { reports: 0, freeable: 0 };
  await change((tables) => {
    measured.freeable = freeableBytes(tables);
    measured.reports = [tables.blocks, tables.tail, tables.candles].reduce((sum, table) => sum + bytesOf(table), 0);
  });
  const writer = await openStore(`lmdb:${folder}`, 'write');
  const bytesMax = measured.reports + 4_096;
  expect(measured.freeable).toBeGreaterThan(bytesMax);
  for (let more = true; more; ) ({ more } = await writer.reports.trim({ beforeMs: 0, bytesMax }));
  await writer.close();
  await change((tables) => {
    measured.freeable = freeableBytes(tables);
    measured.reports = [tables.blocks, tables.tail, tables.candles, tables.hourCandles, tables.dayCandles].reduce(
      (sum, table) => sum + bytesOf(table),
      0,
    );
  });
  expect(measured.freeable).toBe(measured.reports);
  expect(measured.reports).toBeLessThanOrEqual(bytesMax);
  expect(measured.reports).toBeGreaterThan(bytesMax / 2);
});

test('candles: those of lost reports are removed by age, and not those that have reports', async () => {
  const first = await openStore(`lmdb:${folder}`, 'write');
  await first.reports.append(minutes(day, 1_500));
  await first.close();
  // Everything of two streams, and the oldest run of the third.
  await change(({ blocks, tail }) => {
    for (const table of [blocks, tail])
      for (const key of [...table.getKeys()]) if (streamOfKey(key) < 3) table.removeSync(key);
    for (const key of [...blocks.getKeys({ limit: 1 })]) blocks.removeSync(key);
  });
  const writer = await openStore(`lmdb:${folder}`, 'write');
  const trim = async (beforeMs: number): Promise<void> => {
    for (let more = true; more; )
      ({ more } = await writer.reports.trim({ beforeMs, bytesMax: Number.POSITIVE_INFINITY }));
  };
  const countsOf = async () => (await all(writer)).map((candles) => candles.reduce((sum, one) => sum + one.reports, 0));
  try {
    await trim(day * 1_000);
    expect(await countsOf()).toEqual(Array(9).fill(1_500));
    await trim((day + 600) * 1_000);
    expect(await countsOf()).toEqual(Array(9).fill(1_490));
    await trim((day + 60 * 1_300) * 1_000);
    const { reports } = await writer.reports.page(streams[2] as (typeof streams)[number], 0, 2_000);
    expect(await countsOf()).toEqual([...Array(6).fill(200), ...Array(3).fill(reports.length)]);
    await trim((day + 90_000) * 1_000);
    expect(await countsOf()).toEqual(Array(9).fill(0));
  } finally {
    await writer.close();
  }
});

test('candles: a minute, hour and day that still count removed reports count them once when they come back', async () => {
  const priced = Array.from({ length: 400 }, (_, i) => {
    const [second, price] = [day + i, BigInt((i * 37) % 101)];
    return { ...report(streams[0] as (typeof streams)[number], second, second, price), price };
  });
  for (const isAll of [false, true]) {
    const first = await openStore(`lmdb:${folder}`, 'write');
    await first.reports.append(priced);
    const expected = await all(first);
    await first.close();
    // As the retention of an older release left it.
    await change(({ blocks, tail }) => {
      for (const key of [...blocks.getKeys(isAll ? {} : { limit: 1 })]) blocks.removeSync(key);
      if (isAll) tail.clearSync();
    });
    const writer = await openStore(`lmdb:${folder}`, 'write');
    for (let i = 0; i < 400; i += 30) await writer.reports.append(priced.slice(i, i + 30));
    expect(await all(writer)).toEqual(expected);
    await writer.close();
  }
});

test('candles: a failed build is reported, retried, and reported once when it works', async () => {
  const first = await openStore(`lmdb:${folder}`, 'write');
  const batch = minutes(day, 300);
  await first.reports.append(batch);
  await first.close();
  await makeOld();
  // Intact minutes whose sum of reports is more than a roll-up can hold.
  await change(({ candles }) => {
    for (const { key, value } of [...candles.getRange({ limit: 2 })]) {
      value.writeUInt32BE(0xffff_ffff, 16);
      value.writeUInt32BE(crc32(value.subarray(4), streamOfKey(key)), 0);
      candles.put(key, value);
    }
  });
  const events: StoreEvent[] = [];
  const writer = await openStore(`lmdb:${folder}`, 'write', {
    tell: (event) => void events.push(event),
    writing: { probeEveryMs: 20 },
  });
  const kinds = () => events.map(({ kind }) => kind).filter((kind) => kind.startsWith('writing'));
  try {
    await expect.poll(() => writer.stops()).toMatchObject([{ part: 'rollups', code: 'store_write_failed' }]);
    expect(writer.stops()[0]?.reason).toContain('The hours and days of candles');
    // Everything else is written meanwhile.
    expect(await writer.reports.append(minutes(day + 86_400, 1))).toEqual(['stored', 'stored', 'stored']);
    expect(kinds()).toEqual(['writingStopped']);
    // Retention removes them with their reports.
    const beforeMs = (day + 86_400) * 1_000;
    for (let more = true; more; )
      ({ more } = await writer.reports.trim({ beforeMs, bytesMax: Number.POSITIVE_INFINITY }));
    await expect.poll(() => writer.stops()).toEqual([]);
    expect(kinds()).toEqual(['writingStopped', 'writingResumed']);
  } finally {
    await writer.close();
  }
  await change(({ dayCandles }) => {
    const days = [...(dayCandles?.getKeys() ?? [])].map(observationsOfKey);
    expect(days.filter((ms) => ms === (day + 86_400) * 1_000)).toHaveLength(3);
  });
});

test('candles: a roll-up whose key was cut short is damage, not the end of building', async () => {
  const first = await openStore(`lmdb:${folder}`, 'write');
  await first.reports.append(minutes(day, 10));
  const expected = await all(first);
  await first.close();
  await makeOld();
  await change(({ candles, dayCandles }) => {
    for (const table of [candles, dayCandles])
      for (const size of [3, 9]) table?.put(reportKey(1, day * 1_000 + 60_000).subarray(0, size), Buffer.alloc(116));
  });
  const writer = await openStore(`lmdb:${folder}`, 'write');
  try {
    await expect.poll(() => writer.damage().map(({ table, key }) => `${table} ${key}`)).toContain('candles 000000');
    expect(writer.stops()).toEqual([]);
    expect(await all(writer)).toEqual(expected);
  } finally {
    await writer.close();
  }
});

test('candles: damaged hours and days are read from what they cover, and rebuilt with the next report', async () => {
  const store = await openStore(`lmdb:${folder}`, 'write');
  await store.reports.append(minutes(day, 300));
  const expected = await all(store);
  await store.close();
  await change((tables) => {
    for (const table of [tables.hourCandles, tables.dayCandles])
      for (const { key, value } of [...(table?.getRange() ?? [])]) {
        value[30] = (value[30] as number) ^ 4; // prices begin there
        table?.put(key, value);
      }
  });
  const damaged = await openStore(`lmdb:${folder}`, 'write');
  expect(await all(damaged)).toEqual(expected);
  expect(damaged.damage().length).toBeGreaterThan(0);
  await damaged.reports.append(minutes(day + 60_000, 10));
  const added = await all(damaged);
  await damaged.close();
  await makeOld();
  expect(await readAll()).toEqual(added);
});
