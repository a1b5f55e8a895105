import { parseFeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { intervalMsOf, medianOf, type StreamWindow, windowEndMs, windowLengthMs } from './interval.ts';

const secondsFeed = parseFeedId(`0x0003${'a'.repeat(60)}`);
const millisecondsFeed = parseFeedId(`0x1003${'a'.repeat(60)}`);
const window = (validFromMs: number, observationsMs: number, feedId = secondsFeed): StreamWindow => ({
  feedId,
  validFromMs,
  observationsMs,
});

test('a window of one second is a second long, because it includes its last second', () => {
  expect(windowLengthMs(window(5_000, 5_000))).toBe(1_000);
  expect(windowLengthMs(window(5_000, 14_000))).toBe(10_000);
  expect(windowEndMs(window(5_000, 14_000))).toBe(15_000);
});

test('a window of a stream in milliseconds ends with its last millisecond', () => {
  expect(windowLengthMs(window(5_000, 5_249, millisecondsFeed))).toBe(250);
});

test('the interval is the median of the last 20 windows', () => {
  const slow = Array.from({ length: 30 }, () => window(0, 59_000));
  const fast = Array.from({ length: 20 }, () => window(0, 0));
  expect(intervalMsOf([...slow, ...fast])).toBe(1_000);
  expect(intervalMsOf([...slow, ...fast.slice(0, 9)])).toBe(60_000);
});

test('one window is enough for an interval, none is not', () => {
  expect(intervalMsOf([window(0, 4_000)])).toBe(5_000);
  expect(intervalMsOf([])).toBeUndefined();
});

test('the median of an even number of values is the lower of the two in the middle', () => {
  expect(medianOf([9, 1, 5, 3])).toBe(3);
  expect(medianOf([10, 2, 9])).toBe(9);
});
