import { expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import { judgeReport } from './append-rules.ts';

const { report } = await createSignedReports();
const stream = secondStream(1);

test('append rules: a report next to its neighbors is stored, one that overlaps a window is not', () => {
  const neighbors = [report(stream, 10, 19), report(stream, 30, 39)];
  expect(judgeReport(report(stream, 20, 29), neighbors)).toBeUndefined();
  expect(judgeReport(report(stream, 19, 29), neighbors)).toBe('overlap');
  expect(judgeReport(report(stream, 20, 30), neighbors)).toBe('overlap');
  expect(judgeReport(report(stream, 5, 50), neighbors)).toBe('overlap');
});

test('append rules: the same body is a duplicate whoever signed it and in whichever round, another body a conflict', () => {
  const stored = report(stream, 10, 19);
  expect(judgeReport(stored, [stored])).toBe('duplicate');
  expect(judgeReport(report(stream, 10, 19, undefined, 7), [stored])).toBe('duplicate');
  expect(judgeReport(report(stream, 10, 19, 3n), [stored])).toBe('conflict');
  expect(judgeReport(report(stream, 11, 19), [stored])).toBe('conflict');
});

test('append rules: bytes that are not a report are compared as they are', () => {
  const bytes = (text: string) => ({ ...report(stream, 10, 19), fullReport: Buffer.from(text) });
  expect(judgeReport(bytes('a'), [bytes('a')])).toBe('duplicate');
  expect(judgeReport(bytes('a'), [bytes('b')])).toBe('conflict');
});

test('append rules: a report replaces a damaged one under its key, unless it overlaps another', () => {
  const damaged = { validFromMs: 10_000, observationsMs: 19_000 };
  expect(judgeReport(report(stream, 10, 19), [damaged])).toBeUndefined();
  expect(judgeReport(report(stream, 5, 19), [damaged, report(stream, 1, 5)])).toBe('overlap');
});
