// Decodes a report for the page, as far as possible: with an unknown schema the fields are missing, but it can still be verified.
import { type DecodedReport, decode, SealpostError } from '@sealpost/client';
import { decodeFullReport, type FullReport, feedIdOf, reportSchemas, schemaVersionOf } from '@sealpost/protocol';
import { mapReportBytes, type Segment } from './bytes.ts';
import { describeFields, type FieldLine } from './fields.ts';

export type ReadReport = {
  /** Lower case, with 0x. */
  readonly fullReport: string;
  readonly full: FullReport;
  /** Read from the start of the body, which is the same in every schema. */
  readonly feedId: string;
  /** For display: `version 3, Crypto advanced`. */
  readonly schema: string;
  /** Undefined if the body cannot be decoded; `problem` says why. */
  readonly decoded: DecodedReport | undefined;
  readonly fields: readonly FieldLine[] | undefined;
  readonly problem: string | undefined;
  readonly segments: readonly Segment[];
};

/** Decodes a full report. Throws a ReportFormatError if its envelope is malformed. */
export const readReport = (raw: string): ReadReport => {
  const fullReport = raw.toLowerCase();
  const full = decodeFullReport(fullReport);
  const { decoded, problem } = readBody(fullReport);
  const fields = decoded === undefined ? undefined : describeFields(decoded.fields);
  const feedId = feedIdOf(full.body);
  return {
    fullReport,
    full,
    feedId,
    schema: schemaOf(feedId, decoded),
    decoded,
    fields,
    problem,
    segments: mapReportBytes(full, fields),
  };
};

const schemaOf = (feedId: string, decoded: DecodedReport | undefined): string =>
  decoded === undefined
    ? `version ${schemaVersionOf(feedId)}, unknown to this page`
    : `version ${decoded.version}, ${reportSchemas[decoded.version].title}`;

const readBody = (fullReport: string): Pick<ReadReport, 'decoded' | 'problem'> => {
  try {
    return { decoded: decode(fullReport), problem: undefined };
  } catch (error) {
    if (error instanceof SealpostError) return { decoded: undefined, problem: error.message };
    throw error;
  }
};
