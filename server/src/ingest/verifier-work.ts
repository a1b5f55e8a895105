// What a thread of the verifier does, and this process where there is none: engine, signer sets, batches in and verdicts out.
import type { SignerSets } from '@sealpost/protocol';
import { type ChosenEngine, openSignatureEngine } from './signature-engine.ts';
import { type Verdict, verifyFullReport } from './verification.ts';

export type VerifierRequest =
  | { readonly signerSets: SignerSets; readonly reports?: never }
  /** Full reports, separated by commas: one text crosses threads faster than many. */
  | { readonly signerSets?: never; readonly reports: string };

export type VerifierWork = {
  readonly chosen: ChosenEngine;
  /** The verdicts on signer sets are none. */
  readonly handle: (request: VerifierRequest) => readonly Verdict[];
};

/** Loads the engine, once per process or thread. */
export const startVerifying = async (): Promise<VerifierWork> => {
  const { engine, chosen } = await openSignatureEngine();
  let signerSets: SignerSets = new Map();
  const handle = (request: VerifierRequest): readonly Verdict[] => {
    if (request.signerSets === undefined)
      return request.reports.split(',').map((fullReport) => verifyFullReport(fullReport, signerSets, engine));
    signerSets = request.signerSets;
    return [];
  };
  return { chosen, handle };
};
