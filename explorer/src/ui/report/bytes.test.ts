import {
  decodeFullReport,
  encodeFullReport,
  encodeReportBody,
  type Field,
  type FieldType,
  parseFeedId,
  type ReportBody,
  reportSchemas,
} from '@sealpost/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { alterField, digitsOf, mapReportBytes, wordsOf } from './bytes.ts';
import { readReport } from './reading.ts';

const word = (digit: string) => `0x${digit.repeat(64)}` as const;
const context = { configDigest: word('a'), epochAndRound: word('b'), extraHash: word('c') };
const signatures = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ r: word('d'), s: word('e'), v: i % 2 }));

const toHex = (bytes: Uint8Array) =>
  `0x${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}` as const;

const smallest: Readonly<Record<FieldType, unknown>> = {
  bytes32: word('1'),
  time: 7,
  uint32: 7,
  uint64: 7n,
  uint192: 7n,
  int192: -7n,
};

const bodyOf = (version: string, fields: readonly Field[], resolution: '0' | '1') => {
  const feedId = parseFeedId(`0x${resolution}${Number(version).toString(16).padStart(3, '0')}${'9'.repeat(60)}`);
  const values = fields.map(({ name, type }) => [name, smallest[type]]);
  const body = { version: Number(version), ...Object.fromEntries(values), feedId } as unknown as ReportBody; // by the table
  return encodeReportBody(body);
};

const expectWhole = (fullReport: string): void => {
  const { segments } = readReport(fullReport);
  expect(segments.map((segment) => digitsOf(fullReport, segment)).join('')).toBe(fullReport.slice(2));
  expect(new Set(segments.map(({ id }) => id)).size).toBe(segments.length);
  expect(segments.filter(({ about, name, type }) => about === '' || name === '' || type === '')).toEqual([]);
  const words = wordsOf(segments);
  expect(words).toHaveLength((fullReport.length - 2) / 64);
  expect(words.filter((one) => one.reduce((sum, { length }) => sum + length, 0) !== 32)).toEqual([]);
};

test.each(Object.entries(reportSchemas))(
  'bytes: in version %s every byte is in exactly one segment',
  (version, { fields }) => {
    for (const resolution of ['0', '1'] as const) {
      for (let count = 0; count <= 32; count++) {
        const body = bodyOf(version, fields, resolution);
        const fullReport = encodeFullReport({ context, body, signatures: signatures(count) });
        expectWhole(fullReport);
        const names = readReport(fullReport).segments.flatMap(({ part, name }) => (part === 'body' ? [name] : []));
        expect(names).toEqual(fields.map(({ name }) => name));
      }
    }
  },
);

test('bytes: a body of any length with an unknown schema is mapped completely', () => {
  const body = fc.uint8Array({ maxLength: 400 }).map((bytes) => toHex(bytes));
  fc.assert(
    fc.property(body, fc.nat(32), (bytes, count) => {
      expectWhole(encodeFullReport({ context, body: bytes, signatures: signatures(count) }));
    }),
    { numRuns: 200 },
  );
});

test('bytes: offsets and lengths are correct', () => {
  const body = bodyOf('3', reportSchemas[3].fields, '0');
  const full = { context, body, signatures: signatures(2) };
  const segments = mapReportBytes(full, undefined);
  const fullReport = encodeFullReport(full);
  const at = (id: string) => segments.find((segment) => segment.id === id);
  const numberAt = (id: string): number => {
    const segment = at(id);
    return segment === undefined ? -1 : Number.parseInt(digitsOf(fullReport, segment), 16);
  };
  expect(numberAt('body offset')).toBe(at('body length')?.offset);
  expect(numberAt('rs offset')).toBe(at('rs length')?.offset);
  expect(numberAt('ss offset')).toBe(at('ss length')?.offset);
  expect(at('body offset')?.about).toBe('The body starts at byte 224, with its length.');
  expect(at('body length')?.about).toBe('The body has 288 bytes.');
});

test('bytes: r, s and v of a signature are highlighted together', () => {
  const fullReport = encodeFullReport({
    context,
    body: bodyOf('2', reportSchemas[2].fields, '0'),
    signatures: signatures(3),
  });
  const { segments } = readReport(fullReport);
  const together = segments.filter(({ link }) => link === 'signature 1').map(({ name }) => name);
  expect(together).toEqual(['v 2', 'r 2', 's 2']);
  expect(decodeFullReport(fullReport).signatures).toHaveLength(3);
});

test('bytes: altering a field flips only its last bit, and altering it twice restores it', () => {
  const body = bodyOf('2', reportSchemas[2].fields, '0');
  const fullReport = encodeFullReport({ context, body, signatures: signatures(2) });
  const price = readReport(fullReport).segments.find(({ name }) => name === 'price') ?? { offset: 0, length: 0 };
  const altered = alterField(fullReport, price);
  expect(readReport(altered).decoded?.price).toBe(-8n);
  expect(alterField(altered, price)).toBe(fullReport);
});
