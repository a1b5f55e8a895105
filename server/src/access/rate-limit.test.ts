import { expect, test } from 'vitest';
import { bucketsMax, createRateLimiter } from './rate-limit.ts';

test('rate limit: a full bucket is spent at once, then refills continuously', () => {
  const { take } = createRateLimiter(10);
  for (let i = 0; i < 10; i++) expect(take('a', 10, 0)).toMatchObject({ allowed: true, remaining: 9 - i });
  expect(take('a', 10, 0)).toEqual({ allowed: false, limit: 10, remaining: 0, resetSeconds: 1, retryAfterSeconds: 1 });
  expect(take('a', 10, 99).allowed).toBe(false);
  expect(take('a', 10, 100)).toMatchObject({ allowed: true, remaining: 0, resetSeconds: 1 });
  expect(take('a', 10, 2_000)).toMatchObject({ allowed: true, remaining: 9 });
});

test('rate limit: at twice the limit for a minute, the limit and the first burst pass', () => {
  const { take } = createRateLimiter(10);
  let accepted = 0;
  for (let i = 0; i < 20 * 60; i++) accepted += take('a', 10, i * 50).allowed ? 1 : 0;
  expect(accepted).toBeGreaterThanOrEqual(604);
  expect(accepted).toBeLessThanOrEqual(616);
});

test('rate limit: a request may cost several tokens, and the answer says when they are available', () => {
  const { take } = createRateLimiter(10);
  expect(take('a', 10, 0, 4)).toMatchObject({ allowed: true, remaining: 6, resetSeconds: 1 });
  expect(take('a', 10, 0, 4)).toMatchObject({ allowed: true, remaining: 2 });
  expect(take('a', 10, 0, 4)).toMatchObject({ allowed: false, remaining: 2, retryAfterSeconds: 1 });
  expect(take('a', 10, 0)).toMatchObject({ allowed: true, remaining: 1 });
  expect(take('a', 10, 299, 4).allowed).toBe(false);
  expect(take('a', 10, 300, 4).allowed).toBe(true);
});

test('rate limit: a request that costs more than a bucket waits for a full one, and the rest becomes debt', () => {
  const { take } = createRateLimiter(10);
  expect(take('a', 2, 0, 5)).toMatchObject({ allowed: true, remaining: 0, resetSeconds: 3 });
  expect(take('a', 2, 0)).toMatchObject({ allowed: false, retryAfterSeconds: 2 });
  expect(take('a', 2, 1_999).allowed).toBe(false);
  expect(take('a', 2, 2_000).allowed).toBe(true);
  expect(take('a', 2, 2_500, 5)).toMatchObject({ allowed: false, retryAfterSeconds: 1 });
  expect(take('a', 2, 3_000, 5).allowed).toBe(true);
});

test('rate limit: keys are independent, and 0 means no limit', () => {
  const { take, state, lacking } = createRateLimiter(10);
  expect(take('a', 1, 0).allowed).toBe(true);
  expect(take('a', 1, 0).allowed).toBe(false);
  expect(take('b', 1, 0).allowed).toBe(true);
  const unlimited = { allowed: true, limit: 0, remaining: 0, resetSeconds: 0, retryAfterSeconds: 1 };
  for (let i = 0; i < 1_000; i++) expect(take('c', 0, 0)).toEqual(unlimited);
  expect(state('c', 0, 0)).toEqual(unlimited);
  expect(lacking(0)).toEqual([
    ['a', 1, 1],
    ['b', 1, 1],
  ]);
});

test('rate limit: a slow limit says how long to wait', () => {
  const { take } = createRateLimiter(10);
  expect(take('a', 0.1, 0)).toEqual({
    allowed: false,
    limit: 0.1,
    remaining: 0,
    resetSeconds: 0,
    retryAfterSeconds: 9,
  });
  const slow = createRateLimiter(10);
  expect(slow.take('a', 1, 0).allowed).toBe(true);
  expect(slow.take('a', 1, 200).retryAfterSeconds).toBe(1);
});

test('rate limit: the table is bounded and drops the least recently used key', () => {
  const { spend, state } = createRateLimiter(2);
  spend('a', 1, 10, 0);
  spend('b', 1, 10, 0);
  spend('a', 1, 10, 1_000);
  spend('c', 1, 10, 1_000);
  expect(['a', 'b', 'c'].map((key) => state(key, 1, 1_000).allowed)).toEqual([false, true, false]);
});

