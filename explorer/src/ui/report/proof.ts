// The verdict on a report as the page shows it: one sentence, and a line per signature. Loaded on demand, because signer recovery needs
// the elliptic-curve code.
import {
  type Address,
  type FullReport,
  feedIdOf,
  parseSignerSets,
  portableEngine,
  type ReportJson,
  type ReportWindow,
  recoverSigners,
  reportDigest,
  type SignatureEngine,
  type SignerSet,
  type SignerSetsJson,
  type Verification,
  type VerificationFailure,
  verifyReport,
} from '@sealpost/protocol';

export type SignatureState = 'registered' | 'duplicate' | 'unregistered' | 'unjudged' | 'malformed';

export type SignatureLine = {
  /** Counts from 1. */
  readonly number: number;
  readonly address: string | undefined;
  readonly state: SignatureState;
  readonly text: string;
};

/** `claim_mismatch`: the signatures are valid, but the JSON around the report differs from what was signed. */
export type VerdictKind = 'verified' | 'claim_mismatch' | VerificationFailure;

/** Verdicts in a few words, one for each kind. */
const titles: Readonly<Record<Exclude<VerdictKind, 'wrong_signature_count'>, string>> = {
  verified: 'Verified',
  claim_mismatch: 'Not verified: the JSON does not match',
  unknown_config_digest: 'Cannot be verified: unknown signer set',
  malformed_signature: 'Not verified: malformed signature',
  altered_report: 'Not verified: no valid signature',
  unregistered_signer: 'Not verified: unregistered signer',
  duplicate_signer: 'Not verified: duplicate signer',
};

export type Proof = {
  readonly ok: boolean;
  readonly kind: VerdictKind;
  /** The verdict in a few words, and in a sentence. */
  readonly title: string;
  readonly sentence: string;
  readonly lines: readonly SignatureLine[];
  /** The signer set of the report's config digest; undefined if the server has none. */
  readonly signerSet: SignerSet | undefined;
  /** What the oracles signed. */
  readonly digest: string;
};

/** The fields of the response around the full report, to compare with what was signed. */
export type Claim = Pick<ReportJson, 'feedID' | 'validFromTimestamp' | 'observationsTimestamp'>;

/** Caches recovered keys, because the verdict and the lines both need them. */
const rememberingEngine = (engine: SignatureEngine): SignatureEngine => {
  const known = new Map<string, Uint8Array>();
  return {
    ...engine,
    recoverPublicKey: (signature, digest) => {
      const key = `${signature} ${digest}`;
      const publicKey = known.get(key) ?? engine.recoverPublicKey(signature, digest);
      known.set(key, publicKey);
      return publicKey;
    },
  };
};

