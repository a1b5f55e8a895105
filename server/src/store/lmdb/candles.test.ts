// Hours and days of candles: retention, and damaged records.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { openStore } from '../open.ts';
import type { Store } from '../store.ts';
import { openEnvironment, type Table } from './environment.ts';
import { openReportTables, type ReportTables, reportKey, streamOfKey } from './report-tables.ts';
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
        return reports.candles(feedId, range);
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
    measured.reports = [tables.runs, tables.candles].reduce((sum, table) => sum + bytesOf(table), 0);
  });
  const writer = await openStore(`lmdb:${folder}`, 'write');
  const bytesMax = measured.reports + 4_096;
  expect(measured.freeable).toBeGreaterThan(bytesMax);
  for (let more = true; more; ) ({ more } = await writer.reports.trim({ beforeMs: 0, bytesMax }));
  await writer.close();
  await change((tables) => {
    measured.freeable = freeableBytes(tables);
    measured.reports = [tables.runs, tables.candles, tables.hourCandles, tables.dayCandles].reduce(
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
  await change(({ runs }) => {
    for (const key of [...runs.getKeys()]) if (streamOfKey(key) < 3) runs.removeSync(key);
    for (const key of [...runs.getKeys({ limit: 1 })]) runs.removeSync(key);
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
    // More minutes than are read at once: no bucket is cut in two.
    const fives = { from: day, to: day + 90_000 - 1, resolution: 300 };
    const counts = (await writer.reports.candles(streams[0] as FeedId, fives)).map((one) => one.reports);
    expect(counts).toEqual(Array(300).fill(5));
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

test('candles: a roll-up whose key was cut short is damage, and hides no other', async () => {
  const first = await openStore(`lmdb:${folder}`, 'write');
  await first.reports.append(minutes(day, 10));
  const expected = await all(first);
  await first.close();
  await change(({ candles, dayCandles }) => {
    for (const table of [candles, dayCandles])
      for (const size of [3, 9]) table?.put(reportKey(1, day * 1_000 + 60_000).subarray(0, size), Buffer.alloc(116));
  });
  const writer = await openStore(`lmdb:${folder}`, 'write');
  try {
    expect(await all(writer)).toEqual(expected);
    const cut = reportKey(1, day * 1_000 + 60_000)
      .subarray(0, 9)
      .toString('hex');
    expect(writer.damage().map(({ table, key }) => `${table} ${key}`)).toContain(`candles ${cut}`);
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
  const fresh = await openStore(`lmdb:${join(folder, 'fresh')}`, 'write');
  await fresh.reports.append([...minutes(day, 300), ...minutes(day + 60_000, 10)]);
  expect(added).toEqual(await all(fresh));
  await fresh.close();
});
