// What a thread of the verifier does, and this process where there is none: engine, signer sets, batches in and verdicts out.
import type { SignerSets } from '@sealpost/protocol';
import { openSignatureEngine } from './signature-engine.ts';
import { type Verdict, verifyFullReport } from './verification.ts';

export type VerifierRequest =
  | { readonly signerSets: SignerSets; readonly reports?: never }
  /** Full reports, separated by commas: one text crosses threads faster than many. */
  | { readonly signerSets?: never; readonly reports: string };

/** The verdicts on signer sets are none. */
export type HandleRequest = (request: VerifierRequest) => readonly Verdict[];

/** Loads the engine, once per process or thread. */
export const startVerifying = async (): Promise<HandleRequest> => {
  const engine = await openSignatureEngine();
  let signerSets: SignerSets = new Map();
  return (request) => {
    if (request.signerSets === undefined)
      return request.reports.split(',').map((fullReport) => verifyFullReport(fullReport, signerSets, engine));
    signerSets = request.signerSets;
    return [];
  };
};
