import { expect, test } from 'vitest';
import { describeOldPrice, isMutedPrice, isOldPrice } from './price-age.ts';

test('a price is old after three intervals and two seconds', () => {
  expect([5_000, 5_001].map((ageMs) => isOldPrice(ageMs, 1_000))).toEqual([false, true]);
  expect([182_000, 182_001].map((ageMs) => isOldPrice(ageMs, 60_000))).toEqual([false, true]);
  expect(isOldPrice(5_001, undefined)).toBe(true);
});

test('in a list an old price is muted; one of a closed market only while disconnected', () => {
  const muted = (ageMs: number, isConnected: boolean, isClosed: boolean) =>
    isMutedPrice(ageMs, 1_000, isConnected, isClosed);
  expect([muted(37_000, false, false), muted(37_000, true, false), muted(37_000, false, true)]).toEqual([
    true,
    true,
    true,
  ]);
  expect([muted(4_000, false, false), muted(37_000, true, true)]).toEqual([false, false]);
});

test.each([
  [4_000, false, false, undefined],
  [37_000, false, false, 'Disconnected, last price 37 s old'],
  [37_000, false, true, 'Disconnected, last price 37 s old'],
  [37_000, true, false, 'No new report, last price 37 s old'],
  [3_600_000, true, true, 'Market closed, last price 1 h old'],
])('a price %i ms old (connected: %s, market closed: %s): %s', (ageMs, isConnected, isClosed, text) => {
  expect(describeOldPrice(ageMs, 1_000, isConnected, isClosed)).toBe(text);
});
