// What a process keeps of a database has bounds, in bytes too.
import type { FeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createNewestReports, createRecent, recentMax } from './memory.ts';

const feedId = `0x0003${'1'.repeat(60)}` as FeedId;
/** As the driver and the parser make them: cut from a piece that many share. */
const reportAt = (second: number) => ({
  feedId,
  validFromMs: second * 1_000,
  observationsMs: second * 1_000,
  price: 1n,
  fullReport: Buffer.from(String(second).repeat(90)),
});
const entriesFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, i) => ({ position: first + i, report: reportAt(first + i) }));

test('postgres memory: a kept report keeps nothing but itself', () => {
  const { report } = entriesFrom(1, 1)[0] as ReturnType<typeof entriesFrom>[number];
  expect(report.fullReport.buffer.byteLength).toBeGreaterThan(4_096); // or this test tells nothing
  const recent = createRecent({ position: 0, mark: undefined });
  recent.add([{ position: 1, report }], { position: 1, mark: undefined });
  const newest = createNewestReports();
  newest.offer(report, 1);
  const kept = [recent.after(0, 1)?.reports[0], newest.all().get(feedId)?.report];
  for (const one of kept) {
    expect(Object.keys(one ?? {})).toEqual(['feedId', 'validFromMs', 'observationsMs', 'fullReport']);
    expect(one?.fullReport).toEqual(report.fullReport);
    expect(one?.fullReport.buffer.byteLength).toBe(report.fullReport.length);
  }
});

test('postgres memory: no more than a quarter above the bound is kept, and what is kept has no holes', () => {
  const recent = createRecent({ position: 0, mark: undefined });
  const sizes: number[] = [];
  for (let first = 1; first < 3 * recentMax; first += 100) {
    recent.add(entriesFrom(first, 100), { position: first + 99, mark: undefined });
    const last = recent.reached().position;
    let oldest = last - 1;
    while (oldest > 0 && recent.after(oldest - 1, 1) !== undefined) oldest -= 512;
    sizes.push(last - oldest);
  }
  const { position } = recent.reached();
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1.25 * recentMax + 512);
  const page = recent.after(position - recentMax, recentMax);
  expect(page?.positions).toEqual(Array.from({ length: recentMax }, (_, i) => position - recentMax + 1 + i));
  expect(recent.after(0, 1)).toBeUndefined();
});
