import { expect, test } from 'vitest';
import { gaussian, keyOf, mix, uniform } from './random.ts';

const positions = Array.from({ length: 20_000 }, (_, i) => i);
const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

// Computed by a second implementation, in another language.
test('the same key and position give the same numbers on every machine', () => {
  expect(mix(1, 2)).toBe(350_525_680);
  expect(keyOf('ETH/USD', keyOf('demo'))).toBe(3_035_153_677);
  expect(gaussian(7, 1_700_000_000)).toBe(0.743156993279888);
});

test('uniform noise spreads evenly over 0 to 1', () => {
  const values = positions.map((position) => uniform(42, position));
  expect(values.every((value) => value >= 0 && value < 1)).toBe(true);
  expect(meanOf(values)).toBeCloseTo(0.5, 1);
  expect(new Set(values.map((value) => Math.floor(value * 100))).size).toBe(100);
});

test('gaussian noise has mean 0 and deviation 1, neighbors are unrelated, and it is bounded', () => {
  const values = positions.map((position) => gaussian(42, position));
  expect(Math.abs(meanOf(values))).toBeLessThan(0.03);
  expect(meanOf(values.map((value) => value * value))).toBeCloseTo(1, 1);
  expect(Math.abs(meanOf(values.slice(1).map((value, i) => value * (values[i] ?? 0))))).toBeLessThan(0.03);
  expect(Math.max(...values.map(Math.abs))).toBeLessThan(3.47);
});

test('noise under different keys is unrelated', () => {
  const products = positions.map((position) => gaussian(1, position) * gaussian(2, position));
  expect(Math.abs(meanOf(products))).toBeLessThan(0.03);
});
