import vectors from '@sealpost/protocol/vectors/reports.json' with { type: 'json' };
import { expect, test } from 'vitest';
import { fileBytesMax, formatBytes, type InputFile, readInputFile } from './file.ts';

const fullReport = vectors.reports[0]?.fullReport as string; // the vectors have several
const bytesOf = (hex: string) =>
  Uint8Array.from(hex.slice(2).match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
const fileOf = (content: Uint8Array<ArrayBuffer> | string, name = 'reports.bin'): InputFile =>
  new File([content], name);

test('file: the bytes of a report become hex', async () => {
  expect(await readInputFile(fileOf(bytesOf(fullReport)))).toEqual({ kind: 'text', text: fullReport });
});

test.each([
  ['NDJSON', '{"fullReport":"0x00"}\n{"fullReport":"0x01"}\n'],
  ['hex', fullReport],
  ['text with letters beyond ASCII', '{"name":"Zürich"}'],
])('file: %s is text', async (_, text) => {
  expect(await readInputFile(fileOf(text))).toEqual({ kind: 'text', text });
});

test('file: text in UTF-16, and with a byte order mark, is read', async () => {
  const utf16 = bytesOf('0xfffe3000780061006200'); // 0xab, little-endian
  expect(await readInputFile(fileOf(utf16))).toEqual({ kind: 'text', text: '0xab' });
  expect(await readInputFile(fileOf('\ufeff0xab'))).toEqual({ kind: 'text', text: '0xab' });
});

test.each([
  ['an empty file', new Uint8Array(), 'reports.bin is empty.'],
  ['gzip', bytesOf('0x1f8b0800'), 'reports.bin is compressed (gzip).'],
  ['Parquet', bytesOf('0x5041523100'), 'reports.bin is a Parquet file.'],
  [
    'a picture',
    new Uint8Array(5_000),
    'reports.bin is not text, and too long for the bytes of a report: 5,000, at most 4,096.',
  ],
])('file: %s is explained', async (_, content, problem) => {
  expect(await readInputFile(fileOf(content))).toMatchObject({ kind: 'wrong', problem });
});

test('file: one that is too large is not read', async () => {
  const file: InputFile = { name: 'day.ndjson', size: fileBytesMax + 1_000_000, arrayBuffer: () => Promise.reject() };
  expect(await readInputFile(file)).toMatchObject({
    problem: 'day.ndjson is too large: 9.0 MB. This page reads up to 8.0 MB.',
  });
});

test('file: a folder cannot be read, and the page says so', async () => {
  const folder: InputFile = { name: 'reports', size: 4_096, arrayBuffer: () => Promise.reject(new Error('NotFound')) };
  expect(await readInputFile(folder)).toMatchObject({ problem: 'reports could not be read.' });
});

test('file: sizes are in a unit that fits', () => {
  expect([12, 12_345, 2_400_000].map(formatBytes)).toEqual(['12 bytes', '12 KB', '2.4 MB']);
});
