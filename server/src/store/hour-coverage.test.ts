import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSignedReports, millisecondStream, secondStream } from '../../../tests/support/signed-reports.ts';
import { createKeptValues } from '../runtime/kept-values.ts';
import { coverageOf, type TimeRange, windowsTouching } from './coverage.ts';
import { type CoverageReader, type KeptGaps, readHourCoverage } from './hour-coverage.ts';
import { createStoreMemory } from './memory/engine.ts';
import { openStore } from './open.ts';
import type { ReportStore } from './store.ts';

const { report } = await createSignedReports();
const [one, fast] = [secondStream(1), millisecondStream(1)];
const hour = 1_763_197_200; // a whole one

/** Reads a store, counts the windows, and knows the counts of hours. */
const readerOf = (reports: ReportStore) => {
  let read = 0;
  const reader: CoverageReader = {
    windows: async (...args) => {
      const found = await reports.windows(...args);
      read += found.length;
      return found;
    },
    neighbours: reports.neighbours,
    newestMs: reports.newestMs,
    hourCounts: async (feedId, { from, to }) => {
      const candles = await reports.candles(feedId, { from: from - (from % 3_600), to, resolution: 3_600 });
      return new Map(candles.map(({ start, reports: count }) => [start, count]));
    },
  };
  return { reader, read: () => read };
};

const fill = async (reports: ReportStore, feedId: typeof one, windows: readonly (readonly [number, number])[]) => {
  const sample = report(feedId, hour, hour);
  const outcomes = await reports.append(
    windows.map(([validFromMs, observationsMs]) => ({ ...sample, validFromMs, observationsMs, price: 1n })),
  );
  expect(new Set(outcomes)).toEqual(new Set(['stored']));
};

const seconds = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => [(from + i) * 1_000, (from + i) * 1_000] as const);

test('hour coverage: gaps across hours are one gap, and what it says is what coverage says', async () => {
  const store = await openStore('memory:', 'write', { memory: createStoreMemory() });
  await fill(store.reports, one, [
    ...seconds(hour - 7_200, 1),
    ...seconds(hour - 3_600, 3_500),
    ...seconds(hour + 200, 1_000),
    ...seconds(hour + 1_201, 2_399),
    [(hour + 3_600) * 1_000, (hour + 3_700) * 1_000],
  ]);
  const { reader } = readerOf(store.reports);
  for (const range of [
    { from: hour - 3_600, to: hour + 7_199 },
    { from: hour - 3_599, to: hour + 3_650 },
    { from: hour - 50, to: hour + 199 },
    { from: hour + 300, to: hour + 300 },
  ] satisfies TimeRange[]) {
    const { hours, ...found } = await readHourCoverage(reader, one, range);
    const whole = await coverageOf(windowsTouching(store.reports, one, range), range);
    const longest = whole.gaps.toSorted((a, b) => b.seconds - a.seconds || a.from - b.from)[0] ?? null;
    expect(found).toEqual({
      from: range.from,
      coveredSeconds: whole.coveredSeconds,
      gapCount: whole.gapCount,
      longestGap: longest,
      newestMs: (hour + 3_700) * 1_000,
    });
    expect(hours.reduce((sum, one) => sum + one.seconds, 0)).toBe(range.to - range.from + 1);
    expect(hours.reduce((sum, { coveredSeconds }) => sum + coveredSeconds, 0)).toBe(whole.coveredSeconds);
  }
  const { hours } = await readHourCoverage(reader, one, { from: hour - 3_600, to: hour + 3_649 });
  expect(hours).toEqual([
    { timestamp: hour - 3_600, seconds: 3_600, coveredSeconds: 3_500 },
    { timestamp: hour, seconds: 3_600, coveredSeconds: 3_399 },
    { timestamp: hour + 3_600, seconds: 50, coveredSeconds: 50 },
  ]);
  await store.close();
});

test('hour coverage: thousands of gaps, inside hours, across them and at the ends, are counted as coverage counts them', async () => {
  const store = await openStore('memory:', 'write', { memory: createStoreMemory() });
  let at = hour - 9_000;
  const windows = Array.from({ length: 3_000 }, (_, i) => {
    at += 1 + ((i * 7_919) % 8) + (i % 500 === 499 ? 4_000 : 0);
    return [at * 1_000, at * 1_000] as const;
  });
  await fill(store.reports, one, windows);
  const { reader } = readerOf(store.reports);
  const kept: KeptGaps = createKeptValues(60_000, 1_000, () => 0);
  for (let from = hour - 9_000 + 1; from < at; from += 1_777)
    for (const range of [from + 1, from + 3_599, from + 4_500].map((to): TimeRange => ({ from, to }))) {
      const { newestMs, hours, ...found } = await readHourCoverage(reader, one, range, kept);
      const start = found.from ?? range.to;
      const whole = await coverageOf(windowsTouching(store.reports, one, range), { from: start, to: range.to });
      const longest = whole.gaps.toSorted((a, b) => b.seconds - a.seconds || a.from - b.from)[0] ?? null;
      const { coveredSeconds, gapCount } = whole;
      expect(gapCount).toBe(whole.gaps.length); // no more than it lists
      expect(found).toEqual({ from: start, coveredSeconds, gapCount, longestGap: longest });
      expect(hours.reduce((sum, { seconds }) => sum + seconds, 0)).toBe(range.to - start + 1);
    }
  await store.close();
});

