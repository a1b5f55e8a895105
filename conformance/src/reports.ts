// Reports as a deployment sends them, before anything about them is trusted: shape, signed window, and the pool of those that a run has seen.
import {
  decodeFullReport,
  type FullReport,
  jsonTextOf,
  type ReportBody,
  ReportFormatError,
  type ReportHead,
  type ReportJson,
  readReportBody,
  windowOf,
} from '@sealpost/protocol';
import type { RequestToSend } from './exchange.ts';
import { excerpt } from './verdict.ts';

const restKeys = ['feedID', 'validFromTimestamp', 'observationsTimestamp', 'fullReport'] as const;

/** The keys of a frame of the second WebSocket version, whose times are milliseconds. */
export const millisecondKeys = ['feedID', 'validFromTimestampMs', 'observationsTimestampMs', 'fullReport'] as const;

const isHex = (value: unknown, digits?: number): boolean =>
  typeof value === 'string' &&
  /^0x(?:[0-9a-f]{2})+$/.test(value) &&
  (digits === undefined || value.length === 2 + digits);

/** What is wrong with the shape of a report; undefined if nothing is. Clients ignore other keys, so they are fine. */
export function shapeProblem(value: unknown, keys: readonly string[] = restKeys): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return `${excerpt(value === undefined ? 'nothing' : jsonTextOf(value))} is not an object`;
  const fields: Readonly<Record<string, unknown>> = { ...value };
  const missing = keys.find((key) => fields[key] === undefined);
  if (missing !== undefined) return `${missing} is missing`;
  if (!isHex(fields.feedID, 64)) return `feedID is ${excerpt(jsonTextOf(fields.feedID))}`;
  if (!isHex(fields.fullReport)) return `fullReport is ${excerpt(jsonTextOf(fields.fullReport))}`;
  const times = keys.slice(1, 3);
  const bad = times.find((key) => !Number.isSafeInteger(fields[key]) || Number(fields[key]) < 0);
  return bad === undefined ? undefined : `${bad} is ${excerpt(jsonTextOf(fields[bad]))}, not a JSON integer`;
}

/** The well-formed reports of an answer's body, `{"report"}` or `{"reports"}`. */
export function reportsOf(json: unknown): readonly ReportJson[] {
  const { report, reports } = Object(json);
  const values: readonly unknown[] = Array.isArray(reports) ? reports : [report];
  return values.filter((value): value is ReportJson => shapeProblem(value) === undefined);
}

/** A report with what its bytes say. */
export type SeenReport = {
  readonly report: ReportJson;
  readonly request: RequestToSend;
  readonly decoded: { readonly full: FullReport; readonly body: ReportBody | ReportHead } | undefined;
  /** Why the bytes are not a report. */
  readonly problem: string | undefined;
};

/** Decodes a report; never throws. */
const decodeSeen = (report: ReportJson, request: RequestToSend): SeenReport => {
  try {
    const full = decodeFullReport(report.fullReport);
    return { report, request, decoded: { full, body: readReportBody(full.body) }, problem: undefined };
  } catch (error) {
    if (!(error instanceof ReportFormatError)) throw error;
    return { report, request, decoded: undefined, problem: error.message };
  }
};

/** The signed window in milliseconds; that of the JSON for bytes that cannot be decoded. */
export function spanOf({ decoded, report }: SeenReport): { readonly fromMs: number; readonly toMs: number } {
  if (decoded === undefined)
    return { fromMs: report.validFromTimestamp * 1_000, toMs: report.observationsTimestamp * 1_000 };
  const { validFromMs, observationsMs } = windowOf(decoded.body);
  return { fromMs: validFromMs, toMs: observationsMs };
}

/** Most distinct reports that a run keeps. */
const seenMax = 5_000;

export type ReportPool = {
  readonly add: (reports: readonly ReportJson[], request: RequestToSend) => void;
  /** Every distinct report, in the order in which it was first seen. */
  readonly all: () => readonly SeenReport[];
};

/** Collects the distinct reports of a run. */
export function createReportPool(): ReportPool {
  const seen = new Map<string, SeenReport>();
  return {
    add: (reports, request) => {
      for (const report of reports) {
        const key = JSON.stringify([
          report.feedID,
          report.validFromTimestamp,
          report.observationsTimestamp,
          report.fullReport,
        ]);
        if (!seen.has(key) && seen.size < seenMax) seen.set(key, decodeSeen(report, request));
      }
    },
    all: () => [...seen.values()],
  };
}
