import type { Candle } from '@sealpost/client';
import { expect, test } from 'vitest';
import { one, span } from '../span.fixture.ts';
import { type Bar, barAfter, barAt, type ChartBars, edgesOf, pointsOf } from './bars.ts';
import { rangeStartOf } from './viewed.ts';

const candle = (timestamp: number): Candle => ({
  timestamp,
  open: one,
  high: 2n * one,
  low: -one,
  close: one,
  reports: 1,
});

const reports: ChartBars = {
  grid: { start: 0, end: 60, resolution: 'reports' },
  spans: [span(10, 11), span(14, 14), span(20, 20)],
  candles: [],
};
const candles: ChartBars = {
  grid: { start: 0, end: 600, resolution: 60 },
  spans: [],
  candles: [candle(60), candle(120), candle(300)],
};
const startOf = ({ startMs }: Bar): number => startMs / 1_000;

test('bars: the bar at a time is the report that is valid then, and a gap has the length of a second', () => {
  expect(barAt(reports, 11_999)).toMatchObject({ kind: 'report', startMs: 10_000, endMs: 12_000 });
  expect(barAt(reports, 12_000)).toEqual({ kind: 'gap', startMs: 12_000, endMs: 13_000 });
  expect(barAt(reports, 14_000)).toMatchObject({ kind: 'report', startMs: 14_000 });
  expect(barAt(reports, 99_500)).toEqual({ kind: 'gap', startMs: 99_000, endMs: 100_000 });
});

test('bars: of several reports within a second, each has its own bar', () => {
  const [early, late] = [
    { ...span(10, 10), endMs: 10_250 },
    { ...span(10, 10), startMs: 10_500 },
  ];
  const bars = { ...reports, spans: [early, late] };
  expect([10_100, 10_300, 10_600].map((ms) => barAt(bars, ms).kind)).toEqual(['report', 'gap', 'report']);
  expect(barAfter(bars, barAt(bars, 10_100), 1).startMs).toBe(10_500);
});

test('bars: the bar at a time is its candle', () => {
  expect(barAt(candles, 179_999)).toMatchObject({ kind: 'candle', startMs: 120_000, endMs: 180_000 });
  expect(barAt(candles, 180_000)).toEqual({ kind: 'gap', startMs: 180_000, endMs: 240_000 });
});

test('bars: neighbors skip gaps, and end at the first and the last bar', () => {
  const from = barAt(candles, 130_000);
  expect(startOf(barAfter(candles, from, 1))).toBe(300);
  expect(startOf(barAfter(candles, from, 10))).toBe(300);
  expect(startOf(barAfter(candles, from, -1))).toBe(60);
  expect(startOf(barAfter(candles, from, -10))).toBe(60);
  const gap = barAt(candles, 200_000);
  expect(startOf(barAfter(candles, gap, -1))).toBe(120);
  expect(startOf(barAfter(candles, gap, 1))).toBe(300);
});

test('bars: the first and the last in view are those that are at least partly in it', () => {
  const edges = edgesOf(reports, 11_500, 20_000);
  expect([edges?.first, edges?.last].map((bar) => bar && startOf(bar))).toEqual([10, 14]);
  expect(edgesOf(reports, 30_000, 40_000)).toBeUndefined();
});

test('bars: points are those of the grid', () => {
  expect(pointsOf(candles, { start: 120, end: 300, resolution: 60 })).toEqual([
    { time: 120, open: 1, high: 2, low: -1, close: 1 },
  ]);
  expect(pointsOf(reports, reports.grid).map(({ time }) => time)).toEqual([10, 11, 14, 20]);
});

test('bars: a change starts with the first report in view, or the opening of the first candle, and says if that is late', () => {
  expect(rangeStartOf(reports, { from: 10, to: 60 })).toEqual({ price: one, second: 11, isExact: true, isWhole: true });
  expect(rangeStartOf(reports, { from: 12, to: 60 })).toEqual({
    price: one,
    second: 14,
    isExact: true,
    isWhole: false,
  });
  expect(rangeStartOf(reports, { from: 30, to: 60 })).toBeUndefined();
  expect(rangeStartOf(candles, { from: 0, to: 600 })).toEqual({
    price: one,
    second: 60,
    isExact: false,
    isWhole: true,
  });
  expect(rangeStartOf(candles, { from: 200, to: 800 })).toEqual({
    price: one,
    second: 300,
    isExact: false,
    isWhole: false,
  });
});
