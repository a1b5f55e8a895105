import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSignedReports, millisecondStream, secondStream } from '../../../tests/support/signed-reports.ts';
import { coverageOf, windowsTouching } from './coverage.ts';
import { openStore } from './open.ts';

/** A window from one second to another, both included. */
const seconds = (validFrom: number, observations: number) => ({
  validFromMs: validFrom * 1_000,
  observationsMs: observations * 1_000,
});

test('coverage: windows that follow each other cover their range', async () => {
  const windows = [seconds(100, 104), seconds(105, 109), seconds(110, 114)];
  expect(await coverageOf([windows], { from: 100, to: 114 })).toEqual({
    from: 100,
    to: 114,
    reports: 3,
    coveredSeconds: 15,
    completeness: 1,
    gapCount: 0,
    gaps: [],
    medianIntervalMs: 5_000,
  });
});

test('coverage: gaps before, between and after the windows are listed with both ends included', async () => {
  const windows = [seconds(102, 103), seconds(104, 104), seconds(107, 107)];
  expect(await coverageOf([windows], { from: 100, to: 109 })).toMatchObject({
    reports: 3,
    coveredSeconds: 4,
    completeness: 0.4,
    gapCount: 3,
    gaps: [
      { from: 100, to: 101, seconds: 2 },
      { from: 105, to: 106, seconds: 2 },
      { from: 108, to: 109, seconds: 2 },
    ],
    medianIntervalMs: 1_000,
  });
});

test('coverage: windows count only for the part that lies in the range', async () => {
  const windows = [seconds(90, 95), seconds(96, 101), seconds(104, 120), seconds(121, 130)];
  expect(await coverageOf([windows], { from: 100, to: 105 })).toMatchObject({
    reports: 2,
    coveredSeconds: 4,
    gaps: [{ from: 102, to: 103, seconds: 2 }],
  });
});

test('coverage: without windows the range is one gap', async () => {
  expect(await coverageOf([], { from: 7, to: 7 })).toEqual({
    from: 7,
    to: 7,
    reports: 0,
    coveredSeconds: 0,
    completeness: 0,
    gapCount: 1,
    gaps: [{ from: 7, to: 7, seconds: 1 }],
    medianIntervalMs: null,
  });
});

test('coverage: a second of a millisecond stream is covered when any report holds in it, and counts once', async () => {
  const windows = [
    { validFromMs: 100_000, observationsMs: 100_199 },
    { validFromMs: 100_200, observationsMs: 100_399 },
    { validFromMs: 100_900, observationsMs: 101_100 },
    { validFromMs: 103_999, observationsMs: 103_999 },
  ];
  expect(await coverageOf([windows], { from: 100, to: 103 })).toMatchObject({
    reports: 4,
    coveredSeconds: 3,
    completeness: 0.75,
    gaps: [{ from: 102, to: 102, seconds: 1 }],
    medianIntervalMs: 701,
  });
});

test('coverage: at most a thousand gaps are listed, all are counted', async () => {
  const windows = Array.from({ length: 1_500 }, (_, i) => seconds(2 * i, 2 * i));
  const { gapCount, gaps } = await coverageOf([windows], { from: 0, to: 2_999 });
  expect([gapCount, gaps.length, gaps[999]]).toEqual([1_500, 1_000, { from: 1_999, to: 1_999, seconds: 1 }]);
});

test('coverage: the store gives the windows that touch a range, the one observed after it included', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-coverage-'));
  const { report } = await createSignedReports();
  const [slow, fine, t0] = [secondStream(1), millisecondStream(2), 1_763_200_000];
  const store = await openStore(folder, 'write');
  try {
    await store.reports.append([
      report(slow, t0, t0 + 9),
      report(slow, t0 + 10, t0 + 19),
      report(slow, t0 + 30, t0 + 39),
      report(fine, t0 * 1_000 + 500, t0 * 1_000 + 700),
      report(fine, t0 * 1_000 + 701, t0 * 1_000 + 900),
    ]);
    const measure = (feedId: typeof slow, from: number, to: number) =>
      coverageOf(windowsTouching(store.reports, feedId, { from, to }), { from, to });
    expect(await measure(slow, t0 + 5, t0 + 31)).toMatchObject({
      reports: 3,
      coveredSeconds: 17,
      gaps: [{ from: t0 + 20, to: t0 + 29, seconds: 10 }],
    });
    expect(await measure(slow, t0 + 12, t0 + 15)).toMatchObject({ reports: 1, completeness: 1 });
    expect(await measure(fine, t0 - 1, t0)).toMatchObject({ reports: 2, coveredSeconds: 1, medianIntervalMs: 200 });
    expect(await measure(secondStream(9), t0, t0)).toMatchObject({ reports: 0, completeness: 0 });
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
