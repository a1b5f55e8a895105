// Verifies the signatures of a report: digest, recovered addresses, quorum (D18, D19).
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Body } from './bodies.ts';
import { malformedArgument } from './errors.ts';
import { type Address, parseAddress } from './primitives/address.ts';
import { type Hex, writeHex } from './primitives/hex-bytes.ts';
import { recoverPublicKey } from './primitives/recover-key.ts';
import { type FullReport, fullReportBytesMax, type Signature } from './report.ts';

/** The oracles behind one config digest: any f + 1 of them make a quorum. */
export type SignerSet = {
  readonly configDigest: Hex;
  readonly f: number;
  readonly addresses: readonly Address[];
};

/** Signer sets by config digest. */
export type SignerSets = ReadonlyMap<string, SignerSet>;

/** Signer sets as published in `/signers.json`: config digest → f and addresses. */
export type SignerSetsJson = Body<'SignerSets'>;

/** The two primitives of verification. ox's WASM engine implements it and is nine times as fast; noble runs everywhere. */
export type SignatureEngine = {
  readonly keccak256: (bytes: Uint8Array) => Uint8Array;
  /** Signature: recovery id, r, s; 65 bytes. Returns the uncompressed public key; throws if there is none. */
  readonly recoverPublicKey: (signature: Uint8Array, digest: Uint8Array) => Uint8Array;
};

/** The engine in plain JavaScript. */
export const portableEngine: SignatureEngine = {
  keccak256: (bytes) => keccak_256(bytes),
  recoverPublicKey,
};

/** The signed part of a report. */
type SignedPart = Pick<FullReport, 'context' | 'body'>;

const wordBytes = 32;
const contextEnd = 4 * wordBytes;
/** Buffer for the hash of the body, the context and the longest body. Filled and hashed within one call, so it is never shared. */
const signedBytes = new Uint8Array(contextEnd + fullReportBytesMax);

/** What the oracles signed: keccak256(keccak256(body) ‖ the three context words), no message prefix. */
export function reportDigest(report: SignedPart, engine: SignatureEngine = portableEngine): Uint8Array {
  const { configDigest, epochAndRound, extraHash } = report.context;
  const body = report.body.slice(2);
  writeHex(`${configDigest.slice(2)}${epochAndRound.slice(2)}${extraHash.slice(2)}${body}`, signedBytes, wordBytes);
  signedBytes.set(engine.keccak256(signedBytes.subarray(contextEnd, contextEnd + body.length / 2)));
  return engine.keccak256(signedBytes.subarray(0, contextEnd));
}

/** The signer's address for each signature, in order; undefined if the signature is malformed. */
export function recoverSigners(
  report: FullReport,
  engine: SignatureEngine = portableEngine,
): readonly (Address | undefined)[] {
  const digest = reportDigest(report, engine);
  return report.signatures.map((signature) => recoverAddress(signature, digest, engine));
}

/** Recovery id, r, s; filled and used within one call. */
const signatureBytes = new Uint8Array(1 + 2 * wordBytes);

const recoverAddress = ({ r, s, v }: Signature, digest: Uint8Array, engine: SignatureEngine): Address | undefined => {
  if (v !== 0 && v !== 1) return undefined;
  try {
    signatureBytes[0] = v;
    writeHex(`${r.slice(2)}${s.slice(2)}`, signatureBytes, 1);
    return addressOf(engine.recoverPublicKey(signatureBytes, digest), engine);
  } catch {
    return undefined; // r or s is out of range, or no point on the curve has that r
  }
};

/** The address of an uncompressed public key (65 bytes, leading 0x04). */
export const addressOf = (publicKey: Uint8Array, engine: SignatureEngine = portableEngine): Address =>
  `0x${bytesToHex(engine.keccak256(publicKey.subarray(1)).subarray(12))}`;

/** Every verification failure, with its message. */
export const verificationFailures = {
  unknown_config_digest: 'No signer set is registered for the config digest of the report.',
  wrong_signature_count: 'The report does not carry exactly f + 1 signatures.',
  malformed_signature: 'A signature is not a point on the curve, or its v is neither 0 nor 1.',
  altered_report:
    'No signature is from a registered signer: the report was altered after signing, or signed by someone else.',
  unregistered_signer: 'A signature is from an address that is not in the signer set.',
  duplicate_signer: 'Two signatures are from the same signer.',
} as const;