/** Recovers the signers of a report and checks them against published signer sets. `signed`: the signed window; undefined if the body is malformed. */
export function proveReport(report: FullReport, signers: SignerSetsJson, claim?: Claim, signed?: ReportWindow): Proof {
  const engine = rememberingEngine(portableEngine);
  const signerSets = parseSignerSets(signers);
  const signerSet = signerSets.get(report.context.configDigest);
  const addresses = recoverSigners(report, engine);
  const lines = addresses.map((_, i) => describeSignature(report, addresses, i, signerSet));
  const verification = verifyReport(report, signerSets, engine);
  const mismatch = verification.ok && claim !== undefined ? mismatchOf(claim, report, signed) : undefined;
  const digest = [...reportDigest(report)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  const kind = mismatch !== undefined ? 'claim_mismatch' : verification.ok ? 'verified' : verification.reason;
  return {
    ok: kind === 'verified',
    kind,
    title: titleOf(kind, lines.length, signerSet),
    sentence: mismatch ?? sentenceOf(verification, lines, report, signerSet),
    lines,
    signerSet,
    digest: `0x${digest}`,
  };
}

const titleOf = (kind: VerdictKind, count: number, signerSet: SignerSet | undefined): string => {
  if (kind !== 'wrong_signature_count') return titles[kind];
  return `Not verified: too ${count > (signerSet?.f ?? 0) ? 'many' : 'few'} signatures`;
};

const mismatchOf = (claim: Claim, { body }: FullReport, signed?: ReportWindow): string | undefined => {
  const describeMismatch = (name: string, said: unknown, is: unknown): string =>
    `The signatures are valid, but the JSON around the report is wrong: ${name} is ${said}, and the oracles signed ${is}.`;
  const feedId = feedIdOf(body);
  if (claim.feedID.toLowerCase() !== feedId) return describeMismatch('feedID', claim.feedID, feedId);
  if (signed === undefined) return undefined;
  const seconds = {
    validFromTimestamp: Math.floor(signed.validFromMs / 1_000),
    observationsTimestamp: Math.floor(signed.observationsMs / 1_000),
  };
  const name = (['validFromTimestamp', 'observationsTimestamp'] as const).find((one) => claim[one] !== seconds[one]);
  return name === undefined ? undefined : describeMismatch(name, claim[name], seconds[name]);
};

const describeSignature = (
  { signatures }: FullReport,
  addresses: readonly (Address | undefined)[],
  index: number,
  signerSet: SignerSet | undefined,
): SignatureLine => {
  const address = addresses[index];
  const line = { number: index + 1, address };
  const first = addresses.indexOf(address);
  if (address === undefined) {
    const v = signatures[index]?.v ?? 0;
    const why = v > 1 ? `its v is ${v}, expected 0 or 1` : 'its r or s is out of range, or not a point on the curve';
    return { ...line, state: 'malformed', text: `Malformed: ${why}. No signer can be recovered.` };
  }
  if (first < index)
    return { ...line, state: 'duplicate', text: `Duplicate: the same signer as signature ${first + 1}.` };
  if (signerSet === undefined) return { ...line, state: 'unjudged', text: 'Not checked: no signer set.' };
  const signerIndex = signerSet.addresses.indexOf(address);
  if (signerIndex === -1) return { ...line, state: 'unregistered', text: 'Not in the signer set.' };
  return {
    ...line,
    state: 'registered',
    text: `Registered: signer ${signerIndex + 1} of ${signerSet.addresses.length}.`,
  };
};

const listNumbers = (numbers: readonly number[]): string => {
  const [last, ...others] = [...numbers].reverse();
  return others.length === 0 ? `signature ${last}` : `signatures ${[...others].reverse().join(', ')} and ${last}`;
};

const capital = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

const countOf = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

const sentenceOf = (
  verification: Verification,
  lines: readonly SignatureLine[],
  { context, signatures }: FullReport,
  signerSet: SignerSet | undefined,
): string => {
  const needed = (signerSet?.f ?? 0) + 1;
  if (verification.ok)
    return `Signed by ${lines.length} of the network’s ${signerSet?.addresses.length} oracles. A quorum is ${needed}.`;
  const line = lines[verification.signatureIndex ?? 0];
  const name = `Signature ${line?.number}`;
  switch (verification.reason) {
    case 'unknown_config_digest':
      return `This server has no signer set with the config digest ${context.configDigest}, so the signers cannot be checked.`;
    case 'wrong_signature_count':
      return `The report has ${countOf(signatures.length, 'signature')}; a quorum is exactly ${needed} (f + 1).`;
    case 'malformed_signature':
      return `${name} is malformed, so its signer cannot be recovered.`;
    case 'altered_report':
      return `${capital(listNumbers(lines.map(({ number }) => number)))} ${lines.length === 1 ? 'is' : 'are'} not from any registered signer; the report was altered or signed by someone else.`;
    case 'unregistered_signer':
      return `${name} is from ${line?.address}, which is not in the signer set; the signature was altered or made by someone else.`;
    case 'duplicate_signer':
      return `${name} is from a signer that already signed; a quorum needs ${needed} different signers.`;
  }
};
