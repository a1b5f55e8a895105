import { limits } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { rangeNames, ranges } from './chart-view.ts';
import { chunkSecondsOf, chunksOf, gridOf, resolutionOf } from './resolution.ts';

test('resolution: each range is drawn from reports, or from candles of a fitting length', () => {
  expect(rangeNames.map((name) => [name, resolutionOf(ranges[name].seconds)])).toEqual([
    ['1m', 'reports'],
    ['5m', 'reports'],
    ['15m', 1],
    ['1h', 60],
    ['6h', 60],
    ['1d', 300],
    ['7d', 3_600],
    ['30d', 14_400],
  ]);
});

test('resolution: a chunk of candles fits into one response', () => {
  for (const resolution of [1, 60, 300, 900, 3_600, 14_400, 86_400] as const)
    expect(chunkSecondsOf(resolution) / resolution).toBeLessThanOrEqual(limits.candlesMax);
});

test('resolution: a grid is whole chunks, and stays the same while a window moves within them', () => {
  const grid = gridOf({ from: 100_000, to: 103_600 }, 60);
  expect(grid).toEqual({ start: 86_400, end: 115_200, resolution: 60 });
  expect(gridOf({ from: 100_010, to: 103_610 }, 60)).toEqual(grid);
});

test('resolution: chunks in view are loaded first', () => {
  const window = { from: 130, to: 190 };
  expect(chunksOf(gridOf(window, 'reports'), window)).toEqual([120, 180, 60]);
});
