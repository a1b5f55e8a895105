import { expect, expectTypeOf, test } from 'vitest';
import { parseFeedId, schemaVersionOf, timeResolutionOf } from './feed-id.ts';
import type { Hex } from './primitives/hex-bytes.ts';
import {
  decodeFullReport,
  decodeReportBody,
  encodeFullReport,
  encodeReportBody,
  fullReportBytesMax,
  headlinePriceOf,
  ReportFormatError,
  readReportBody,
  windowOf,
} from './report.ts';
import { toReportJson } from './report-json.ts';
import { headFields, type ReportBodyOf, reportSchemas } from './report-schemas.ts';
import vectors from './vectors/reports.json' with { type: 'json' };

const hex = (text: string) => text as Hex; // the vectors begin with 0x
const sample = vectors.reports[2] as (typeof vectors.reports)[number]; // the file has more
const reasonOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(ReportFormatError);
    return (error as ReportFormatError).reason; // any other fails the test
  }
  return expect.unreachable();
};

/** The report with one 32-byte word of its envelope replaced. */
const withWord = (word: number, value: string): string =>
  `${sample.fullReport.slice(0, 2 + word * 64)}${value.padStart(64, '0')}${sample.fullReport.slice(2 + (word + 1) * 64)}`;

test.each(vectors.reports)('report vector: $name decodes to its values and encodes back to its bytes', (vector) => {
  const full = decodeFullReport(vector.fullReport);
  expect(full.context).toEqual(vector.context);
  expect(full.body).toBe(vector.body);
  const body = decodeReportBody(full.body);
  expect(body.version).toBe(vector.version);
  expect(timeResolutionOf(body.feedId)).toBe(vector.timeResolution);
  expect(String(headlinePriceOf(body))).toBe(
    (vector.decoded as Record<string, string>)[reportSchemas[body.version].headline.price], // read by the name of its price
  );
  const printed = Object.fromEntries(Object.entries(body).map(([name, value]) => [name, String(value)]));
  expect(printed).toEqual({ version: String(vector.version), ...vector.decoded });
  expect(windowOf(body)).toEqual({ ...vector.window, expiresAtMs: vector.window.expiresAtMs ?? undefined });
  expect(encodeReportBody(body)).toBe(vector.body);
  expect(encodeFullReport(full)).toBe(vector.fullReport);
  expect(JSON.stringify(toReportJson(body.feedId, windowOf(body), vector.fullReport))).toBe(
    JSON.stringify({ ...vector.wire, fullReport: vector.fullReport }),
  );
});

test('report vectors: one for each version of the table', () => {
  expect(new Set(vectors.reports.map(({ version }) => String(version)))).toEqual(new Set(Object.keys(reportSchemas)));
});

test('report schemas: the headline names fields that the schema has', () => {
  for (const { headline, fields } of Object.values(reportSchemas)) {
    for (const name of Object.values(headline)) expect(fields.map((field) => field.name)).toContain(name);
  }
});

test('report schemas: types are derived from the table', () => {
  expectTypeOf<ReportBodyOf<3>['price']>().toEqualTypeOf<bigint>();
  expectTypeOf<ReportBodyOf<8>['marketStatus']>().toEqualTypeOf<number>();
  expectTypeOf<ReportBodyOf<1>['currentBlockHash']>().toEqualTypeOf<`0x${string}`>();
  expectTypeOf<ReportBodyOf<2>>().not.toHaveProperty('bid');
});

test('report: upper-case hex decodes to the same values', () => {
  expect(decodeFullReport(`0x${sample.fullReport.slice(2).toUpperCase()}`)).toEqual(
    decodeFullReport(sample.fullReport),
  );
});

test.each([
  ['no 0x', sample.fullReport.slice(2)],
  ['an odd digit', `${sample.fullReport}0`],
  ['a letter that is no digit', sample.fullReport.replace('a', 'g')],
  ['empty text', ''],
  ['more bytes than any report has', `0x${'00'.repeat(fullReportBytesMax + 1)}`],
])('report: %s is malformed hex', (_, text) => {
  expect(reasonOf(() => decodeFullReport(text))).toBe('malformed_hex');
});

