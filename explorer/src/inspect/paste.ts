// Parses pasted reports, from hex, JSON of the API or lines of JSON, and finds where the text is wrong.
import {
  decodeFullReport,
  envelopeHeadWords,
  fullReportBytesMax,
  ReportFormatError,
  signaturesMax,
  wordBytes,
} from '@sealpost/protocol';
import type { Claim } from '../ui/report/proof.ts';
import { findJsonError } from './json-error.ts';

export type PastedReport = {
  /** Lower case, with 0x. */
  readonly fullReport: string;
  /** The fields of the JSON around it, if complete. */
  readonly claim: Claim | undefined;
};

export type Paste =
  | { readonly kind: 'empty' }
  /** In the order of the text; at least one. */
  | { readonly kind: 'reports'; readonly reports: readonly PastedReport[] }
  | {
      readonly kind: 'wrong';
      readonly problem: string;
      /** What to do. */
      readonly advice: string;
      /** Position in the text, from 0, if known. */
      readonly at: number | undefined;
    };

/** Reports per paste, at most. */
export const pastedReportsMax = 1_000;

const wrong = (problem: string, advice: string, at?: number): Paste => ({ kind: 'wrong', problem, advice, at });

/** Reads a pasted text. */
export function parsePaste(text: string): Paste {
  const begin = text.search(/\S/);
  if (begin === -1) return { kind: 'empty' };
  return /[{[]/.test(text.charAt(begin)) ? parseJsonText(text, begin) : parseHexText(text);
}

/** Line and column of a place in a text, counted from 1. */
export function lineAndColumnOf(text: string, at: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, at).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

const hexAdvice = 'A full report is 0x followed by hex digits, two per byte. Spaces and line breaks are ignored.';

/** Without what may follow a value that was copied. */
const withoutEnd = (text: string): string => {
  let end = text.length;
  while (end > 0 && /[\s"'`,]/.test(text.charAt(end - 1))) end--;
  return text.slice(0, end);
};

const parseHexText = (text: string): Paste => {
  // A value that is copied out of JSON may have quotes and commas.
  const [, start = ''] = /^([\s"'`,]*(?:0[xX])?)/.exec(text) ?? [];
  const rest = withoutEnd(text.slice(start.length));
  const stray = rest.search(/[^0-9a-fA-F\s]/);
  if (stray !== -1) return wrong(`“${[...rest.slice(stray)][0]}” is not a hex digit.`, hexAdvice, start.length + stray);
  const digits = rest.replace(/\s+/g, '').toLowerCase();
  if (digits.length % 2 === 1)
    return wrong(`Odd number of hex digits (${digits.length}): one is missing or extra.`, hexAdvice);
  return check({ fullReport: `0x${digits}`, claim: undefined });
};

const parseJsonText = (text: string, begin: number): Paste => {
  const whole = readJson(text, 0);
  if ('value' in whole) return collect([[whole.value, begin]]);
  const lines = linesOf(text);
  // Lines that all look like objects are one value each; anything else is one broken value.
  if (lines.length === 1 || !lines.every(([line]) => line.startsWith('{') && line.endsWith('}')))
    return wrong(whole.problem, jsonAdvice, whole.at);
  const values: [unknown, number][] = [];
  for (const [line, at] of lines) {
    const read = readJson(line, at);
    if (!('value' in read)) return wrong(read.problem, jsonAdvice, read.at);
    values.push([read.value, at]);
  }
  return collect(values);
};

const linesOf = (text: string): readonly (readonly [line: string, at: number])[] => {
  let at = 0;
  return text.split('\n').flatMap((line) => {
    const offset = at + Math.max(0, line.search(/\S/));
    at += line.length + 1;
    return line.trim() === '' ? [] : [[line.trim(), offset] as const];
  });
};

const jsonAdvice = 'Paste an API response, one JSON report per line, or the value of fullReport.';

type JsonRead = { readonly value: unknown } | { readonly problem: string; readonly at: number | undefined };

const readJson = (text: string, offset: number): JsonRead => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    const at = findJsonError(text);
    const isCut = at === text.trimEnd().length;
    return {
      problem: isCut ? 'The JSON is cut off.' : 'This is not JSON.',
      at: at === undefined ? undefined : offset + at,
    };
  }
};

/** Collects the reports of values: a report, `{report}`, `{reports}`, or a list of these. */
const collect = (values: readonly (readonly [value: unknown, at: number])[]): Paste => {
  const found: PastedReport[] = [];
  for (const [value, at] of values) {
    for (const raw of unwrap(value)) {
      const { fullReport } = Object(raw);
      if (typeof fullReport !== 'string')
        return wrong('The JSON has no fullReport.', jsonAdvice, values.length > 1 ? at : undefined);
      const read = parseHexText(fullReport);
      if (read.kind !== 'reports') {
        const problem = read.kind === 'wrong' ? read.problem : 'It is empty.';
        const nth = found.length === 0 ? '' : ` of report ${found.length + 1}`;
        return wrong(`fullReport${nth}: ${problem}`, read.kind === 'wrong' ? read.advice : hexAdvice, at);
      }
      found.push(...read.reports.map((report) => ({ ...report, claim: claimOf(raw) })));
      if (found.length > pastedReportsMax)
        return wrong(`More than ${pastedReportsMax} reports.`, 'Paste fewer at once.');
    }
  }
  return found.length === 0 ? wrong('The list of reports is empty.', jsonAdvice) : { kind: 'reports', reports: found };
};

const unwrap = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value.flatMap(unwrapOne) : unwrapOne(value);

const unwrapOne = (value: unknown): readonly unknown[] => {
  const { report, reports } = Object(value);
  if (Array.isArray(reports)) return reports;
  return [report ?? value];
};

const claimOf = (raw: unknown): Claim | undefined => {
  const { feedID, validFromTimestamp, observationsTimestamp } = Object(raw);
  const isWhole =
    typeof feedID === 'string' &&
    Number.isSafeInteger(validFromTimestamp) &&
    Number.isSafeInteger(observationsTimestamp);
  return isWhole ? { feedID, validFromTimestamp, observationsTimestamp } : undefined;
};

const check = (report: PastedReport): Paste => {
  try {
    decodeFullReport(report.fullReport);
    return { kind: 'reports', reports: [report] };
  } catch (error) {
    if (!(error instanceof ReportFormatError)) throw error;
    return wrong(...explainEnvelope(report.fullReport, error));
  }
};

const wordDigits = 2 * wordBytes;

/** Why bytes are not a report, with the offset if known. */
const explainEnvelope = (fullReport: string, error: ReportFormatError): [problem: string, advice: string] => {
  const bytes = (fullReport.length - 2) / 2;
  const whole = 'Copy all of fullReport, and nothing else.';
  if (bytes > fullReportBytesMax)
    return [`Too long: ${bytes} bytes. A report has at most ${fullReportBytesMax}.`, whole];
  const expected = expectedBytes(fullReport);
  if (expected !== undefined && bytes < expected)
    return [
      `Cut off after byte ${bytes}: its lengths add up to ${expected} bytes, so ${expected - bytes} are missing.`,
      whole,
    ];
  if (expected !== undefined && bytes > expected)
    return [
      `Extra data from byte ${expected}: its lengths add up to ${expected} bytes, but there are ${bytes}.`,
      whole,
    ];
  return [error.message, 'Only the canonical encoding of a report is accepted; see docs/protocol.md, report bytes.'];
};

/** The size of a report by the lengths in it; undefined if they make no sense. */
const expectedBytes = (fullReport: string): number | undefined => {
  const lengthAt = (word: number, max: number): number | undefined => {
    const digits = fullReport.slice(2 + word * wordDigits, 2 + (word + 1) * wordDigits);
    const value = digits.length === wordDigits ? BigInt(`0x${digits}`) : undefined;
    return value !== undefined && value <= max ? Number(value) : undefined;
  };
  const headBytes = (envelopeHeadWords + 3) * wordBytes; // with three lengths: body, rs and ss
  const bodyBytes = lengthAt(envelopeHeadWords, fullReportBytesMax);
  if (bodyBytes === undefined)
    return fullReport.length < 2 + (envelopeHeadWords + 1) * wordDigits ? headBytes : undefined;
  const bodyWords = Math.ceil(bodyBytes / wordBytes);
  const rsAt = envelopeHeadWords + 1 + bodyWords;
  const count = lengthAt(rsAt, signaturesMax);
  const isCut = fullReport.length < 2 + (rsAt + 1) * wordDigits;
  if (count === undefined) return isCut ? headBytes + bodyWords * wordBytes : undefined;
  return headBytes + (bodyWords + 2 * count) * wordBytes;
};
