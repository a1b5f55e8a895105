import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { readText } from '../../../tests/support/source-tree.ts';
import { commonFields, faultKindNames, kindRow } from './kinds.ts';
import { FaultError, faultSchema, fieldsOf, formatFault, parseFault } from './parse.ts';

const account = '11111111-2222-4333-8444-555555555555';

const refusal = (value: unknown): readonly [string, string] => {
  try {
    parseFault(value);
  } catch (error) {
    if (error instanceof FaultError) return [error.field, error.message];
    throw error;
  }
  throw new Error(`${JSON.stringify(value)} was accepted.`);
};

const isValid = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(faultSchema());

test.each([
  [
    'status=503,retry-after=2,probability=0.1,route=reportLatest',
    { kind: 'status', status: 503, retryAfter: 2, probability: 0.1, route: 'reportLatest' },
  ],
  ['latency=200ms, jitter=50ms, for=1m', { kind: 'latency', delay: '200ms', jitter: '50ms', for: '1m' }],
  ['reset,count=1', { kind: 'reset', count: 1 }],
  ['missing,stream=ETH/USD+BTC/USD', { kind: 'missing', stream: ['ETH/USD', 'BTC/USD'] }],
  ['clock=-30s', { kind: 'clock', offset: '-30s' }],
  [`revoked,account=${account}`, { kind: 'revoked', account }],
  ['close=1012,mark', { kind: 'close', code: 1012, mark: true }],
  [
    'gap,from=2026-03-13T14:30:00Z,to=2026-03-13T14:31:00Z,route=socket+reportAt',
    { kind: 'gap', from: '2026-03-13T14:30:00Z', to: '2026-03-13T14:31:00Z', route: ['socket', 'reportAt'] },
  ],
])('faults: the line %s is the same as its JSON', (line, json) => {
  const fault = parseFault(line);
  expect(fault).toEqual(json);
  expect(parseFault(json)).toEqual(fault);
  expect(parseFault(formatFault(fault))).toEqual(fault);
  expect([isValid(fault), isValid({ ...fault, probability: 2 }), isValid({ ...fault, odd: 1 })]).toEqual([
    true,
    false,
    false,
  ]);
});

test.each([
  [{ kind: 'missing', stream: ['ETH/USD'] }, 'missing,stream=ETH/USD'],
  [{ kind: 'reset', account: [account], route: ['reportLatest'] }, `reset,route=reportLatest,account=${account}`],
  [
    { kind: 'status', status: 418, body: ' a, 100 %\n%41 ', contentType: 'text/plain; charset=utf-8' },
    'status=418,body=%20a%2C 100 %25%0A%2541%20,content-type=text/plain; charset=utf-8',
  ],
  [{ kind: 'reset', probability: 1e-7 }, 'reset,probability=1e-7'],
  [{ kind: 'status', status: 503, retryAfter: -0, skip: -0 }, 'status=503,retry-after=0,skip=0'],
])('faults: %o is the same fault as a line and as JSON', (json, line) => {
  const fault = parseFault(json);
  expect(formatFault(fault)).toBe(line);
  expect(parseFault(line)).toStrictEqual(fault);
  expect(parseFault(JSON.parse(JSON.stringify(fault)))).toStrictEqual(fault);
});

test('faults: the line of the longest lists can be read again', () => {
  const [stream, accounts, route] = ['x'.repeat(200), account, 'reportCoverageMany'].map((name) =>
    Array(100).fill(name),
  );
  const fault = parseFault({ kind: 'reset', stream, account: accounts, route });
  expect(parseFault(formatFault(fault))).toStrictEqual(fault);
});

