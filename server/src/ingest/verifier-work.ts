// What a thread of the verifier does, and this process where there is none: WASM engine, signer sets, batches in and verdicts out.
import type { SignerSets } from '@sealpost/protocol';
import * as WasmHash from 'ox/wasm/Hash';
import * as WasmSecp256k1 from 'ox/wasm/Secp256k1';
import { type Verdict, verifyFullReport } from './verification.ts';

export type VerifierRequest =
  | { readonly signerSets: SignerSets; readonly reports?: never }
  /** Full reports, separated by commas: one text crosses threads faster than many. */
  | { readonly signerSets?: never; readonly reports: string };

/** Compiles the engine, once per process or thread. The verdicts on signer sets are none. */
export const startVerifying = async (): Promise<(request: VerifierRequest) => readonly Verdict[]> => {
  const { keccak256 } = await WasmHash.engine();
  const { recoverPublicKey } = await WasmSecp256k1.engine();
  const engine = { keccak256, recoverPublicKey };
  let signerSets: SignerSets = new Map();
  return (request) => {
    if (request.signerSets === undefined)
      return request.reports.split(',').map((fullReport) => verifyFullReport(fullReport, signerSets, engine));
    signerSets = request.signerSets;
    return [];
  };
};
