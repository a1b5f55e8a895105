// One thread of the verifier: WASM engine, signer sets, batches in and verdicts out, in order. This is the thread's entry file, so its state is
// at module level.
import { parentPort } from 'node:worker_threads';
import type { SignerSets } from '@sealpost/protocol';
import * as WasmHash from 'ox/wasm/Hash';
import * as WasmSecp256k1 from 'ox/wasm/Secp256k1';
import type { ThreadMessage } from '../runtime/threads.ts';
import { type Verdict, verifyFullReport } from './verification.ts';

export type VerifierRequest =
  | { readonly signerSets: SignerSets; readonly reports?: never }
  /** Full reports, separated by commas: one text crosses threads faster than many. */
  | { readonly signerSets?: never; readonly reports: string };

const { keccak256 } = await WasmHash.engine();
const { recoverPublicKey } = await WasmSecp256k1.engine();
const engine = { keccak256, recoverPublicKey };
let signerSets: SignerSets = new Map();
const say = (message: ThreadMessage<readonly Verdict[]>): void => parentPort?.postMessage(message);

parentPort?.on('message', (request: VerifierRequest) => {
  if (request.signerSets !== undefined) signerSets = request.signerSets;
  else
    say({ answer: request.reports.split(',').map((fullReport) => verifyFullReport(fullReport, signerSets, engine)) });
});
say({ ready: true });