test.each([
  ['no bytes at all', '0x'],
  ['bytes left over', `${sample.fullReport}${'00'.repeat(32)}`],
  ['the body’s offset one word further', withWord(3, '100')],
  ['a huge offset', withWord(3, 'f'.repeat(64))],
  ['rs and ss at the same place', withWord(5, sample.fullReport.slice(2 + 4 * 64, 2 + 5 * 64))],
  ['a huge number of signatures', withWord(17, 'f'.repeat(64))],
  ['a v beyond the signatures', withWord(6, `0001000001${'0'.repeat(54)}`)],
])('report: %s is a malformed envelope', (_, text) => {
  expect(reasonOf(() => decodeFullReport(text))).toBe('malformed_envelope');
});

test('report: a body whose length is no multiple of a word must be padded with zeros', () => {
  const short = encodeFullReport({ ...decodeFullReport(sample.fullReport), body: '0x0102' });
  expect(decodeFullReport(short).body).toBe('0x0102');
  expect(reasonOf(() => decodeFullReport(short.replace(`0102${'0'.repeat(60)}`, `0102${'0'.repeat(59)}1`)))).toBe(
    'malformed_envelope',
  );
});

test('body: an unknown version or timestamp resolution is in the error', () => {
  const unknown = (prefix: string) => () => decodeReportBody(hex(`0x${prefix}${sample.body.slice(6)}`));
  expect(unknown('0000')).toThrow('The feed ID names schema version 0, which this release does not know.');
  expect(unknown('000f')).toThrow('schema version 15');
  expect(unknown('2003')).toThrow('The feed ID names time resolution 2, which is not defined.');
  expect(reasonOf(unknown('0fff'))).toBe('unknown_schema');
  expect(reasonOf(unknown('2003'))).toBe('malformed_body');
  expect(reasonOf(() => decodeReportBody('0x'))).toBe('malformed_body');
});

test('body: one word more or less is not decoded', () => {
  expect(() => decodeReportBody(hex(`${sample.body}${'00'.repeat(32)}`))).toThrow('A version 3 body has 9 words.');
  expect(reasonOf(() => decodeReportBody(hex(sample.body.slice(0, -64))))).toBe('unknown_schema');
});

const { price, bid, ask, version, ...headOfSample } = decodeReportBody(hex(sample.body)) as ReportBodyOf<3>; // the sample's
const word = (i: number, digits: string) =>
  `${sample.body.slice(0, 2 + i * 64)}${digits}${sample.body.slice(66 + i * 64)}`;

test.each([
  ['of an unknown version', `0x0fff${sample.body.slice(6)}`],
  ['of version 0', `0x0000${sample.body.slice(6)}`],
  ['with a word more', `${sample.body}${'ff'.repeat(32)}`],
  ['with half a word more', `${sample.body}${'ff'.repeat(16)}`],
  ['with its head alone', sample.body.slice(0, 2 + 6 * 64)],
  ['with a price out of range', word(6, '01'.padEnd(64, '0'))],
])('body: one %s has the window of its head, and no fields', (_, text) => {
  const head = readReportBody(hex(text));
  expect(head).toEqual({ ...headOfSample, feedId: text.slice(0, 66), version: undefined, problem: expect.any(String) });
  expect(windowOf(head)).toEqual(windowOf(decodeReportBody(hex(sample.body))));
  expect(headlinePriceOf(head)).toBeUndefined();
  expect(reasonOf(() => decodeReportBody(hex(text)))).toBe('unknown_schema');
});

test('body: one in milliseconds that is of an unknown version has the window of its head', () => {
  const fine = word(1, (1_763_200_000_123).toString(16).padStart(64, '0')).replace('0x0003', '0x1fff');
  expect(windowOf(readReportBody(hex(fine))).validFromMs).toBe(1_763_200_000_123);
});

test.each<readonly [string, string]>([
  ...[1, 2, 3, 4, 5].map((i) => [`${headFields[i]?.name} out of range`, word(i, `01${'0'.repeat(62)}`)] as const),
  ['a head that is cut', sample.body.slice(0, 2 + 6 * 64 - 2)],
  ['an undefined time resolution', `0x2${sample.body.slice(3)}`],
  ['another layout of version 1, which has no such head', `0x0001${sample.body.slice(6)}`],
])('body: one with %s is malformed, whatever its version', (_, text) => {
  for (const body of [text, text.replace('0x0003', '0x0fff')])
    expect(reasonOf(() => readReportBody(hex(body)))).toBe('malformed_body');
});

