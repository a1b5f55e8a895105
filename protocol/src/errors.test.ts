import { expect, test } from 'vitest';
import { ApiError, errorOf, errorTable, malformedArgument, toErrorJson } from './errors.ts';

test('errors: the body has the same text in error and message, the code, the request ID and the details', () => {
  const error = new ApiError('clock_skew', 'too late', { serverTimeMs: 1_763_200_000_000, skewMs: -6_000 });
  expect(JSON.stringify(toErrorJson(error, 'req-1'))).toBe(
    '{"error":"too late","message":"too late","code":"clock_skew","requestId":"req-1","serverTimeMs":1763200000000,"skewMs":-6000}',
  );
});

test('errors: details never replace the fixed keys', () => {
  const json = toErrorJson(
    new ApiError('unauthorized', 'no', { code: 'fake', requestId: 'fake', error: 'fake' }),
    'real',
  );
  expect(json).toEqual({ error: 'no', message: 'no', code: 'unauthorized', requestId: 'real' });
});

test('errors: 400 and 401 are never retryable, 5xx and 429 always are', () => {
  for (const { status, retry } of Object.values(errorTable)) {
    if (status === 400 || status === 401) expect(retry).toBe(false);
    if (status >= 500 || status === 429) expect(retry).toBe(true);
  }
});

test('errors: an error of the table has its message', () => {
  expect(errorOf('draining')).toMatchObject({ code: 'draining', details: {} });
  expect(errorOf('draining').message).toBe('This node is shutting down. Try again shortly.');
});

test('errors: only the statuses that the API documents are used', () => {
  const allowed = [400, 401, 404, 405, 408, 426, 429, 431, 500, 502, 503];
  for (const { status } of Object.values(errorTable)) expect(allowed).toContain(status);
});

test('errors: a malformed argument has its name, its value and what is expected', () => {
  const error = malformedArgument('limit', '1e9', 'a whole number from 1 to 1000');
  expect(error.message).toBe('limit is "1e9", expected a whole number from 1 to 1000.');
  expect(error.details).toEqual({ argument: 'limit', expected: 'a whole number from 1 to 1000' });
});

test('errors: a value that is nested too deeply to be printed has its kind in the message', () => {
  const nested: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  expect(malformedArgument('x', nested, 'a text').message).toBe('x is [object Array], expected a text.');
});

test('errors: the repeated input is limited in length', () => {
  expect(malformedArgument('x', 'a'.repeat(10_000), 'less').message.length).toBeLessThan(150);
  expect(malformedArgument('x', undefined, 'something').message).toBe('x is undefined, expected something.');
});
