import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createSignedReports, millisecondStream } from '../../../../../tests/support/signed-reports.ts';
import { openStore } from '../../../store/open.ts';
import { cutSpans, findGaps, witnessIds } from './gaps.ts';

const { report } = await createSignedReports('demo');
const t0 = 1_763_200_000;
const [witness] = witnessIds() as [FeedId, ...FeedId[]]; // there are some

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
    await stored(105, 10); // too short to be worth two spans
    expect(await gaps()).toEqual([{ from: t0 + 100, to: t0 + 279 }]);
    await stored(100, 5);
    await stored(115, 165);
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
