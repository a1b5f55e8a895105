import type { Candle } from '@sealpost/client';
import { expect, test } from 'vitest';
import {
  addSpans,
  addToCandles,
  axisDigits,
  candlePoints,
  parseRange,
  rangeStartOf,
  type Span,
  secondsOf,
  spanAt,
  widenFlat,
} from './chart-spans.ts';

const one = 10n ** 18n;

/** A report over whole seconds, both included. */
const span = (from: number, to: number, price = one): Span => ({
  feedId: '0x00',
  startMs: from * 1_000,
  endMs: (to + 1) * 1_000,
  observedMs: to * 1_000,
  timestamp: to,
  price,
  bid: undefined,
  ask: undefined,
});

const candle = (timestamp: number, open: bigint, high: bigint, low: bigint, close: bigint): Candle => ({
  timestamp,
  open,
  high,
  low,
  close,
  reports: 1,
});

test('every second has a point, and those without a report are blank', () => {
  const points = secondsOf([span(11, 12), span(15, 15)], 10, 16);
  expect(points.map(({ time }) => time)).toEqual([10, 11, 12, 13, 14, 15, 16]);
  expect(points.map(({ pieces }) => pieces?.length ?? 0)).toEqual([0, 1, 1, 0, 0, 1, 0]);
  expect(points[0]).toEqual({ time: 10 });
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

test('the span at a time is the one that contains it, and none in a gap', () => {
  const spans = [span(10, 11), span(14, 14)];
  expect(spanAt(spans, 11_999)?.timestamp).toBe(11);
  expect(spanAt(spans, 12_000)).toBeUndefined();
  expect(spanAt(spans, 14_000)?.timestamp).toBe(14);
});

test('buckets without reports stay blank, so that time is linear', () => {
  const points = candlePoints([candle(120, one, 2n * one, one, one)], 61, 245, 60);
  expect(points).toEqual([
    { time: 60 },
    { time: 120, open: 1, high: 2, low: 1, close: 1 },
    { time: 180 },
    { time: 240 },
  ]);
});

test('a live report goes into the candle of its bucket, exactly', () => {
  const wide = 123_456_789_012_345_678_901n;
  const [first] = addToCandles([candle(60, one, one, one, one)], { price: wide, timestamp: 119 }, 60);
  expect(first).toEqual({ timestamp: 60, open: one, high: wide, low: one, close: wide, reports: 2 });
});

test('the first report of a bucket opens a candle, and one of an earlier bucket changes nothing', () => {
  const known = [candle(60, one, one, one, one)];
  expect(addToCandles(known, { price: 7n, timestamp: 120 }, 60).at(-1)).toEqual(candle(120, 7n, 7n, 7n, 7n));
  expect(addToCandles(known, { price: 7n, timestamp: 59 }, 60)).toEqual(known);
});

test('an unknown range is live', () => {
  expect(parseRange('1h')).toBe('1h');
  expect(parseRange('toString')).toBe('live');
  expect(parseRange(null)).toBe('live');
});

test('a range starts with its first report, or with the opening of its first candle, and says if that is late', () => {
  const spans = [span(10, 10, 1n), span(20, 20, 2n), span(30, 30, 3n)];
  expect(rangeStartOf('live', spans, undefined, 105)).toEqual({ price: 2n, second: 20, isWhole: false });
  expect(rangeStartOf('live', spans, undefined, 108)).toEqual({ price: 2n, second: 20, isWhole: true });
  expect(rangeStartOf('live', spans, undefined, 500)).toBeUndefined();
  const candles = [candle(3_600, 7n, 9n, 5n, 8n)];
  expect(rangeStartOf('1h', spans, candles, 7_190)).toEqual({ price: 7n, second: 3_600, isWhole: true });
  expect(rangeStartOf('1h', spans, candles, 3_700)).toEqual({ price: 7n, second: 3_600, isWhole: false });
  expect(rangeStartOf('1h', spans, undefined, 105)).toBeUndefined();
});

test('the axis has enough digits for its labels to differ', () => {
  expect([64_000, 3_120, 1.08, 0.00042, 0].map((value) => axisDigits(value))).toEqual([2, 2, 5, 9, 2]);
  expect(axisDigits(64_000, 0.02)).toBe(4);
  expect(axisDigits(64_000, 100)).toBe(2);
});

test('a flat price has an axis around it', () => {
  expect(widenFlat({ minValue: 2_000, maxValue: 2_000 })).toEqual({ minValue: 1_998, maxValue: 2_002 });
  expect(widenFlat({ minValue: 0, maxValue: 0 })).toEqual({ minValue: -1, maxValue: 1 });
  expect(widenFlat({ minValue: 1, maxValue: 2 })).toEqual({ minValue: 1, maxValue: 2 });
  expect(widenFlat(null)).toBeNull();
});
