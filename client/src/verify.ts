// Verifies a report off-chain: signed by a quorum, and equal to the fields of the response around it.
import {
  appendFeeToken,
  decodeFullReport,
  explainVerification,
  feeTokenArgument,
  type Hex,
  parseSignerSets,
  ReportFormatError,
  type ReportJson,
  type ReportWindow,
  readReportBody,
  type SignerSets,
  type SignerSetsJson,
  type VerificationFailure,
  verifyReport,
  windowOf,
} from '@sealpost/protocol';
import { type AnyReport, type DecodedReport, describeReport, fullReportOf, readFormat } from './decode.ts';
import { readArgument, SealpostError } from './errors.ts';

/** Why a report failed verification. */
export type VerifyFailure = VerificationFailure | 'malformed_report' | 'mismatched_fields';

export type Verdict =
  | {
      readonly ok: true;
      /** Addresses of the signers. */
      readonly signers: readonly string[];
      readonly configDigest: string;
      /** The decoded report; undefined if this release cannot decode its fields. */
      readonly decoded: DecodedReport | undefined;
    }
  | { readonly ok: false; readonly reason: VerifyFailure; readonly message: string };

const fail = (reason: VerifyFailure, message: string): Verdict => ({ ok: false, reason, message });

/**
 * Checks that a quorum of the signers signed the report, and that the feed ID and timestamps around it match what was signed.
 * `signers`: the result of `client.signers()` or, better, parsed from a file that you keep.
 */
export function verify(report: ReportJson | string, signers: SignerSets | SignerSetsJson): Verdict {
  const sets = signers instanceof Map ? signers : readArgument(() => parseSignerSets(signers));
  try {
    const full = decodeFullReport(fullReportOf(report));
    const verification = verifyReport(full, sets);
    if (!verification.ok) return fail(verification.reason, explainVerification(verification));
    const body = readReportBody(full.body);
    const mismatch = typeof report === 'string' ? undefined : mismatchOf(report, body.feedId, windowOf(body));
    if (mismatch !== undefined)
      return fail('mismatched_fields', `${mismatch} of the response differs from what was signed.`);
    const decoded = body.version === undefined ? undefined : describeReport(full, body);
    return { ok: true, signers: verification.signers, configDigest: full.context.configDigest, decoded };
  } catch (error) {
    const isMalformed =
      error instanceof ReportFormatError || (error instanceof SealpostError && error.code === 'malformed_report');
    if (isMalformed) return fail('malformed_report', error.message);
    throw error;
  }
}

/** The first field that differs from what was signed. */
const mismatchOf = (report: ReportJson, feedId: string, window: ReportWindow): string | undefined => {
  if (report.feedID.toLowerCase() !== feedId) return 'feedID';
  if (report.validFromTimestamp !== Math.floor(window.validFromMs / 1_000)) return 'validFromTimestamp';
  return report.observationsTimestamp === Math.floor(window.observationsMs / 1_000)
    ? undefined
    : 'observationsTimestamp';
};

/** `argument`: for newer contracts, which take the token as a second argument. `appended`: for older ones, which take it inside the report. */
export type FeeTokenEncoding = 'argument' | 'appended';

/**
 * The arguments for the verifier contract's `verify`, to spread into the call. `argument` returns two, the report and the token (empty bytes
 * without a token: billing by subscription); `appended` returns one, the report with the token inside.
 */
export function withFeeToken(report: AnyReport, feeToken?: string, encoding?: 'argument'): readonly [Hex, Hex];
export function withFeeToken(report: AnyReport, feeToken: string, encoding: 'appended'): readonly [Hex];
export function withFeeToken(
  report: AnyReport,
  feeToken?: string,
  encoding: FeeTokenEncoding = 'argument',
): readonly Hex[] {
  const fullReport = fullReportOf(report);
  const toArguments = (): readonly Hex[] =>
    encoding === 'appended'
      ? [appendFeeToken(fullReport, feeToken ?? '')] // without a token, the parser's error names it
      : [fullReport as Hex, feeTokenArgument(feeToken)]; // text of a report; the contract checks the bytes
  return readFormat(() => readArgument(toArguments));
}