test('rate limit: within a second a key keeps its place in that order', () => {
  const { spend, state } = createRateLimiter(2);
  spend('a', 1, 10, 0);
  spend('b', 1, 10, 0);
  spend('a', 1, 10, 999);
  spend('c', 1, 10, 999);
  expect(['a', 'b', 'c'].map((key) => state(key, 1, 999).allowed)).toEqual([true, false, false]);
});

test('rate limit: a process keeps the buckets of 100,000 accounts and 50,000 addresses', () => {
  expect(bucketsMax).toEqual({ accounts: 100_000, addresses: 50_000 });
});

test('rate limit: the state takes nothing, and says the same as an answer', () => {
  const { take, state } = createRateLimiter(10);
  const full = { allowed: true, limit: 2, remaining: 2, resetSeconds: 0, retryAfterSeconds: 1 };
  expect([state('a', 2, 0), state('a', 2, 0)]).toEqual([full, full]);
  take('a', 2, 0);
  expect(state('a', 2, 0)).toEqual({ ...full, remaining: 1, resetSeconds: 1 });
  take('a', 2, 0);
  expect(state('a', 2, 0)).toEqual({ ...full, allowed: false, remaining: 0, resetSeconds: 1 });
  expect(state('a', 2, 499).allowed).toBe(false);
  expect(state('a', 2, 500)).toMatchObject({ allowed: true, remaining: 1 });
});

test('rate limit: a limit that is changed applies from then on', () => {
  const { take, state, lacking } = createRateLimiter(10);
  for (let i = 0; i < 10; i++) take('a', 10, 0);
  expect(state('a', 100, 50)).toMatchObject({ limit: 100, remaining: 5 });
  expect(lacking(50)).toEqual([['a', 100, 95]]);
  expect(state('a', 2, 50)).toMatchObject({ limit: 2, remaining: 2 });
});

test('rate limit: rounding errors of refills cost no request', () => {
  const { take, state } = createRateLimiter(10);
  for (let i = 0; i < 10; i++) take('a', 10, 0);
  for (let ms = 0; ms < 100; ms += 0.7) state('a', 10, ms);
  expect(state('a', 10, 100)).toMatchObject({ allowed: true, remaining: 1, resetSeconds: 1 });
  expect(take('a', 10, 100)).toMatchObject({ allowed: true, remaining: 0, resetSeconds: 1 });
  expect(take('b', 1 - 1e-9, 0).allowed).toBe(true);
  expect(state('c', 1 - 1e-9, 0).allowed).toBe(true);
});

test('rate limit: tokens spent elsewhere count, and their debt is repaid before more are granted', () => {
  const { take, spend } = createRateLimiter(10);
  spend('a', 10, 40, 0);
  expect(take('a', 10, 3_000)).toMatchObject({ allowed: false, remaining: 0, retryAfterSeconds: 1 });
  expect(take('a', 10, 3_100).allowed).toBe(true);
});

test('rate limit: debt is bounded, so that nothing locks an account out for good', () => {
  const { take, spend } = createRateLimiter(10);
  spend('a', 10, 1_000_000, 0);
  expect(take('a', 10, 64_000).allowed).toBe(false);
  expect(take('a', 10, 64_100).allowed).toBe(true);
});

test('rate limit: the state of buckets can be copied to another limiter', () => {
  const one = createRateLimiter(10);
  const other = createRateLimiter(10);
  for (let i = 0; i < 7; i++) one.take('a', 10, 0);
  one.take('b', 10, 0);
  expect(one.lacking(100)).toEqual([['a', 10, 6]]);
  for (const [key, perSecond, tokens] of one.lacking(100)) other.spend(key, perSecond, tokens, 5_000);
  expect(other.state('a', 10, 5_000).remaining).toBe(4);
});

test('rate limit: a clock that goes back neither grants nor takes tokens', () => {
  const { take } = createRateLimiter(10);
  for (let i = 0; i < 10; i++) take('a', 10, 10_000);
  expect(take('a', 10, 10_000).allowed).toBe(false);
});