test('hour coverage: reports of a complete hour, and of one that is kept, are not read', async () => {
  const store = await openStore('memory:', 'write', { memory: createStoreMemory() });
  await fill(store.reports, one, [
    ...seconds(hour - 7_200, 3_600),
    ...seconds(hour - 3_600, 3_599),
    ...seconds(hour, 10),
  ]);
  const { reader, read } = readerOf(store.reports);
  const range = { from: hour - 7_200, to: hour + 9 };
  const kept: KeptGaps = createKeptValues(60_000, 100, () => 0);
  const first = await readHourCoverage(reader, one, range, kept);
  expect([first.coveredSeconds, first.gapCount]).toEqual([7_209, 1]);
  const readFirst = read();
  expect(readFirst).toBeLessThan(3_700);
  expect(await readHourCoverage(reader, one, range, kept)).toEqual(first);
  expect(read() - readFirst).toBe(10);
  await store.close();
});

test('hour coverage: a new stream is measured from its first report on, and one without reports not at all', async () => {
  const store = await openStore('memory:', 'write', { memory: createStoreMemory() });
  const { reader } = readerOf(store.reports);
  const range = { from: hour - 3_600, to: hour + 99 };
  const nothing = { coveredSeconds: 0, gapCount: 0, longestGap: null, hours: [] };
  expect(await readHourCoverage(reader, one, range)).toEqual(nothing);
  await fill(store.reports, one, seconds(hour - 10, 100));
  expect(await readHourCoverage(reader, one, range)).toEqual({
    from: hour - 10,
    coveredSeconds: 100,
    gapCount: 1,
    longestGap: { from: hour + 90, to: hour + 99, seconds: 10 },
    newestMs: (hour + 89) * 1_000,
    hours: [
      { timestamp: hour - 3_600, seconds: 10, coveredSeconds: 10 },
      { timestamp: hour, seconds: 100, coveredSeconds: 90 },
    ],
  });
  await fill(store.reports, fast, [[hour * 1_000, hour * 1_000 + 250]]);
  expect(await readHourCoverage(reader, fast, { from: hour, to: hour + 1 })).toMatchObject({
    coveredSeconds: 1,
    gapCount: 1,
  });
  await store.close();
});

test.each(['memory', 'lmdb'])(
  '%s: hour coverage: an hour that retention has cut is measured from what is left of it',
  async (engine) => {
    const folder = mkdtempSync(join(tmpdir(), 'sealpost-coverage-'));
    const store = await openStore(engine === 'lmdb' ? `lmdb:${folder}` : 'memory:', 'write', {
      memory: createStoreMemory(),
    });
    await fill(store.reports, one, [...seconds(hour - 3_600, 7_200), ...seconds(hour + 3_700, 100)]);
    const { usedBytes } = await store.reports.stats();
    const to = hour + 3_750;
    for (const bytesMax of [Number.POSITIVE_INFINITY, usedBytes * 0.7, usedBytes * 0.3]) {
      for (let more = true; more; ) ({ more } = await store.reports.trim({ beforeMs: 0, bytesMax }));
      const [first] = await store.reports.windows(one, 0, to, 1);
      const firstSecond = (first?.observationsMs ?? 0) / 1_000;
      const { reader } = readerOf(store.reports);
      const { from, hours } = await readHourCoverage(reader, one, { from: hour - 7_200, to });
      expect(from).toBe(firstSecond);
      const cut = { timestamp: firstSecond - (firstSecond % 3_600), seconds: 3_600 - (firstSecond % 3_600) };
      expect(hours[0]).toEqual({ ...cut, coveredSeconds: cut.seconds });
    }
    await store.close();
    rmSync(folder, { recursive: true });
  },
);

test('hour coverage: a report that retention hides does not make a gap of what follows it', async () => {
  const store = await openStore('memory:', 'write', { memory: createStoreMemory() });
  await fill(store.reports, one, [...seconds(hour - 100, 50), ...seconds(hour + 600, 1_000)]);
  const range = { from: hour, to: hour + 1_599 };
  const { reader } = readerOf(store.reports);
  expect(await readHourCoverage(reader, one, range)).toMatchObject({ from: hour, gapCount: 1 });
  const hiding = { ...reader, oldestMs: hour * 1_000 };
  expect(await readHourCoverage(hiding, one, range)).toMatchObject({
    from: hour + 600,
    gapCount: 0,
    hours: [{ timestamp: hour, seconds: 1_000, coveredSeconds: 1_000 }],
  });
  await store.close();
});