test.each([
  ['nope', 'kind', /^kind is "nope", expected one of status, latency, reset, .*, stop, gap\.$/],
  [{}, 'kind', /^kind is missing, expected one of/],
  [[], 'kind', /^The fault is \[\], expected an object/],
  [null, 'kind', /^The fault is null/],
  ['status', 'status', /^status is missing, expected 200 to 203, 205 to 303 or 305 to 599\.$/],
  ['status=204', 'status', /^status is 204, expected 200 to 203, 205 to 303 or 305 to 599\.$/],
  ['status=418,content-type=a,b', 'b', /^"b" is not a field/],
  [{ kind: 'status', status: '503' }, 'status', /^status is "503", expected/],
  [
    'status=503,retry=2',
    'retry',
    /^"retry" is not a field of the fault status\. Fields: status, body, content-type, retry-after, id, /,
  ],
  [{ kind: 'status', status: 503, __proto__: null, toString: 1 }, 'toString', /^"toString" is not a field/],
  ['reset=1', 'kind', /^The fault reset has no value of its own\. Write reset without "=1"\.$/],
  ['status=503,status=500', 'status', /^status is given twice/],
  ['reset,probability=2', 'probability', /^probability is 2, expected a number from 0 to 1\.$/],
  ['reset,probability=often', 'probability', /^probability is "often", expected a number/],
  ['reset,count=0', 'count', /^count is 0, expected a whole number from 1 to 1000000\.$/],
  ['latency=200', 'delay', /^delay is "200", expected a duration from 0ms to 60s such as 500ms or 10s\.$/],
  ['latency=61s', 'delay', /^delay is "61s", expected/],
  ['clock=0s', 'offset', /^offset is "0s", expected a duration from -7d to 7d, not 0, such as/],
  [
    'reset,route=latest',
    'route',
    /^route is "latest", expected one of discovery, feeds, reportAt, reportLatest, .*, or a list of them\.$/,
  ],
  ['reset,account=me', 'account', /^account is "me", expected a user ID such as/],
  ['reset,stream=0x12', 'stream', /^stream is "0x12", expected a stream name, a pair such as ETH\/USD, or a feed ID/],
  [{ kind: 'reset', stream: [] }, 'stream', /^stream is \[\], expected/],
  ['reset,from=2026-02-30T00:00:00Z', 'from', /^from is "2026-02-30T00:00:00Z", expected a date/],
  ['reset,from=tomorrow', 'from', /^from is "tomorrow", expected a date such as 2026-03-13T14:30:00Z, or a duration/],
  ['reset,to=10s,for=10s', 'for', /^for and to are both given/],
  ['reset,from=10s,to=5s', 'to', /^to is "5s", expected a time after from, which is "10s"\.$/],
  ['gap', 'to', /^to is missing: a gap ends\. Give to or for, or use the fault stop\.$/],
  ['stop,count=2', 'count', /^"count" is not a field of the fault stop/],
  ['close=1005', 'code', /^code is 1005, expected 1000 to 1003, 1006 to 1014 or 3000 to 4999\.$/],
  [`reset,id=${'x'.repeat(65)}`, 'id', /^id is "x+…?"?, expected up to 64 letters/],
  ['x'.repeat(40_000), 'kind', /^The fault has more than 32768 characters\.$/],
])('faults: the error for %j names the field and what it may be', (value, field, message) => {
  const [named, text] = refusal(value);
  expect([named, text]).toEqual([field, expect.stringMatching(message)]);
  expect(text.length).toBeLessThan(600);
});

test('faults: what JSON cannot have is an error like others', () => {
  expect(refusal({ kind: 'reset', count: 10n })).toEqual([
    'count',
    'count is [object BigInt], expected a whole number from 1 to 1000000.',
  ]);
});

test('faults: the schema has one alternative for each kind, with its fields, and nothing else', () => {
  const { oneOf } = faultSchema() as { readonly oneOf: readonly Record<string, Record<string, unknown>>[] };
  expect(oneOf.map(({ properties }) => properties?.kind)).toEqual(faultKindNames.map((kind) => ({ const: kind })));
  for (const [i, kind] of faultKindNames.entries()) {
    expect(Object.keys(oneOf[i]?.properties ?? {})).toEqual(['kind', ...Object.keys(fieldsOf(kind))]);
    expect(oneOf[i]?.additionalProperties).toBe(false);
  }
});

const code = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');

test('faults: docs/sandbox.md lists exactly the kinds and fields of the table', () => {
  const text = readText('docs/sandbox.md');
  const kinds = faultKindNames.map((kind) => {
    const { acts, about, main, fields } = kindRow(kind);
    const own = Object.entries(fields).map(
      ([name, { about: what, expected }]) =>
        `\`${name}\`${name === main ? ` (\`${kind}=…\`)` : ''}: ${what} Expected: ${expected}.`,
    );
    return `| \`${kind}\` | ${acts} | ${about} | ${own.join('<br>')} |`.replace(/ +\|/g, ' |');
  });
  const common = Object.entries(commonFields).map(([name, { about }]) => {
    const not = faultKindNames.filter((kind) => !Object.hasOwn(fieldsOf(kind), name));
    return `| \`${name}\` | ${about}${not.length === 0 ? '' : ` Not for ${code(not)}.`} |`;
  });
  const rows = text.split('\n').map((line) => line.replace(/ +\|/g, ' |'));
  expect(rows.filter((line) => kinds.includes(line))).toEqual(kinds);
  expect(rows.filter((line) => common.includes(line))).toEqual(common);
});
