// Owns one thread of the verifier: WASM engine, signer sets, batches in and verdicts out, in order.
import { parentPort } from 'node:worker_threads';
import type { SignerSets } from '@sealpost/protocol';
import * as WasmHash from 'ox/wasm/Hash';
import * as WasmSecp256k1 from 'ox/wasm/Secp256k1';
import type { ReportLine } from './report-line.ts';
import { verifyLine } from './verification.ts';

export type VerifierRequest =
  | { readonly signerSets: SignerSets; readonly lines?: never }
  | { readonly signerSets?: never; readonly lines: readonly ReportLine[] };

const { keccak256 } = await WasmHash.engine();
const { recoverPublicKey } = await WasmSecp256k1.engine();
let signerSets: SignerSets = new Map();

parentPort?.on('message', (request: VerifierRequest) => {
  if (request.signerSets !== undefined) signerSets = request.signerSets;
  else
    parentPort?.postMessage(request.lines.map((line) => verifyLine(line, signerSets, { keccak256, recoverPublicKey })));
});
