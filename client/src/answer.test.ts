import { expect, test } from 'vitest';
import { toError } from './answer.ts';

const limited = (headers: Record<string, string>, body: object = { error: 'Too fast.', code: 'rate_limit_exceeded' }) =>
  toError({ status: 429, headers: new Headers(headers), text: JSON.stringify(body) }, 'there', 0).details;

test('answer: Retry-After is seconds, a date, or else what the body says', () => {
  expect(limited({ 'Retry-After': '7' })).toEqual({ retryAfterSeconds: 7 });
  expect(limited({ 'Retry-After': 'Thu, 01 Jan 1970 00:00:09 GMT' })).toEqual({ retryAfterSeconds: 9 });
  expect(limited({}, { error: 'Too fast.', code: 'x', retryAfterSeconds: 3 })).toEqual({ retryAfterSeconds: 3 });
  expect(limited({})).toEqual({});
});

test('answer: a pause that no server can mean is an hour at most, and one that is no number is none', () => {
  expect(limited({ 'Retry-After': '1794775127' })).toEqual({ retryAfterSeconds: 3_600 });
  expect(limited({ 'Retry-After': 'Fri, 01 Jan 2100 00:00:00 GMT' })).toEqual({ retryAfterSeconds: 3_600 });
  expect(limited({}, { error: 'Too fast.', code: 'x', retryAfterSeconds: 1e300 })).toEqual({
    retryAfterSeconds: 3_600,
  });
  for (const retryAfterSeconds of ['x', -1, null, {}])
    expect(limited({}, { error: 'Too fast.', code: 'x', retryAfterSeconds })).toEqual({});
});
