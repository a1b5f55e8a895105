import { expect, test } from 'vitest';
import { changeOf, formatPercent } from './change.ts';

const one = 10n ** 18n;

test('a change is exact, and its percentage is relative to the absolute start price', () => {
  expect(changeOf(200n * one, 199n * one)).toEqual({ difference: -one, percent: -500_000n });
  expect(changeOf(-200n * one, -199n * one)).toEqual({ difference: one, percent: 500_000n });
  expect(changeOf(0n, one).percent).toBeUndefined();
});

test.each([
  [100n, 101_259n, '+101159.00 %'],
  [80_000n, 81_000n, '+1.25 %'],
  [10_000n, 9_995n, '−0.05 %'],
  [120_480_558n, 120_476_250n, '−0.0035 %'],
  [1_000_000n, 1_000_001n, '+0.00010 %'],
  [10n ** 12n, 10n ** 12n - 1n, '−less than 0.000001 %'],
  [7n, 7n, '0.00 %'],
])('a change from %i to %i is shown as %s', (first, last, text) => {
  const { difference, percent = 0n } = changeOf(first, last);
  expect(formatPercent(percent, difference)).toBe(text);
});
