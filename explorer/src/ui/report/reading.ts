// Decodes a report for the page, as far as possible: where its schema or layout is not known there are only the fields of its head, but it can
// still be verified.
import { type DecodedReport, decode } from '@sealpost/client';
import {
  decodeFullReport,
  type FullReport,
  feedIdOf,
  type ReportBody,
  ReportFormatError,
  type ReportHead,
  type ReportWindow,
  readReportBody,
  reportSchemas,
  schemaVersionOf,
  windowOf,
} from '@sealpost/protocol';
import { mapReportBytes, type Segment } from './bytes.ts';
import { describeFields, type FieldLine } from './report-fields.ts';

export type ReportReading = {
  /** Lower case, with 0x. */
  readonly fullReport: string;
  readonly full: FullReport;
  /** Read from the start of the body, which is the same in every schema. */
  readonly feedId: string;
  /** For display: `version 3, Crypto advanced`. */
  readonly schema: string;
  /** Undefined if the body is malformed. */
  readonly window: ReportWindow | undefined;
  /** Undefined if the fields are not known; `problem` says why. */
  readonly decoded: DecodedReport | undefined;
  /** Those that are known; undefined if the body is malformed. */
  readonly fields: readonly FieldLine[] | undefined;
  readonly problem: string | undefined;
  readonly segments: readonly Segment[];
};

/** Decodes a full report. Throws a ReportFormatError if its envelope is malformed. */
export function readReport(raw: string): ReportReading {
  const fullReport = raw.toLowerCase();
  const full = decodeFullReport(fullReport);
  const { body, problem } = readBody(full);
  const decoded = problem === undefined ? decode(fullReport) : undefined;
  const fields = body && describeFields(body);
  const feedId = feedIdOf(full.body);
  return {
    fullReport,
    full,
    feedId,
    schema: schemaOf(feedId, decoded),
    window: body && windowOf(body),
    decoded,
    fields,
    problem,
    segments: mapReportBytes(full, fields),
  };
}

const schemaOf = (feedId: string, decoded: DecodedReport | undefined): string =>
  decoded === undefined
    ? `version ${schemaVersionOf(feedId)}, fields not known`
    : `version ${decoded.version}, ${reportSchemas[decoded.version].title}`;

const readBody = ({
  body,
}: FullReport): { readonly body: ReportBody | ReportHead | undefined; readonly problem: string | undefined } => {
  try {
    const read = readReportBody(body);
    return { body: read, problem: read.version === undefined ? read.problem : undefined };
  } catch (error) {
    if (error instanceof ReportFormatError) return { body: undefined, problem: error.message };
    throw error;
  }
};
