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
export function verifyFullReport(fullReport: string, signerSets: SignerSets, engine: SignatureEngine): Verdict {
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
}

/** What was thrown, for the reason of a rejection: the name and message of an error, at most 200 characters. */
export const describeThrown = (thrown: unknown): string =>
  (thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : 'No error object was thrown.').slice(0, 200);

/** The first field that the line gives and the signed bytes contradict. */
export function disagreeingField(line: ReportLine, signed: ReportJson): string | undefined {
  const feedID = typeof line.feedID === 'string' ? line.feedID.toLowerCase() : line.feedID;
  if (feedID !== undefined && feedID !== signed.feedID) return 'feedID';
  const times = ['validFromTimestamp', 'observationsTimestamp'] as const;
  return times.find((name) => line[name] !== undefined && line[name] !== signed[name]);
}

/**
 * Loads what verifies signatures in Node, once per process or thread: keccak256 and libsecp256k1 as WebAssembly. No native binding: a thread that is ended
 * while it loads one takes the process with it (D202). All of ox takes 130 ms to load, so only what verifies does.
 */
export async function openSignatureEngine(): Promise<SignatureEngine> {
  const [{ keccak256 }, { recoverPublicKey }] = await Promise.all([
    import('ox/wasm/Hash').then(({ engine }) => engine()),
    import('ox/wasm/Secp256k1').then(({ engine }) => engine()),
  ]);
  return { keccak256, recoverPublicKey };
}

export type VerifierRequest =
  | { readonly signerSets: SignerSets; readonly reports?: never }
  /** Full reports, separated by commas: one text crosses threads faster than many. */
  | { readonly signerSets?: never; readonly reports: string };

/** What a thread of the verifier does, and this process where there is none. The verdicts on signer sets are none. */
export async function startVerifying(): Promise<(request: VerifierRequest) => readonly Verdict[]> {
  const engine = await openSignatureEngine();
  let signerSets: SignerSets = new Map();
  return (request) => {
    if (request.signerSets === undefined)
      return request.reports.split(',').map((fullReport) => verifyFullReport(fullReport, signerSets, engine));
    signerSets = request.signerSets;
    return [];
  };
}