test('body: a number with dirty high bytes is rejected', () => {
  const dirty = (word: number) => hex(`${sample.body.slice(0, 2 + word * 64)}01${sample.body.slice(4 + word * 64)}`);
  expect(() => decodeReportBody(dirty(1))).toThrow('validFromTimestamp is out of range for its type.');
  expect(() => decodeReportBody(hex(sample.body.replace('000000006', '000000106')))).toThrow(
    'validFromTimestamp is out of range for its type.',
  );
  expect(() => decodeReportBody(dirty(3))).toThrow('nativeFee is out of range for its type.');
  expect(() => decodeReportBody(dirty(6))).toThrow('price is out of range for its type.');
});

test('body: a value that does not fit its field is not encoded', () => {
  const body = decodeReportBody(hex(sample.body)) as ReportBodyOf<3>; // the sample is of version 3
  const extremes = { ...body, price: 2n ** 191n - 1n, bid: -(2n ** 191n) };
  expect(decodeReportBody(encodeReportBody(extremes))).toEqual(extremes);
  for (const wrong of [
    { price: 2n ** 191n },
    { bid: -(2n ** 191n) - 1n },
    { nativeFee: -1n },
    { expiresAt: 2 ** 32 },
    { observationsTimestamp: 1.5 },
    { price: undefined },
    { price: 1 },
    { linkFee: '1' },
    { expiresAt: 1n },
    { observationsTimestamp: Number.NaN },
    { expiresAt: -1 },
  ]) {
    const bad = { ...body, ...wrong } as unknown as ReportBodyOf<3>; // wrong on purpose
    expect(reasonOf(() => encodeReportBody(bad))).toBe('malformed_body');
  }
});

test('body: its version and its feed ID must agree', () => {
  const body = decodeReportBody(hex(sample.body)) as ReportBodyOf<3>; // the sample is of version 3
  const feedId = parseFeedId(`0x0002${body.feedId.slice(6)}`);
  expect(schemaVersionOf(feedId)).toBe(2);
  expect(() => encodeReportBody({ ...body, feedId })).toThrow('A version 3 body has a feed ID of version 2.');
});

test('body: the error names the field that cannot be encoded', () => {
  const body = decodeReportBody(hex(sample.body)) as ReportBodyOf<3>; // the sample is of version 3
  expect(() => encodeReportBody({ ...body, ask: 2n ** 191n })).toThrow('ask is missing or out of range.');
  for (const wrong of [{ ask: 1 }, { ask: '1' }, { expiresAt: 1n }])
    expect(() => encodeReportBody({ ...body, ...wrong } as never)).toThrow(
      /^(ask is a (number|string), but must be a bigint|expiresAt is a bigint, but must be a number)\.$/,
    );
});

test('full report: a value that does not fit is not encoded, and the error names it', () => {
  const full = decodeFullReport(sample.fullReport);
  const first = full.signatures[0] as (typeof full.signatures)[number]; // the sample is signed
  const cases = [
    [{ context: { ...full.context, extraHash: '0x00' } }, 'extraHash is not 0x and 64 hex digits'],
    [{ body: '0x0' }, 'its body is not 0x and an even number of hex digits'],
    [{ body: `${full.body}\n` }, 'its body is not 0x and an even number of hex digits'],
    [{ signatures: [first, { ...first, r: `0x${'0'.repeat(63)}g` }] }, 'r of signature 1 is not 0x and 64 hex digits'],
    [{ signatures: [{ ...first, s: `0x${'0'.repeat(66)}` }] }, 's of signature 0 is not 0x and 64 hex digits'],
    [{ signatures: [{ ...first, v: 256 }] }, 'v of signature 0 is not one byte'],
    [{ signatures: [{ ...first, v: -1 }] }, 'v of signature 0 is not one byte'],
    [{ signatures: Array(33).fill(first) }, 'it has 33 signatures'],
  ] as const;
  for (const [wrong, why] of cases) {
    const encode = () => encodeFullReport({ ...full, ...wrong } as typeof full); // wrong on purpose
    expect(encode).toThrow(`The report cannot be encoded: ${why}.`);
    expect(reasonOf(encode)).toBe('malformed_envelope');
  }
});

test('full report: hex in upper case is encoded in lower case', () => {
  const upper = (text: string) => `0x${text.slice(2).toUpperCase()}` as const;
  const { context, body, signatures } = decodeFullReport(sample.fullReport);
  const shouted = {
    context: { ...context, configDigest: upper(context.configDigest) },
    body: upper(body),
    signatures: signatures.map((one) => ({ ...one, r: upper(one.r), s: upper(one.s) })),
  };
  expect(encodeFullReport(shouted)).toBe(sample.fullReport);
});
