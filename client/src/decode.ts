// Decodes a report off-chain: typed fields, and the price as an exact integer and as decimal text.
import {
  decodeFullReport,
  decodeReportBody,
  type FeedId,
  headlinePriceOf,
  type ReportBody,
  ReportFormatError,
  type ReportJson,
  reportSchemas,
  windowOf,
} from '@sealpost/protocol';
import { SealpostError } from './errors.ts';

/** A report as it was answered, or its `fullReport` alone. */
export type AnyReport = Pick<ReportJson, 'fullReport'> | string;

export type DecodedReport = {
  readonly feedId: FeedId;
  /** Of the report schema. */
  readonly version: ReportBody['version'];
  /** What the price applies to, both ends included; whole seconds, as in the answer. */
  readonly validFromTimestamp: number;
  readonly observationsTimestamp: number;
  /** The same in milliseconds, exact where the stream counts them. */
  readonly validFromMs: number;
  readonly observationsMs: number;
  /** After this moment a contract no longer takes the report; undefined in version 1. */
  readonly expiresAtMs: number | undefined;
  /** The one price to show, times 10^18. */
  readonly price: bigint;
  /** The same, exactly, as a decimal number: `3120.55`. */
  readonly priceText: string;
  /** Where the schema has them; times 10^18. */
  readonly bid: bigint | undefined;
  readonly ask: bigint | undefined;
  /** Every field of the body, by its schema: narrow by `version`. */
  readonly fields: ReportBody;
  readonly configDigest: string;
  readonly signatureCount: number;
};

type Headline = { readonly price: string; readonly bid?: string; readonly ask?: string };

/** The blob of a report. */
export const fullReportOf = (report: AnyReport): string => {
  const { fullReport }: { readonly fullReport?: unknown } =
    typeof report === 'string' ? { fullReport: report } : Object(report);
  if (typeof fullReport === 'string') return fullReport;
  throw new SealpostError('malformed_report', 'This is neither a report nor the text of a full report.');
};

/** Takes a report apart, without judging its signatures. Throws `malformed_report` where it is none, `unsupported_schema` where its schema is not known. */
export const decode = (report: AnyReport): DecodedReport => readFormat(() => takeApart(report));

/** Runs what reads the bytes of a report: the format's own error becomes the client's. */
export const readFormat = <T>(read: () => T): T => {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ReportFormatError)) throw error;
    const { reason, message } = error;
    const code = reason === 'unsupported_schema' ? reason : 'malformed_report';
    throw new SealpostError(code, message, { details: { reason }, cause: error });
  }
};

const takeApart = (report: AnyReport): DecodedReport => {
  const { context, body, signatures } = decodeFullReport(fullReportOf(report));
  const fields = decodeReportBody(body);
  const window = windowOf(fields);
  const { bid, ask }: Headline = reportSchemas[fields.version].headline;
  const named = fields as unknown as Readonly<Record<string, bigint>>; // the table names its own fields
  const price = headlinePriceOf(fields);
  return {
    feedId: fields.feedId,
    version: fields.version,
    validFromTimestamp: Math.floor(window.validFromMs / 1_000),
    observationsTimestamp: Math.floor(window.observationsMs / 1_000),
    ...window,
    price,
    priceText: formatDecimal(price),
    bid: bid === undefined ? undefined : named[bid],
    ask: ask === undefined ? undefined : named[ask],
    fields,
    configDigest: context.configDigest,
    signatureCount: signatures.length,
  };
};

/** Decodes where the schema is known: later ones can be verified all the same. */
export const decodeKnown = (report: AnyReport): DecodedReport | undefined => {
  try {
    return takeApart(report);
  } catch (error) {
    if (error instanceof ReportFormatError && error.reason === 'unsupported_schema') return undefined;
    throw error;
  }
};

/** An integer with so many decimals as the exact number that it stands for. */
export const formatDecimal = (value: bigint, decimals = 18): string => {
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0');
  const split = digits.length - decimals;
  const fraction = digits.slice(split).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${digits.slice(0, split)}${fraction === '' ? '' : `.${fraction}`}`;
};
