// A report as the server sends it: checked, with its window in milliseconds, by which streams and pages are ordered.
import { schemaVersionOf, secondsMax, timeResolutionOf } from '@sealpost/protocol';
import type { ReportJson } from '@sealpost/protocol/report-json';

/** A report with its window in milliseconds: exact if the report has them, else whole seconds. */
export type ReceivedReport = {
  readonly report: ReportJson;
  readonly validFromMs: number;
  readonly observationsMs: number;
};

/** Milliseconds between two reports of a stream, at least: 1,000 unless its timestamps are in milliseconds. */
export const stepMsOf = (feedId: string): number => (timeResolutionOf(feedId) === 'milliseconds' ? 1 : 1_000);

// A full report starts with seven words of envelope and the body's length; the body has the feed ID first, then the window.
const bodyAt = 8;
const wordDigits = 64;

/** A word of the full report as milliseconds, if it matches the second of the response. */
const exactMs = (fullReport: string, word: number, seconds: number): number => {
  const ms = Number(`0x${fullReport.slice(2 + word * wordDigits, 2 + (word + 1) * wordDigits)}`);
  return Math.floor(ms / 1_000) === seconds ? ms : seconds * 1_000;
};

/** Adds the window in milliseconds. */
export function toReceived(report: ReportJson): ReceivedReport {
  const { feedID, validFromTimestamp, observationsTimestamp, fullReport } = report;
  if (stepMsOf(feedID) === 1_000)
    return { report, validFromMs: validFromTimestamp * 1_000, observationsMs: observationsTimestamp * 1_000 };
  // Version 1 has one timestamp, the others have a window.
  const observationsAt = schemaVersionOf(feedID) === 1 ? bodyAt + 1 : bodyAt + 2;
  return {
    report,
    validFromMs: exactMs(fullReport, bodyAt + 1, validFromTimestamp),
    observationsMs: exactMs(fullReport, observationsAt, observationsTimestamp),
  };
}

/** The start of a report's window. Version 1 has none, so its timestamp does not show whether reports before it are missing. */
export const windowStartMs = ({ report, validFromMs }: ReceivedReport): number =>
  schemaVersionOf(report.feedID) === 1 ? 0 : validFromMs;

const isTimestamp = (value: unknown, unitMs: 1 | 1_000): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && (value * unitMs) / 1_000 < secondsMax + 1;

/** Validates a report with its window in seconds, which end in 2106; undefined if it is not one. Keeps only the four fields of a response. */
export function toReport(raw: unknown): ReportJson | undefined {
  const { feedID, validFromTimestamp, observationsTimestamp, fullReport } = Object(raw) as Record<string, unknown>; // checked below
  if (typeof feedID !== 'string' || typeof fullReport !== 'string') return undefined;
  if (!isTimestamp(validFromTimestamp, 1_000) || !isTimestamp(observationsTimestamp, 1_000)) return undefined;
  return { feedID: feedID.toLowerCase(), validFromTimestamp, observationsTimestamp, fullReport };
}

/** Parses a report with its window in seconds or in milliseconds; throws on anything else. */
export function parseReceived(raw: unknown): ReceivedReport {
  const report = toReport(raw);
  if (report !== undefined) return toReceived(report);
  const { validFromTimestampMs: validFromMs, observationsTimestampMs: observationsMs, ...rest } = Object(raw);
  if (isTimestamp(validFromMs, 1) && isTimestamp(observationsMs, 1)) {
    const validFromTimestamp = Math.floor(validFromMs / 1_000);
    const observationsTimestamp = Math.floor(observationsMs / 1_000);
    const inSeconds = toReport({ ...rest, validFromTimestamp, observationsTimestamp });
    if (inSeconds !== undefined) return { report: inSeconds, validFromMs, observationsMs };
  }
  throw new Error('The server sent something that is not a report.');
}

/** Parses one live message: a report, or `{"report":{…}}`. */
export function parseMessage(text: string): ReceivedReport {
  const message = Object(JSON.parse(text)) as { readonly report?: unknown }; // parseReceived checks either
  return parseReceived(message.report ?? message);
}
