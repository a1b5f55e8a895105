// Request targets and their queries, as the server parses them. The reference is URLSearchParams.
import assert from 'node:assert/strict';
import { ApiError, errorTable, parseQuery, type RouteName, routes, splitQuery } from '@sealpost/protocol';
import { matchRoute, parseTarget } from '../../../server/src/http/target.ts';
import { outcomeOf, requireSame, type Target } from '../target.ts';

const feedId = (digit: string): string => `0x0003${digit.repeat(60)}`;

const seeds = [
  `/api/v1/reports?feedID=${feedId('a')}&timestamp=1763200000`,
  `/api/v1/reports/latest?feedID=${feedId('a')}`,
  `/api/v1/reports/latest?feedIDs=${feedId('a')},${feedId('b')}&missing=true`,
  `/api/v1/reports/bulk?feedIDs=${feedId('a')}%2C${feedId('b')}&timestamp=1`,
  `/api/v1/reports/page?feedID=${feedId('a')}&startTimestamp=1763200000&limit=100`,
  `/api/v1/reports/coverage?feedID=${feedId('a')}&from=1763200000&to=1763210000`,
  `/api/v1/reports/candles?feedID=${feedId('a')}&from=1&to=2&resolution=60`,
  '/api/v1/discovery?base_asset=BTC,eth&status=live&hidden=true&created_after=2025-01-31',
  '/api/v1/discovery?decommissioned_before=2024-02-29&network_type=t%C3%A9st+net',
  '/time?x',
  '/?=&&a==b&%26=%3D',
];

const words = [
  ...Object.values(routes).flatMap(({ path, query }) => [path, ...Object.keys(query)]),
  ...[
    '&',
    '=',
    '%',
    '%2C',
    '%00',
    '%ff',
    '%c3%a9',
    '+',
    ',',
    '?',
    '#',
    '//',
    '..',
    '\u00e9',
    'true',
    'false',
    '2025-02-30',
  ],
];

/** Codes that a query may be rejected with. */
const codes = ['malformed_target', 'malformed_argument', 'missing_argument', 'repeated_argument'];

const refusal = (error: Error): string => {
  const { code, message } = error as ApiError; // caught as one
  assert.ok(code in errorTable, `${code} is not in the table of errors`);
  assert.ok(message.length < 2_000, 'an error repeats the whole input');
  return code;
};

/** The arguments by the standard: empty pairs, which it skips, are the only difference. */
const checkSplit = (query: string, given: ReadonlyMap<string, readonly string[]>): void => {
  const expected = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(query.startsWith('?') ? `&${query}` : query))
    if (expected.get(name)?.push(value) === undefined) expected.set(name, [value]);
  const ours = [...given].filter(([name]) => name !== '');
  requireSame(
    ours,
    [...expected].filter(([name]) => name !== ''),
    'URLSearchParams reads other arguments',
  );
};

const runQuery = (input: Buffer): string => {
  const parsed = outcomeOf(() => parseTarget(input.toString('latin1')), [ApiError]);
  if ('error' in parsed) return `target ${refusal(parsed.error)}`;
  const { path, query } = parsed.value;
  const split = outcomeOf(() => splitQuery(query), [ApiError]);
  if ('value' in split) checkSplit(query, split.value);
  const matched = outcomeOf(() => matchRoute('GET', parsed.value), [ApiError]);
  const outcomes = Object.keys(routes).map((name) => {
    const read = outcomeOf(() => parseQuery(name as RouteName, query), [ApiError]); // the table's own keys
    if ('error' in read) {
      const code = refusal(read.error);
      assert.ok(codes.includes(code), `${code} is not an error of a query`);
      return code;
    }
    return Object.keys(read.value).join();
  });
  const match = 'error' in matched ? refusal(matched.error) : 'name' in matched.value ? matched.value.name : 'other';
  return `${match} ${path === '' ? 'empty' : ''}${outcomes.join(' ')}`;
};

export const openQuery = async (): Promise<Target> => ({
  seeds: seeds.map((text) => Buffer.from(text)),
  words,
  inputBytesMax: 16_384,
  run: runQuery,
});
