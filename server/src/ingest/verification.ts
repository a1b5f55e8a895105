// Verifies a report without the catalog: bytes, quorum, fields. Runs in the verifier's threads.
import {
  decodeFullReport,
  type FeedId,
  headlinePriceOf,
  ReportFormatError,
  type ReportJson,
  readReportBody,
  type SignatureEngine,
  type SignerSets,
  verifyReport,
  windowOf,
} from '@sealpost/protocol';
import type { RejectionCode } from './rejections.ts';
import type { ReportLine } from './report-line.ts';

/** A report whose quorum held, as plain values that cross threads. */
export type VerifiedReport = {
  readonly feedId: FeedId;
  readonly configDigest: string;
  readonly validFromMs: number;
  readonly observationsMs: number;
  readonly expiresAtMs: number | undefined;
  /** The headline price, for roll-ups; undefined where the fields cannot be decoded. */
  readonly price: bigint | undefined;
};

/** The verdict on one line. */
export type Verdict =
  | { readonly verified: VerifiedReport; readonly code?: never; readonly detail?: never }
  | { readonly verified?: never; readonly code: RejectionCode; readonly detail?: string };

/** Checks form and quorum of a report. Never throws: in a thread, one report would take the verdicts of all others with it. */
export const verifyFullReport = (fullReport: string, signerSets: SignerSets, engine: SignatureEngine): Verdict => {
  try {
    const full = decodeFullReport(fullReport);
    const verification = verifyReport(full, signerSets, engine);
    if (!verification.ok) {
      const {
        reason,
        signatureIndex: i,
        detail = i === undefined ? undefined : `It is signature ${i + 1}.`,
      } = verification;
      return { code: reason, ...(detail !== undefined && { detail }) };
    }
    const body = readReportBody(full.body);
    return {
      verified: {
        feedId: body.feedId,
        configDigest: full.context.configDigest,
        ...windowOf(body),
        price: headlinePriceOf(body),
      },
    };
  } catch (error) {
    if (error instanceof ReportFormatError) return { code: 'malformed_report', detail: error.message };
    return { code: 'check_failed', detail: describeThrown(error) };
  }
};

/** What was thrown, for the reason of a rejection: the name and message of an error, at most 200 characters. */
export const describeThrown = (thrown: unknown): string =>
  (thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : 'No error object was thrown.').slice(0, 200);

/** The first field that the line gives and the signed bytes contradict. */
export const disagreeingField = (line: ReportLine, signed: ReportJson): string | undefined => {
  const feedID = typeof line.feedID === 'string' ? line.feedID.toLowerCase() : line.feedID;
  if (feedID !== undefined && feedID !== signed.feedID) return 'feedID';
  const times = ['validFromTimestamp', 'observationsTimestamp'] as const;
  return times.find((name) => line[name] !== undefined && line[name] !== signed[name]);
};
