// Decode, verify and sign as the write path and the clients do it.
import {
  decodeFullReport,
  decodeReportBody,
  parseSignerSets,
  portableEngine,
  signRequest,
  verifyReport,
} from '@sealpost/protocol';
import * as WasmHash from 'ox/wasm/Hash';
import * as WasmSecp256k1 from 'ox/wasm/Secp256k1';
import vectors from '../protocol/src/vectors/verification.json' with { type: 'json' };
import { cpuPerCall, type Measurement } from './measure.ts';

const reportNamed = (name: string): string =>
  vectors.cases.find((vector) => vector.name === name)?.fullReport as string;

export const benchProtocol = async (): Promise<readonly Measurement[]> => {
  const { keccak256 } = await WasmHash.engine();
  const { recoverPublicKey } = await WasmSecp256k1.engine();
  const wasm = { keccak256, recoverPublicKey };
  const signerSets = parseSignerSets(vectors.signerSets);
  const request = {
    method: 'GET',
    target: `/api/v1/reports/latest?feedID=0x${'0'.repeat(64)}`,
    userId: 'u',
    timestampMs: 1,
  };
  const rows = ['2 of 4 signers', '6 of 16 signers'].flatMap((name) => {
    const fullReport = reportNamed(name);
    const full = decodeFullReport(fullReport);
    return [
      [`decode full report, ${name}`, () => decodeFullReport(fullReport)],
      [`decode full report and body, ${name}`, () => decodeReportBody(decodeFullReport(fullReport).body)],
      [`verify, WASM engine, ${name}`, () => verifyReport(full, signerSets, wasm)],
      [`verify, portable engine, ${name}`, () => verifyReport(full, signerSets, portableEngine)],
    ] as const;
  });
  const all = [...rows, ['sign a request, portable', () => signRequest(request, 'secret')] as const];
  return all.map(([name, act]) => ({ name, value: cpuPerCall(act), unit: 'µs CPU' }));
};
