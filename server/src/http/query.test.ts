import type { ApiError } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { secondStream } from '../../../tests/support/samples.ts';
import { authorise, createQueryReader } from './query.ts';

const [readable, first, second] = [secondStream(1), secondStream(2), secondStream(3)];

const refusalOf = (query: Parameters<typeof authorise>[0]): ApiError | undefined => {
  try {
    authorise(query, new Set([readable]));
    return undefined;
  } catch (error) {
    return error as ApiError; // nothing else is thrown
  }
};

test('authorize: the error names the first stream that may not be read, alone or among several', () => {
  expect(refusalOf({ feedIds: [readable] })).toBeUndefined();
  for (const query of [{ feedId: first }, { feedIds: [readable, first, second] }])
    expect(refusalOf(query)).toMatchObject({
      code: 'stream_not_accessible',
      message: `Stream ${first} does not exist or this account may not read it.`,
      details: { feedID: first },
    });
});

test('authorize: without an account, or with a stream of each kind of argument, nothing unreadable passes', () => {
  expect(refusalOf({})).toBeUndefined();
  expect(refusalOf({ feedId: readable })).toBeUndefined();
  expect(refusalOf({ feedId: readable, feedIds: [readable, second] })).toMatchObject({ details: { feedID: second } });
  expect(() => authorise({ feedId: readable }, undefined)).toThrow(`Stream ${readable} does not exist`);
  expect(() => authorise({}, undefined)).not.toThrow();
});

const day = 86_400;
const nowSeconds = 1_763_200_000;

test('query reader: each route by its own rows, within the limits of the deployment', () => {
  const read = createQueryReader({ feedIdsMax: 1, retentionDays: 30 });
  const nowMs = nowSeconds * 1_000 + 999;
  expect(read('reportLatest', `feedID=${first}`, nowMs)).toEqual({ feedId: first });
  expect(read('reportAt', `feedID=${first}&timestamp=${nowSeconds}`, nowMs)).toEqual({
    feedId: first,
    timestamp: nowSeconds,
  });
  expect(() => read('reportBulk', `feedIDs=${first},${second}&timestamp=${nowSeconds}`, nowMs)).toThrow(
    'feedIDs names 2 streams, at most 1 are allowed.',
  );
});

test('query reader: a timestamp may be as old as retention, to the second, and the error names its argument', () => {
  const read = createQueryReader({ feedIdsMax: 100, retentionDays: 30 });
  const nowMs = nowSeconds * 1_000 + 999;
  const oldest = nowSeconds - 30 * day;
  const page = (timestamp: number) => read('reportPage', `feedID=${first}&startTimestamp=${timestamp}`, nowMs);
  expect(page(oldest)).toMatchObject({ startTimestamp: oldest });
  expect(() => page(oldest - 1)).toThrow(
    expect.objectContaining({
      code: 'timestamp_out_of_bounds',
      details: { argument: 'startTimestamp', oldestTimestamp: oldest },
    }),
  );
  // What was parsed before is judged by the time of each request.
  expect(() => read('reportPage', `feedID=${first}&startTimestamp=${oldest}`, nowMs + 1)).toThrow('out of bounds');
});
