import { type RouteName, routes } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createLoadAverage, createSparing, isShed, type LoadLevel } from './shedding.ts';

const eventLoopLagMaxMs = 250;

/** The levels after each of several ticks with the same delay and load. */
const levels = (average: ReturnType<typeof createLoadAverage>, delayMs: number, ticks: number, perSecond = 1_000) =>
  Array.from({ length: ticks }, (): LoadLevel => {
    const elapsedMs = 50 + delayMs;
    average.add(delayMs, (perSecond * elapsedMs) / 1_000, elapsedMs);
    return average.level();
  });

test('shedding: one stall, however long, sheds nothing', () => {
  const average = createLoadAverage(eventLoopLagMaxMs);
  levels(average, 2, 100);
  expect(levels(average, 60_000, 1)).toEqual([0]);
  expect(levels(average, 2, 10)).toEqual(Array.from({ length: 10 }, () => 0));
});

test('shedding: sustained delay sheds the most expensive requests first, then the others, and ends again', () => {
  const average = createLoadAverage(eventLoopLagMaxMs);
  expect(levels(average, 400, 20)).toEqual([
    ...Array.from({ length: 7 }, () => 0),
    ...Array.from({ length: 13 }, () => 1),
  ]);
  expect(levels(average, 900, 10).at(-1)).toBe(2);
  expect(levels(average, 2, 3)).toContain(2);
  const after = levels(average, 2, 30);
  expect(after).toContain(1);
  expect(after.at(-1)).toBe(0);
  expect(after).toEqual(after.toSorted((a, b) => b - a));
});

test('shedding: a level ends at three quarters of its bound, which shedding itself brings about', () => {
  const average = createLoadAverage(eventLoopLagMaxMs);
  levels(average, 900, 30);
  expect(levels(average, 376, 100).at(-1)).toBe(2);
  expect(levels(average, 374, 100).at(-1)).toBe(1);
  expect(levels(average, 188, 100).at(-1)).toBe(1);
  expect(levels(average, 187, 100).at(-1)).toBe(0);
});

test('shedding: however far behind, every other request is spared, and what reads much never', () => {
  const spare = createSparing();
  const given = ([0, 2, 1, 2, 2, 0, 2] as const).map(spare);
  expect(given).toEqual([0, 1, 1, 2, 1, 0, 2]);
});

test('shedding: a few requests are never shed', () => {
  const average = createLoadAverage(eventLoopLagMaxMs);
  expect(levels(average, 900, 100, 19)).toEqual(Array.from({ length: 100 }, () => 0));
  expect(levels(average, 900, 30, 100).at(-1)).toBe(2);
});

test('shedding: the clock and the status are never shed, single reports last', () => {
  const shedAt = (level: LoadLevel) => (Object.keys(routes) as RouteName[]).filter((route) => isShed(route, level)); // the table's own keys
  expect(shedAt(0)).toEqual([]);
  expect(shedAt(1)).not.toContain('reportLatest');
  expect(shedAt(1)).not.toContain('reportAt');
  expect(shedAt(1)).toEqual(
    expect.arrayContaining(['reportCandles', 'reportCandlesMany', 'reportCoverage', 'reportPage', 'reportBulk']),
  );
  expect(Object.keys(routes).filter((route) => !shedAt(2).includes(route as RouteName))).toEqual(['time', 'status']); // as above
});
