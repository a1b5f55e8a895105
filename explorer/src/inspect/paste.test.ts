import vectors from '@sealpost/protocol/vectors/reports.json' with { type: 'json' };
import { expect, test } from 'vitest';
import { lineAndColumnOf, parsePaste, pastedReportsMax } from './paste.ts';

const [one, two] = vectors.reports.map(({ fullReport }) => fullReport);
const hex = one as string; // the vectors have several
const other = two as string;
const fullReportsOf = (text: string) => {
  const paste = parsePaste(text);
  return paste.kind === 'reports' ? paste.reports.map(({ fullReport }) => fullReport) : paste;
};
const claim = { feedID: `0x0003${'1'.repeat(60)}`, validFromTimestamp: 5, observationsTimestamp: 6 };

test('paste: only white space is empty', () => {
  expect(parsePaste(' \n\t')).toEqual({ kind: 'empty' });
});

test.each([
  ['as it is', hex],
  ['in upper case', `0X${hex.slice(2).toUpperCase()}`],
  ['without 0x', hex.slice(2)],
  ['within blanks', `\n  ${hex}\r\n`],
  ['broken over lines', `0x\n${(hex.slice(2).match(/.{1,64}/g) ?? []).join('\n  ')}`],
  ['in quotes, with a comma', `"${hex}",`],
  ['as a report', JSON.stringify({ ...claim, fullReport: hex })],
  ['as an answer', JSON.stringify({ report: { ...claim, fullReport: hex } }, null, 2)],
])('paste: a report %s', (_, text) => {
  expect(fullReportsOf(text)).toEqual([hex]);
});

test('paste: several reports keep their order', () => {
  const reports = [{ fullReport: hex }, { fullReport: other }];
  expect(fullReportsOf(JSON.stringify({ reports }))).toEqual([hex, other]);
  expect(fullReportsOf(JSON.stringify(reports))).toEqual([hex, other]);
  expect(fullReportsOf(`${reports.map((report) => JSON.stringify({ report })).join('\n')}\n\n`)).toEqual([hex, other]);
});

test('paste: the fields around a report are kept if complete', () => {
  const paste = parsePaste(
    JSON.stringify([
      { ...claim, fullReport: hex },
      { feedID: 'x', fullReport: hex },
    ]),
  );
  expect(paste).toMatchObject({ kind: 'reports', reports: [{ claim }, { claim: undefined }] });
});

test('paste: lists inside of lists are no reports, however deep they are', () => {
  for (const depth of [2, 5_000])
    expect(parsePaste('['.repeat(depth) + ']'.repeat(depth))).toMatchObject({ problem: 'The JSON has no fullReport.' });
});

test('paste: a stray character is found with its position', () => {
  const text = `  0x${hex.slice(2, 10)}\n${hex.slice(10, 14)}g${hex.slice(14)}`;
  const paste = parsePaste(text);
  expect(paste).toMatchObject({ kind: 'wrong', problem: '“g” is not a hex digit.', at: text.indexOf('g') });
  expect(lineAndColumnOf(text, text.indexOf('g'))).toEqual({ line: 2, column: 5 });
});

test('paste: an odd number of digits is an error', () => {
  expect(parsePaste('0xabc')).toMatchObject({
    problem: 'Odd number of hex digits (3): one is missing or extra.',
  });
});

test('paste: for a truncated report, the error has the number of missing bytes', () => {
  const bytes = (hex.length - 2) / 2;
  expect(parsePaste(hex.slice(0, -80))).toMatchObject({
    problem: `Cut off after byte ${bytes - 40}: its lengths add up to ${bytes} bytes, so 40 are missing.`,
  });
  expect(parsePaste(hex.slice(0, 42))).toMatchObject({
    problem: 'Cut off after byte 20: its lengths add up to 320 bytes, so 300 are missing.',
  });
});

test('paste: a report that is cut anywhere is an error with an explanation', () => {
  for (let end = 4; end < hex.length; end += 2) {
    const paste = parsePaste(hex.slice(0, end));
    expect(paste).toMatchObject({ kind: 'wrong', problem: expect.stringContaining('Cut off after byte') });
  }
});

test('paste: for extra data, the error has the byte where it starts', () => {
  const bytes = (hex.length - 2) / 2;
  expect(parsePaste(`${hex}0000`)).toMatchObject({
    problem: `Extra data from byte ${bytes}: its lengths add up to ${bytes} bytes, but there are ${bytes + 2}.`,
  });
});

test('paste: a wrong offset is named', () => {
  const bent = `${hex.slice(0, 2 + 4 * 64 - 2)}e1${hex.slice(2 + 4 * 64)}`;
  expect(parsePaste(bent)).toMatchObject({ problem: expect.stringContaining('offset 0 points elsewhere') });
});

test('paste: more bytes than any report has are rejected', () => {
  expect(parsePaste(`0x${'00'.repeat(4_097)}`)).toMatchObject({
    problem: 'Too long: 4097 bytes. A report has at most 4096.',
  });
});

test('paste: broken or truncated JSON is an error with its position', () => {
  const cut = `{"report": {"fullReport": "${hex.slice(0, 20)}`;
  expect(parsePaste(cut)).toMatchObject({ problem: 'The JSON is cut off.', at: cut.length });
  const broken = '{"report": {"fullReport": nonsense}}';
  expect(parsePaste(broken)).toMatchObject({ problem: 'This is not JSON.', at: broken.indexOf('n', 26) });
});

test('paste: a bad line among good ones is found', () => {
  const lines = [JSON.stringify({ fullReport: hex }), '{"fullReport": oops}'];
  const text = lines.join('\n');
  expect(parsePaste(text)).toMatchObject({ problem: 'This is not JSON.', at: text.indexOf('oops') });
});

test('paste: JSON without a report says so', () => {
  expect(parsePaste('{"error":"no"}')).toMatchObject({ problem: 'The JSON has no fullReport.' });
  expect(parsePaste('{"reports":[]}')).toMatchObject({ problem: 'The list of reports is empty.' });
  expect(parsePaste('{"fullReport":""}')).toMatchObject({ kind: 'wrong' });
  expect(parsePaste(`[{"fullReport":"${hex}"},{"fullReport":"0xzz"}]`)).toMatchObject({
    problem: 'fullReport of report 2: “z” is not a hex digit.',
  });
});

test('paste: the number of reports is limited', () => {
  const reports = Array.from({ length: pastedReportsMax + 1 }, () => ({ fullReport: hex }));
  expect(parsePaste(JSON.stringify(reports))).toMatchObject({ problem: 'More than 1000 reports.' });
});
