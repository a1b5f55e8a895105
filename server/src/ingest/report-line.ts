// The lines that sources send to ingest, and the result for each, in order.
import type { RejectionCode } from './rejections.ts';
import { Rejection } from './rejections.ts';

/** A parsed line. Only `fullReport` is required; the other fields must agree with it. */
export type ReportLine = {
  readonly fullReport: string;
  readonly feedID?: unknown;
  readonly validFromTimestamp?: unknown;
  readonly observationsTimestamp?: unknown;
};

/** The result for a line. Times are seconds, null where the line states none. */
export type LineResult = {
  readonly line: number;
  readonly result: 'stored' | 'duplicate' | 'refused';
  readonly feedID: string | null;
  readonly observationsTimestamp: number | null;
  readonly code: RejectionCode | null;
  readonly message: string | null;
};

/** Longer than any report line: 4,096 bytes in hex and the other fields. */
export const lineCharactersMax = 16_384;

/** Reads a line: a report as on the wire, or `{"report": …}` around one. */
export function parseReportLine(text: string): ReportLine {
  const value = parseJson(text);
  const report = isObject(value) && isObject(value.report) ? value.report : value;
  if (!isObject(report)) throw new Rejection('malformed_line', 'It must be an object.');
  const { fullReport, feedID, validFromTimestamp, observationsTimestamp } = report;
  if (typeof fullReport !== 'string') throw new Rejection('malformed_line', 'It must have fullReport, a text.');
  return { fullReport, feedID, validFromTimestamp, observationsTimestamp };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const parseJson = (text: string): unknown => {
  if (text.length > lineCharactersMax)
    throw new Rejection('malformed_line', `It is longer than ${lineCharactersMax} characters.`);
  try {
    return JSON.parse(text);
  } catch {
    throw new Rejection('malformed_line', 'It is not JSON.');
  }
};
