import * as WasmHash from 'ox/wasm/Hash';
import * as WasmSecp256k1 from 'ox/wasm/Secp256k1';
import { expect, test } from 'vitest';
import { decodeFullReport, ReportFormatError } from './report.ts';
import { parseSignerSets, verifyReport } from './report-signature.ts';
import vectors from './vectors/verification.json' with { type: 'json' };

const { keccak256 } = await WasmHash.engine();
const { recoverPublicKey } = await WasmSecp256k1.engine();
const signerSets = parseSignerSets(vectors.signerSets);
const valid = vectors.cases.find(({ ok }) => ok)?.fullReport as string; // one of the vectors is valid

const verifies = (bytes: Buffer): boolean => {
  try {
    return verifyReport(decodeFullReport(`0x${bytes.toString('hex')}`), signerSets, { keccak256, recoverPublicKey }).ok;
  } catch (error) {
    expect(error).toBeInstanceOf(ReportFormatError);
    return false;
  }
};

test('verification: no single flipped bit of a full report verifies, wherever it falls', () => {
  const bytes = Buffer.from(valid.slice(2), 'hex');
  expect(verifies(bytes)).toBe(true);
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = Buffer.from(bytes);
    flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7)); // within the bytes
    if (verifies(flipped)) expect.unreachable(`bit ${bit & 7} of byte ${bit >> 3} may be flipped`);
  }
});
