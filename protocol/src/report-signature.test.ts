import * as Hex from 'ox/Hex';
import * as WasmHash from 'ox/wasm/Hash';
import * as WasmSecp256k1 from 'ox/wasm/Secp256k1';
import { expect, test } from 'vitest';
import { decodeFullReport } from './report.ts';
import {
  explainVerification,
  parseSignerSets,
  portableEngine,
  recoverSigners,
  reportDigest,
  type SignatureEngine,
  toSignerSetsJson,
  verificationFailures,
  verifyReport,
} from './report-signature.ts';
import reports from './vectors/reports.json' with { type: 'json' };
import vectors from './vectors/verification.json' with { type: 'json' };

const { keccak256 } = await WasmHash.engine();
const { recoverPublicKey } = await WasmSecp256k1.engine();
const engines: [string, SignatureEngine][] = [
  ['portable', portableEngine],
  ['WASM', { keccak256, recoverPublicKey }],
];
const signerSets = parseSignerSets(vectors.signerSets);

for (const [name, engine] of engines) {
  test.each(vectors.cases)(`verification vector on the ${name} engine: $name`, (vector) => {
    const { detail: _, ...verdict } = {
      detail: '',
      ...verifyReport(decodeFullReport(vector.fullReport), signerSets, engine),
    };
    if (vector.ok) expect(verdict).toMatchObject({ ok: true, signers: vector.signers });
    else expect(verdict).toEqual({ ok: false, reason: vector.reason, ...indexOf(vector) });
  });

  test.each(reports.reports)(`signers on the ${name} engine: $name`, (vector) => {
    const full = decodeFullReport(vector.fullReport);
    expect(Hex.fromBytes(reportDigest(full, engine))).toBe(vector.digest);
    expect(recoverSigners(full, engine)).toEqual(vector.signers);
    expect(verifyReport(full, signerSets, engine).ok).toBe(true);
  });
}

const indexOf = ({ signatureIndex }: { signatureIndex?: number | undefined }) =>
  signatureIndex === undefined ? {} : { signatureIndex };

test('verification vectors: every failure has one', () => {
  const reasons = new Set(vectors.cases.flatMap(({ reason }) => reason ?? []));
  expect(reasons).toEqual(new Set(Object.keys(verificationFailures)));
});

test('signer sets: addresses and digests in any case, printed back in lower case', () => {
  const upper = JSON.parse(
    JSON.stringify(vectors.signerSets)
      .toUpperCase()
      .replaceAll('0X', '0x')
      .replaceAll('"F"', '"f"')
      .replaceAll('ADDRESSES', 'addresses'),
  );
  expect(parseSignerSets(upper)).toEqual(signerSets);
  expect(toSignerSetsJson(signerSets)).toEqual(vectors.signerSets);
});

test('signer sets: each mistake is reported with its place', () => {
  const [digest, set] = Object.entries(vectors.signerSets)[0] as [string, { f: number; addresses: string[] }]; // its own keys
  const wrong = (change: unknown) => () => parseSignerSets({ [digest]: change });
  expect(() => parseSignerSets([])).toThrow('signers is [], expected an object of config digest → {f, addresses}.');
  expect(() => parseSignerSets({ '0x12': set })).toThrow('signers is "0x12", expected a config digest');
  expect(wrong(null)).toThrow(`signers.${digest}.f is undefined, expected a whole number.`);
  expect(wrong({ ...set, f: 1.5 })).toThrow('.f is 1.5');
  expect(wrong({ ...set, f: -1 })).toThrow('.f is -1');
  expect(wrong({ ...set, addresses: 'x' })).toThrow('expected a list of addresses');
  expect(wrong({ ...set, addresses: [...set.addresses.slice(1), '0x12'] })).toThrow(
    '.addresses[3] is "0x12", expected an address',
  );
  expect(wrong({ ...set, addresses: [...set.addresses, set.addresses[0]] })).toThrow('expected each address once');
  expect(wrong({ ...set, addresses: set.addresses.slice(1) })).toThrow(
    '.addresses is 3, expected more than 3f = 3 and at most 31 addresses.',
  );
});

test('verification: the message about a wrong count has the number of signatures and the number that is needed', () => {
  const vector = vectors.cases.find(({ name }) => name === 'no signature');
  const verdict = verifyReport(decodeFullReport(vector?.fullReport ?? ''), signerSets);
  expect(!verdict.ok && explainVerification(verdict)).toBe(
    'The report does not carry exactly f + 1 signatures. It has 0, and needs 2.',
  );
});
