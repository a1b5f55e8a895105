import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '@sealpost/server/store/open';
import { expect, test } from 'vitest';
import { createSignedReports, millisecondStream } from '../../../../tests/support/signed-reports.ts';
import { countReports, cutSpans, findGaps, planPast, witnessId } from './gaps.ts';

const { report } = await createSignedReports('demo');
const t0 = 1_763_200_000;
const witness = witnessId();

test('demo gaps: all of the past at first, then what an interruption left out, the newest first', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-demo-gaps-'));
  const store = await openStore(folder, 'write');
  const gaps = () => findGaps(store.reports, { from: t0, to: t0 + 399 });
  const stored = (from: number, count: number) =>
    store.reports.append(Array.from({ length: count }, (_, i) => report(witness, t0 + from + i, t0 + from + i)));
  try {
    expect(await gaps()).toEqual([{ from: t0, to: t0 + 399 }]);
    await stored(0, 100);
    await stored(280, 60);
    // A stream of the user's own, whose newest report is not at a whole second, says nothing about the simulated ones.
    const fine = t0 * 1_000 + 390_500;
    await store.reports.append([report(millisecondStream(1), fine, fine)]);
    expect(await gaps()).toEqual([
      { from: t0 + 340, to: t0 + 399 },
      { from: t0 + 100, to: t0 + 279 },
    ]);
    await stored(340, 60);
    await store.reports.append([report(witness, t0 + 100, t0 + 129)]); // one of 30 seconds has no gap
    expect(await gaps()).toEqual([{ from: t0 + 130, to: t0 + 279 }]);
    await stored(130, 150);
    expect(await gaps()).toEqual([]);
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('demo gaps: spans are cut to another', () => {
  const spans = [
    { from: 50, to: 60 },
    { from: 10, to: 20 },
  ];
  expect(cutSpans(spans, { from: 15, to: 55 })).toEqual([
    { from: 50, to: 55 },
    { from: 15, to: 20 },
  ]);
  expect(cutSpans(spans, { from: 21, to: 49 })).toEqual([]);
});

test('demo gaps: the past is dense near the present, and the ends of a gap are signed for every second', () => {
  const minute = t0 - 40;
  const now = minute + 57;
  expect(minute % 60).toBe(0);
  const day = { from: minute - 86_400, to: now };
  const first = planPast([day], now);
  expect(first).toEqual([
    { from: minute - 360, to: now, everySeconds: 1 },
    { from: minute - 3_600, to: minute - 361, everySeconds: 10 },
    { from: minute - 86_400, to: minute - 3_601, everySeconds: 30 },
  ]);
  expect(Math.round(countReports(first) / 1_000)).toBe(82);
  expect(planPast([{ from: minute - 7_203, to: minute - 7_109 }], now)).toEqual([
    { from: minute - 7_110, to: minute - 7_109, everySeconds: 1 },
    { from: minute - 7_200, to: minute - 7_111, everySeconds: 30 },
    { from: minute - 7_203, to: minute - 7_201, everySeconds: 1 },
  ]);
  expect(planPast([{ from: minute - 7_203, to: minute - 7_198 }], now)).toEqual([
    { from: minute - 7_203, to: minute - 7_198, everySeconds: 1 },
  ]);
});