export type VerificationFailure = keyof typeof verificationFailures;

/** The verdict on a report; `signatureIndex` is the first signature at fault, if any. `detail` goes with the message of the reason. */
export type Verification =
  | { readonly ok: true; readonly signerSet: SignerSet; readonly signers: readonly Address[] }
  | {
      readonly ok: false;
      readonly reason: VerificationFailure;
      readonly signatureIndex?: number;
      readonly detail?: string;
    };

/** Why a report does not verify, for people. */
export const explainVerification = ({ reason, detail }: Extract<Verification, { ok: false }>): string =>
  detail === undefined ? verificationFailures[reason] : `${verificationFailures[reason]} ${detail}`;

/** Checks that exactly f + 1 distinct registered signers of the report's config digest signed these bytes. */
export function verifyReport(
  report: FullReport,
  signerSets: SignerSets,
  engine: SignatureEngine = portableEngine,
): Verification {
  const signerSet = signerSets.get(report.context.configDigest);
  if (signerSet === undefined) return { ok: false, reason: 'unknown_config_digest' };
  const [count, needed] = [report.signatures.length, signerSet.f + 1];
  if (count !== needed)
    return { ok: false, reason: 'wrong_signature_count', detail: `It has ${count}, and needs ${needed}.` };
  return judgeSigners(recoverSigners(report, engine), signerSet);
}

const judgeSigners = (recovered: readonly (Address | undefined)[], signerSet: SignerSet): Verification => {
  const fail = (reason: VerificationFailure, signatureIndex: number): Verification => ({
    ok: false,
    reason,
    signatureIndex,
  });
  const registered = new Set(
    recovered.filter((address) => address !== undefined && signerSet.addresses.includes(address)),
  );
  const signers: Address[] = [];
  for (const [index, address] of recovered.entries()) {
    if (address === undefined) return fail('malformed_signature', index);
    if (!registered.has(address)) {
      // A changed byte changes every recovered address; a foreign signature changes only its own.
      return registered.size === 0 ? { ok: false, reason: 'altered_report' } : fail('unregistered_signer', index);
    }
    if (signers.includes(address)) return fail('duplicate_signer', index);
    signers.push(address);
  }
  return { ok: true, signerSet, signers };
};

/** Most oracles of a network: one byte of vs each, and the verifier contract's limit. */
export const oraclesMax = 31;

/** Parses one signer set: n > 3f, n ≤ 31, distinct addresses. `at` is its place in the caller's file, for errors. */
export function parseSignerSet(configDigest: string, raw: unknown, at = 'signers'): SignerSet {
  if (!/^0x[0-9a-fA-F]{64}$/.test(configDigest))
    throw malformedArgument(at, configDigest, 'a config digest, 0x and 64 hex digits');
  const path = `${at}.${configDigest}`;
  const { f, addresses }: { readonly f?: unknown; readonly addresses?: unknown } = Object(raw);
  if (typeof f !== 'number' || !Number.isInteger(f) || f < 0) throw malformedArgument(`${path}.f`, f, 'a whole number');
  if (!Array.isArray(addresses)) throw malformedArgument(`${path}.addresses`, addresses, 'a list of addresses');
  const parsed = addresses.map((address, i) => parseAddress(address, `${path}.addresses[${i}]`));
  const n = new Set(parsed).size;
  if (n !== parsed.length) throw malformedArgument(`${path}.addresses`, addresses.length, 'each address once');
  if (n <= 3 * f || n > oraclesMax) {
    throw malformedArgument(`${path}.addresses`, n, `more than 3f = ${3 * f} and at most ${oraclesMax} addresses`);
  }
  return { configDigest: configDigest.toLowerCase() as Hex, f, addresses: parsed }; // it matches the pattern
}

/** Parses a signers file or a response of `/signers.json`. */
export function parseSignerSets(raw: unknown, at = 'signers'): SignerSets {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw malformedArgument(at, raw, 'an object of config digest → {f, addresses}');
  }
  const sets = Object.entries(raw).map(([digest, set]) => parseSignerSet(digest, set, at));
  return new Map(sets.map((set) => [set.configDigest, set]));
}

/** Renders signer sets as published. */
export const toSignerSetsJson = (signerSets: SignerSets): SignerSetsJson =>
  Object.fromEntries(
    [...signerSets.values()].map(({ configDigest, f, addresses }) => [configDigest, { f, addresses }]),
  );
