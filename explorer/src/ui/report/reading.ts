// A report taken apart for the page: as far as it can be. A schema that is not known leaves its fields out, never its proof.
import { type DecodedReport, decode, SealpostError } from '@sealpost/client';
import { decodeFullReport, type FullReport, reportSchemas, schemaVersionOf } from '@sealpost/protocol';
import { mapReportBytes, type Segment } from './bytes.ts';
import { describeFields, type FieldLine } from './fields.ts';

export type ReadReport = {
  /** Lower case, with 0x. */
  readonly fullReport: string;
  readonly full: FullReport;
  /** As the body begins with it, whatever its schema. */
  readonly feedId: string;
  /** Of the schema, for people: `version 3, Crypto advanced`. */
  readonly schema: string;
  /** undefined where the body could not be read; then `problem` says why. */
  readonly decoded: DecodedReport | undefined;
  readonly fields: readonly FieldLine[] | undefined;
  readonly problem: string | undefined;
  readonly segments: readonly Segment[];
};

/** Takes a full report apart. Throws a ReportFormatError where its envelope is no report's. */
export const readReport = (raw: string): ReadReport => {
  const fullReport = raw.toLowerCase();
  const full = decodeFullReport(fullReport);
  const { decoded, problem } = readBody(fullReport);
  const fields = decoded === undefined ? undefined : describeFields(decoded.fields);
  const feedId = full.body.slice(0, 66);
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
