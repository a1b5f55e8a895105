import { expect, test } from 'vitest';
import { createRateLimits, remainingNow, tightestOf } from './rate-limits.ts';

const limit = { path: '/a', limit: 10, remaining: 2, resetSeconds: 2, atMs: 1_000 };

test('rate limit: refills within the reset time', () => {
  expect(remainingNow(limit, 1_000)).toBe(2);
  expect(remainingNow(limit, 2_000)).toBe(6);
  expect(remainingNow(limit, 9_000)).toBe(10);
  expect(remainingNow({ ...limit, resetSeconds: 0 }, 1_000)).toBe(10);
});

test('rate limit: the route with the least left is shown', () => {
  const wide = { ...limit, path: '/b', limit: 100, remaining: 50 };
  expect(tightestOf([wide, limit], 1_000)?.path).toBe('/a');
  expect(tightestOf([], 1_000)).toBeUndefined();
});

test('rate limit: responses without limits, or from the cache, are ignored', () => {
  const limits = createRateLimits();
  limits.receive('/a', new Headers());
  expect(limits.byRoute.value).toEqual([]);
  const headers = (remaining: string, date: string) =>
    new Headers({ 'RateLimit-Limit': '10', 'RateLimit-Remaining': remaining, 'RateLimit-Reset': '1', Date: date });
  limits.receive('/a', headers('3', 'Sun, 15 Nov 2026 09:30:00 GMT'));
  limits.receive('/a', headers('9', 'Sun, 15 Nov 2026 09:00:00 GMT'));
  expect(limits.byRoute.value.map(({ remaining }) => remaining)).toEqual([3]);
});
