import { expect, test } from 'vitest';
import { tallyControl } from '../support/full-count.ts';
import { sumHeaps } from './collecting.ts';
import { createLatencies, driftOf, type Latencies } from './latency.ts';
import { growthOf, heapGrowthOf, type Life, measure } from './measures.ts';

const everyMs = 2_000;

/** A process of 100 MB whose garbage is collected every 40 s, with a leak and descriptors that stay open. */
const lifeOf = (minutes: number, leakKbPerHour: number, descriptorsPerMinute = 0): Life => ({
  name: 'node',
  pid: 1,
  samples: Array.from({ length: (minutes * 60_000) / everyMs }, (_, i) => {
    const atMs = i * everyMs;
    const garbage = (i % 20) * 2_000;
    const warmUp = 40_000 * Math.exp(-atMs / 60_000);
    const noise = ((i * 7_919) % 97) * 10;
    const leaked = (leakKbPerHour * atMs) / 3_600_000;
    const memoryKb = 102_400 + garbage - warmUp + noise + leaked;
    return {
      atMs,
      memoryKb,
      memoryKbOf: new Map([[1, memoryKb]]),
      descriptors: 40 + (i % 3) + Math.floor((descriptorsPerMinute * atMs) / 60_000),
      processes: 1,
    };
  }),
});

test('measures: memory that only garbage moves is flat after the warm-up', () => {
  const growth = growthOf(lifeOf(60, 0), 600_000);
  expect(Math.abs(growth?.percentPerHour ?? 99)).toBeLessThan(1);
  expect(growth).toMatchObject({ descriptors: 0 });
  expect(Math.round(growth?.minutes ?? 0)).toBe(50);
});

test('measures: a leak of 32 MB per hour under 40 MB of garbage is found, and one of 8 MB in what is in use (control)', () => {
  const growth = growthOf(lifeOf(60, 32_768), 600_000);
  expect(growth?.percentPerHour).toBeGreaterThan(20);
  expect(growth?.megabytesPerHour).toBeGreaterThan(31);
  expect(growth?.megabytesPerHour).toBeLessThan(33);
  const heap = Array.from({ length: 60 }, (_, i) => 100 + (i % 2) + (8 * i) / 60);
  expect(heapGrowthOf(heap, 60_000, 600_000)).toBeGreaterThan(5);
  tallyControl({ 'leaks found': 1 });
});

test('measures: processes that come and go move nothing, and hide no leak of one that stays', () => {
  const life = lifeOf(60, 0);
  const database = (leakKb: number): Life => ({
    ...life,
    samples: life.samples.map((one, i) => {
      const passing = Array.from({ length: i % 300 < 150 ? 0 : i % 11 }, (_, n) => [1_000 + i + n, 500] as const);
      const memoryKbOf = new Map([[1, 4_096], [2, 8_192 + (leakKb * i) / life.samples.length], ...passing]);
      return { ...one, memoryKbOf, processes: memoryKbOf.size };
    }),
  });
  expect(growthOf(database(0), 600_000)).toMatchObject({ percentPerHour: 0, memoryMb: 12 });
  expect(growthOf(database(800), 600_000)?.percentPerHour).toBeGreaterThan(5);
});

test('measures: heaps of all threads are added up, as each was last', () => {
  const mb = 2 ** 20;
  const lines = [
    `7 0 ${10 * mb}`,
    `7 1 ${2 * mb}`,
    `8 0 ${50 * mb}`,
    `7 0 ${11 * mb}`,
    `7 1 ${3 * mb}`,
    `7 0 ${12 * mb}`,
  ];
  expect(sumHeaps(lines, '7')).toEqual([10, 13, 15]);
});

test('measures: a heap that grows by 6 % in an hour is found, one that swings is not', () => {
  const heap = (perHour: number) => Array.from({ length: 60 }, (_, i) => 40 + (i % 2) + (40 * perHour * i) / 60);
  expect(heapGrowthOf(heap(0), 60_000, 600_000)).toBe(0);
  expect(heapGrowthOf(heap(0.06), 60_000, 600_000)).toBeGreaterThan(5);
  expect(heapGrowthOf(heap(0).slice(0, 15), 60_000, 600_000)).toBeUndefined();
});

test('measures: descriptors that stay open are found (control)', () => {
  expect(growthOf(lifeOf(60, 0, 1), 600_000)?.descriptors).toBeGreaterThan(5);
});

test('measures: a life that ended soon after its warm-up says nothing', () => {
  expect(growthOf(lifeOf(10.5, 0), 600_000)).toBeUndefined();
  expect(growthOf(lifeOf(19, 0), 600_000, 600_000)).toBeUndefined();
  expect(growthOf(lifeOf(21, 0), 600_000, 600_000)?.minutes).toBeGreaterThan(10);
});

/** An hour of 20 requests a second, whose latency rises by a part of itself, and which are slow every five minutes while something happens. */
const latenciesOf = (rise: number): Latencies => {
  const latencies = createLatencies(100_000);
  for (let i = 0; i < 72_000; i++) {
    const atMs = 1_000_000 + i * 50;
    const usual = 5 + ((i * 7_919) % 1_009) / 50;
    latencies.add(
      atMs,
      spans.some(({ fromMs, toMs }) => atMs >= fromMs && atMs <= toMs) ? 900 : usual * (1 + (rise * i) / 72_000),
    );
  }
  return latencies.list();
};
const spans = Array.from({ length: 12 }, (_, i) => ({
  fromMs: 1_060_000 + i * 300_000,
  toMs: 1_090_000 + i * 300_000,
}));

test('latency: the 99th percentile of an even run does not drift, whatever was slow while something happened', () => {
  const drift = driftOf(latenciesOf(0), spans, 600_000);
  expect(Math.abs(drift?.percent ?? 99)).toBeLessThan(1);
  expect(drift?.p99Ms).toBeGreaterThan(24);
  expect(drift?.p99Ms).toBeLessThan(26);
  expect(drift?.groups).toBe(179);
});

test('latency: a 99th percentile that rises by a fifth is found (control)', () => {
  const drift = driftOf(latenciesOf(0.24), spans, 600_000);
  expect(drift?.percent).toBeGreaterThan(15);
  expect(drift?.percent).toBeLessThan(25);
  tallyControl({ 'drifts found': 1 });
});

test('latency: a few requests say nothing, and none are kept beyond the capacity', () => {
  const latencies = createLatencies(2);
  for (const at of [1, 2, 3]) latencies.add(at, 10);
  expect(latencies.list()).toEqual({ atMs: [1, 2], tookMs: [10, 10] });
  expect(driftOf(latencies.list(), [], 0)).toBeUndefined();
});

test.skipIf(process.platform !== 'linux')('measures: a process that has ended has no sample, this one has', () => {
  expect(measure(2 ** 22 + 1, 0)).toBeUndefined();
  expect(measure(process.pid, 5)).toMatchObject({ atMs: 5, memoryKb: expect.any(Number) });
  expect(measure(process.pid, 5)?.memoryKb).toBeGreaterThan(10_000);
});
