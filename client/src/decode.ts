// Decodes a report off-chain: typed fields, and the price as an exact integer and as decimal text.
import {
  decodeFullReport,
  decodeReportBody,
  type FeedId,
  type FullReport,
  headlinePriceOf,
  type ReportBody,
  ReportFormatError,
  type ReportJson,
  reportSchemas,
  windowOf,
  withoutTrailing,
} from '@sealpost/protocol';
import { SealpostError } from './errors.ts';

/** A report as the API returns it, or only its `fullReport`. */
export type AnyReport = Pick<ReportJson, 'fullReport'> | string;

export type DecodedReport = {
  readonly feedId: FeedId;
  /** Version of the report schema. */
  readonly version: ReportBody['version'];
  /** The price is valid from here to `observationsTimestamp`, both included; whole seconds, as in the response. */
  readonly validFromTimestamp: number;
  readonly observationsTimestamp: number;
  /** The same in milliseconds, exact if the stream's timestamps are. */
  readonly validFromMs: number;
  readonly observationsMs: number;
  /** Contracts reject the report after this time; undefined in version 1. */
  readonly expiresAtMs: number | undefined;
  /** The main price, times 10^18. */
  readonly price: bigint;
  /** The exact price as a decimal number: `3120.55`. */
  readonly priceText: string;
  /** Times 10^18; undefined if the schema has no bid and ask. */
  readonly bid: bigint | undefined;
  readonly ask: bigint | undefined;
  /** Every field of the body; narrow by `version`. */
  readonly fields: ReportBody;
  readonly configDigest: string;
  readonly signatureCount: number;
};

type Headline = { readonly price: string; readonly bid?: string; readonly ask?: string };

/** The full report of either form. */
export function fullReportOf(report: AnyReport): string {
  const { fullReport }: { readonly fullReport?: unknown } =
    typeof report === 'string' ? { fullReport: report } : Object(report);
  if (typeof fullReport === 'string') return fullReport;
  throw new SealpostError('malformed_report', 'This is neither a report nor the text of a full report.');
}

/**
 * Decodes a report without verifying its signatures. Throws `malformed_report` on invalid input, `unknown_schema` on a report whose fields this release
 * cannot decode: `verify` still checks it.
 */
export const decode = (report: AnyReport): DecodedReport =>
  readFormat(() => {
    const full = decodeFullReport(fullReportOf(report));
    return describeReport(full, decodeReportBody(full.body));
  });

/** Runs a decoder and turns the protocol's format error into a SealpostError. */
export function readFormat<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ReportFormatError)) throw error;
    const { reason, message } = error;
    const code = reason === 'unknown_schema' ? reason : 'malformed_report';
    throw new SealpostError(code, message, { details: { reason }, cause: error });
  }
}

/** A report as `decode` returns it. */
export function describeReport({ context, signatures }: FullReport, fields: ReportBody): DecodedReport {
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
}

/** Formats an integer with `decimals` decimals as an exact decimal number. */
export function formatDecimal(value: bigint, decimals = 18): string {
  if (typeof value !== 'bigint')
    throw new SealpostError('malformed_argument', `value is a ${typeof value}, but must be a bigint.`);
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0');
  const split = digits.length - decimals;
  const fraction = withoutTrailing(digits.slice(split), '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, split)}${fraction === '' ? '' : `.${fraction}`}`;
}
