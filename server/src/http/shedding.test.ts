import { type RouteName, routes } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createOverload, isShed, type LoadLevel } from './shedding.ts';

const eventLoopLagMaxMs = 300;

/** The levels for requests that waited so long, one after the other at the same moment. */
const levelsAt = (judge: ReturnType<typeof createOverload>, nowMs: number, ...waits: readonly number[]) =>
  waits.map((waitedMs) => judge(waitedMs, nowMs));

test('shedding: nothing is shed up to the bound', () => {
  expect(levelsAt(createOverload(eventLoopLagMaxMs), 0, 0, 100, 299, 300)).toEqual([0, 0, 0, 0]);
});

test('shedding: beyond the bound, who waited for a third of it is shed if its request is expensive, for half of it in any case', () => {
  const judge = createOverload(eventLoopLagMaxMs);
  expect(levelsAt(judge, 0, 301)).toEqual([2]);
  expect(levelsAt(judge, 1, 0, 100, 101, 150, 151, 300)).toEqual([0, 0, 1, 1, 2, 2]);
});

test('shedding: it lasts until nothing waited for half of the bound for a second, whatever waited for a third', () => {
  const judge = createOverload(eventLoopLagMaxMs);
  expect(levelsAt(judge, 5_000, 301)).toEqual([2]);
  expect(levelsAt(judge, 6_000, 101, 151)).toEqual([1, 2]);
  expect(levelsAt(judge, 7_000, 100, 101)).toEqual([0, 1]);
  expect(levelsAt(judge, 7_001, 101, 151, 300)).toEqual([0, 0, 0]);
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
