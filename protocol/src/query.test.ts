import fc from 'fast-check';
import { expect, expectTypeOf, test } from 'vitest';
import { ApiError } from './errors.ts';
import type { FeedId } from './feed-id.ts';
import { parseQuery, splitQuery } from './query.ts';

const feedId = `0x0003${'ab'.repeat(30)}`;
const other = `0x0003${'cd'.repeat(30)}`;

test('query: percent-decoded, plus is a space, every value kept in order', () => {
  const query = splitQuery('a=1&b=x+y%20z&a=%2C&c&=v&d=a=b&&%61=3');
  expect([...query]).toEqual([
    ['a', ['1', ',', '3']],
    ['b', ['x y z']],
    ['c', ['']],
    ['', ['v', '']],
    ['d', ['a=b']],
  ]);
  expect([...splitQuery('')]).toEqual([]);
});

test('query: names of object internals are names like any other', () => {
  expect(splitQuery('__proto__=1&constructor=2').get('__proto__')).toEqual(['1']);
  expect(parseQuery('reportLatest', `feedID=${feedId}&__proto__=x`)).toEqual({ feedId });
});

test('query: a broken percent-encoding is rejected anywhere', () => {
  for (const raw of ['a=%', 'a=%zz', 'a=%E2%82', '%ff=1', 'unknown=%C3%28']) {
    expect(() => parseQuery('feeds', raw)).toThrow(
      expect.objectContaining({
        code: 'malformed_target',
        message: 'The query has a percent-encoding that is not UTF-8.',
        cause: expect.any(URIError),
      }),
    );
  }
});

test('query: a report at a timestamp', () => {
  const query = parseQuery('reportAt', `timestamp=1763200000&feedID=${feedId.toUpperCase().replace('0X', '0x')}`);
  expect(query).toEqual({ feedId, timestamp: 1_763_200_000 });
  expectTypeOf(query.feedId).toEqualTypeOf<FeedId>();
  expectTypeOf(query.timestamp).toEqualTypeOf<number>();
});

test('query: raw and encoded commas both separate', () => {
  for (const comma of [',', '%2C', '%2c']) {
    const query = parseQuery('reportBulk', `feedIDs=${feedId}${comma}${other}&timestamp=1`);
    expect(query).toEqual({ feedIds: [feedId, other], timestamp: 1, missing: false });
  }
});

test('query: the page limit has a default', () => {
  expect(parseQuery('reportPage', `feedID=${feedId}&startTimestamp=7`)).toEqual({
    feedId,
    startTimestamp: 7,
    limit: 10,
  });
  expect(parseQuery('reportPage', `feedID=${feedId}&startTimestamp=7&limit=1000`).limit).toBe(1_000);
});

test('query: the deployment sets the limit of feed IDs', () => {
  const raw = `feedIDs=${feedId},${other}&timestamp=1`;
  expect(() => parseQuery('reportBulk', raw, { feedIdsMax: 1 })).toThrow('at most 1');
});

test('query: a missing argument is an error with its name and description', () => {
  expect(() => parseQuery('reportAt', `feedID=${feedId}`)).toThrow(
    expect.objectContaining({
      code: 'missing_argument',
      message: 'timestamp is missing. Time for which the report is returned.',
      details: { argument: 'timestamp' },
    }),
  );
});

test('query: a repeated argument is rejected, even with equal values; a repeated unknown one is ignored', () => {
  expect(() => parseQuery('reportLatest', `feedID=${feedId}&feedID=${feedId}`)).toThrow(
    expect.objectContaining({
      code: 'repeated_argument',
      message: 'feedID is given 2 times, expected once.',
      details: { argument: 'feedID' },
    }),
  );
  expect(parseQuery('reportLatest', `feedID=${feedId}&x=1&x=2`)).toEqual({ feedId });
});

test('query: one of two arguments that replace each other is given, not both', () => {
  expect(() => parseQuery('reportLatestMany', `feedID=${feedId}&feedIDs=${other}`)).toThrow(
    expect.objectContaining({
      code: 'malformed_argument',
      message: 'feedID and feedIDs are both given. Send one of them.',
      details: { argument: 'feedID', expected: 'either feedID or feedIDs' },
    }),
  );
  expect(parseQuery('reportLatestMany', `feedIDs=${other}`)).toEqual({ feedIds: [other], missing: false });
  expect(() => parseQuery('reportLatestMany', `feedID=${feedId}`)).toThrow('feedIDs is missing');
});

test('query: a resolution is one of the table, in its own spelling', () => {
  const raw = `feedID=${feedId}&from=1&to=2&resolution=`;
  expect(parseQuery('reportCandles', `${raw}300`).resolution).toBe(300);
  for (const value of ['', '0', '61', '060', '60.0'])
    expect(() => parseQuery('reportCandles', `${raw}${value}`)).toThrow(
      `resolution is "${value}", expected 1 or 60 or 300 or 900 or 3600 or 14400 or 86400.`,
    );
});

test('query: filters of discovery are names, days and true or false; a page has 1 to 1000 reports', () => {
  expect(parseQuery('discovery', 'asset_class=Crypto,FOREX&hidden=true')).toMatchObject({
    asset_class: ['crypto', 'forex'],
    hidden: true,
  });
  expect(() => parseQuery('discovery', 'hidden=1')).toThrow('hidden is "1"');
  for (const limit of ['0', '1001'])
    expect(() => parseQuery('reportPage', `feedID=${feedId}&startTimestamp=7&limit=${limit}`)).toThrow(
      `limit is "${limit}", expected a whole number from 1 to 1000.`,
    );
});

test('query: an argument that may be left out, and is, has no field', () => {
  expect(Object.keys(parseQuery('discovery', 'hidden=true'))).toEqual(['hidden']);
});

test('query: argument names are case-sensitive', () => {
  expect(() => parseQuery('reportLatest', `feedid=${feedId}`)).toThrow('feedID is missing');
});

test('query: any text gives a typed query or an error with a code', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('feedIDs', 'timestamp', '=', '&', '%2C', ',', feedId, '1763200000'),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      try {
        expect(parseQuery('reportBulk', pieces.join('')).feedIds.length).toBeGreaterThan(0);
      } catch (error) {
        expect(error).toBeInstanceOf(ApiError);
      }
    }),
    { numRuns: 1_000 },
  );
});
