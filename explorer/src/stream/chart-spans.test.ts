import type { Candle } from '@sealpost/client';
import { expect, test } from 'vitest';
import { addSpans, addToCandles, axisDigits, secondsOf, widenFlat } from './chart-spans.ts';
import { one, span } from './span.fixture.ts';

const candle = (timestamp: number, open: bigint, high: bigint, low: bigint, close: bigint): Candle => ({
  timestamp,
  open,
  high,
  low,
  close,
  reports: 1,
});

test('seconds without a report have no point', () => {
  const points = secondsOf([span(11, 12), span(15, 15)], 10, 16);
  expect(points.map(({ time }) => time)).toEqual([11, 12, 15]);
});

test('a span that reaches beyond the range is cut to it', () => {
  const points = secondsOf([span(5, 20)], 10, 12);
  expect(points.map(({ pieces }) => pieces?.length)).toEqual([1, 1, 1]);
});

test('several reports within a second each take their share of it', () => {
  const early = { ...span(10, 10), startMs: 10_000, endMs: 10_250 };
  const late = { ...span(10, 10), startMs: 10_500, endMs: 11_000 };
  const [point] = secondsOf([early, late], 10, 10);
  expect(point?.pieces?.map(({ from, to }) => [from, to])).toEqual([
    [0, 0.25],
    [0.5, 1],
  ]);
});

test('a span that ends within a second leaves the rest of it blank', () => {
  const [, second] = secondsOf([{ ...span(10, 11), endMs: 11_400 }], 10, 11);
  expect(second?.pieces?.[0]?.to).toBeCloseTo(0.4);
});

test('a duplicate report is kept once, a late one is sorted in, an old one is dropped', () => {
  const spans = addSpans([span(10, 10), span(12, 12)], [span(12, 12), span(11, 11), span(3, 3)], 9_000);
  expect(spans.map(({ timestamp }) => timestamp)).toEqual([10, 11, 12]);
});

test('a live report goes into the candle of its bucket, exactly', () => {
  const wide = 123_456_789_012_345_678_901n;
  const [first] = addToCandles([candle(60, one, one, one, one)], [{ price: wide, timestamp: 119 }], 60);
  expect(first).toEqual({ timestamp: 60, open: one, high: wide, low: one, close: wide, reports: 2 });
});

test('the first report of a bucket opens a candle, and one of an earlier bucket changes nothing', () => {
  const known = [candle(60, one, one, one, one)];
  expect(addToCandles(known, [{ price: 7n, timestamp: 120 }], 60).at(-1)).toEqual(candle(120, 7n, 7n, 7n, 7n));
  expect(addToCandles(known, [{ price: 7n, timestamp: 59 }], 60)).toEqual(known);
});

test('the axis has enough digits for its labels to differ', () => {
  expect([64_000, 3_120, 1.08, 0.00042, 0].map((value) => axisDigits(value))).toEqual([2, 2, 5, 9, 2]);
  expect(axisDigits(64_000, 0.02)).toBe(4);
  expect(axisDigits(64_000, 100)).toBe(2);
  expect([-5, 0, 1].map((value) => axisDigits(value, 6))).toEqual([2, 2, 2]);
  expect(axisDigits(1e-12, 2e-13)).toBe(15);
});

test('a flat price has an axis around it', () => {
  expect(widenFlat({ minValue: 2_000, maxValue: 2_000 })).toEqual({ minValue: 1_998, maxValue: 2_002 });
  expect(widenFlat({ minValue: 0, maxValue: 0 })).toEqual({ minValue: -1, maxValue: 1 });
  expect(widenFlat({ minValue: 1, maxValue: 2 })).toEqual({ minValue: 1, maxValue: 2 });
  expect(widenFlat(null)).toBeNull();
});
