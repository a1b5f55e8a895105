import { expect, test } from 'vitest';
import { trendPath } from './trend.tsx';

const point = (ms: number, price: bigint, isAfterGap = false) => ({ ms, price, isAfterGap });

test('trend: from the left edge to the right, low at the bottom, high at the top, and broken at gaps', () => {
  expect(trendPath([point(0, 1n), point(50, 3n), point(100, 2n, true)])).toBe('M0.0 26.0L48.0 2.0M96.0 14.0');
});

test('trend: a flat price is a line in the middle, and one point is no error', () => {
  expect(trendPath([point(0, 5n), point(10, 5n)])).toBe('M0.0 14.0L96.0 14.0');
  expect(trendPath([point(7, 5n)])).toBe('M0.0 14.0');
});

test('trend: prices of any size and sign are drawn', () => {
  const huge = 2n ** 191n - 1n;
  expect(trendPath([point(0, -huge), point(10, huge)])).toBe('M0.0 26.0L96.0 2.0');
});
