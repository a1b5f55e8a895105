// Compares three verifiers on generated reports, valid and altered: our contract, `verify` of the client, and the published contracts.
import { verify, withFeeToken } from '@sealpost/client';
import { setConfigCalldata, verifyCalldata } from '@sealpost/client/onchain';
import {
  decodeFullReport,
  encodeFullReport,
  type FullReport,
  type Hex,
  type Signature,
  type SignerSets,
} from '@sealpost/protocol';
import * as AbiFunction from 'ox/AbiFunction';
import * as AbiParameters from 'ox/AbiParameters';
import { verifierBytecode } from '../../sandbox/src/chain/bytecode.ts';
import { createRandom, type Random } from '../support/random.ts';
import { compileAll } from './compile.ts';
import { createBody, createNetworks, type Networks } from './reports.ts';
import { openWorld, type World } from './world.ts';

const groupOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const wordOf = (value: bigint | number): string => BigInt.asUintN(256, BigInt(value)).toString(16).padStart(64, '0');

type Alteration = (input: {
  readonly report: Hex;
  readonly full: FullReport;
  readonly random: Random;
  readonly networks: Networks['networks'];
}) => Hex;

const pick = <T>(random: Random, items: readonly T[]): T => items[random(items.length)] as T;
const hexWords = (report: Hex): string[] => report.slice(2).match(/.{1,64}/g) ?? [];
const fromWords = (words: readonly string[]): Hex => `0x${words.join('')}`;

/** Another report with changed signatures. */
const signaturesOf =
  (change: (signatures: readonly Signature[], random: Random) => readonly Signature[]): Alteration =>
  ({ full, random }) =>
    encodeFullReport({ ...full, signatures: change(full.signatures, random) });

const changeOne = (change: (signature: Signature, random: Random) => Partial<Signature>): Alteration =>
  signaturesOf((signatures, random) => {
    const at = random(signatures.length);
    return signatures.map((one, i) => (i === at ? { ...one, ...change(one, random) } : one));
  });

const flipped = (report: Hex, bit: number): Hex => {
  const bytes = Buffer.from(report.slice(2), 'hex');
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return `0x${bytes.toString('hex')}`;
};

/** Every way in which a report is altered; `valid` is one of them, several times as likely. */
export const alterations = {
  valid: ({ report }) => report,
  'one bit flipped': ({ report, random }) => flipped(report, random((report.length / 2 - 1) * 8)),
  'one bit of the head flipped': ({ report, random }) => flipped(report, random(8 * 32 * 8)),
  'signature dropped': signaturesOf((all, random) => all.toSpliced(random(all.length), 1)),
  'signature duplicated in place of another': signaturesOf((all, random) =>
    all.with(random(all.length), pick(random, all)),
  ),
  'signature added': signaturesOf((all, random) => [...all, pick(random, all)]),
  'signatures reordered': signaturesOf((all) => all.toReversed()),
  'signature of another report': ({ full, random, networks }) => {
    const other = networks.find(({ signerSet }) => signerSet.configDigest === full.context.configDigest);
    const foreign = decodeFullReport(other?.sign(createBody(random), random(2 ** 32)) ?? '0x').signatures;
    return encodeFullReport({ ...full, signatures: full.signatures.with(0, pick(random, foreign)) });
  },
  'signed by another network': ({ full, random, networks }) => {
    const foreign = decodeFullReport(pick(random, networks).sign(full.body, random(2 ** 32)));
    return encodeFullReport({ ...foreign, context: full.context });
  },
  'other config digest': ({ full, random, networks }) =>
    encodeFullReport({
      ...full,
      context: { ...full.context, configDigest: pick(random, networks).signerSet.configDigest },
    }),
  'unknown config digest': ({ full }) =>
    encodeFullReport({ ...full, context: { ...full.context, configDigest: `0x${'07'.repeat(32)}` } }),
  'high s': changeOne(({ s, v }) => ({ s: `0x${wordOf(groupOrder - BigInt(s))}`, v: 1 - v })),
  'high s, v not changed': changeOne(({ s }) => ({ s: `0x${wordOf(groupOrder - BigInt(s))}` })),
  'other v': changeOne((_, random) => ({ v: pick(random, [0, 1, 2, 3, 26, 27, 28, 228, 229, 255]) })),
  'r or s at a bound': changeOne((_, random) => ({
    [pick(random, [
      'r',
      's',
    ])]: `0x${wordOf(pick(random, [0n, 1n, groupOrder - 1n, groupOrder, groupOrder + 1n, -1n]))}`,
  })),
  truncated: ({ report, random }) => report.slice(0, 2 + 2 * random(report.length / 2 - 1)) as Hex,
  extended: ({ report, random }) => `${report}${'00'.repeat(1 + random(64))}`,
  'extended by other bytes': ({ report, random }) => `${report}${wordOf(BigInt(random(2 ** 32)))}`,
  'vs with bytes after its signatures': ({ report }) =>
    fromWords(hexWords(report).map((word, i) => (i === 6 ? `${word.slice(0, -2)}01` : word))),
  'offset moved': ({ report, random }) =>
    fromWords(
      hexWords(report).with(
        3 + random(3),
        wordOf(pick(random, [0, 31, 32, 224, 225, 256, 2 ** 32, 2n ** 64n, -32n, -1n])),
      ),
    ),
  'length changed': ({ report, random, full }) => {
    const rsAt = 8 + Math.ceil((full.body.length - 2) / 64);
    const at = pick(random, [7, rsAt, rsAt + 1 + full.signatures.length]);
    return fromWords(hexWords(report).with(at, wordOf(pick(random, [0, 1, 2, 31, 33, 2 ** 31, 2n ** 64n, -1n]))));
  },
  'tail moved to the end': ({ report, random, full }) => {
    const words = hexWords(report);
    const rsAt = 8 + Math.ceil((full.body.length - 2) / 64);
    const which = random(3);
    const ssAt = rsAt + 1 + full.signatures.length;
    const tail = [words.slice(7, rsAt), words.slice(rsAt, ssAt), words.slice(ssAt)][which] ?? [];
    return fromWords([...words.with(3 + which, wordOf(words.length * 32)), ...tail]);
  },
  'fee token inside': ({ report }) => withFeeToken(report, `0x${'ab'.repeat(20)}`, 'appended')[0] as Hex,
} as const satisfies Readonly<Record<string, Alteration>>;

export type AlterationName = keyof typeof alterations;
const names = Object.keys(alterations) as AlterationName[];

const outcomeOf = async (work: Promise<Hex>): Promise<Hex | undefined> => {
  try {
    const [body] = AbiParameters.decode([{ type: 'bytes' }], await work);
    return body;
  } catch {
    return undefined;
  }
};

/** Deploys both verifiers and registers the same signer sets. */
export const openVerifiers = async () => {
  const world: World = await openWorld();
  const { networks, signerSets } = await createNetworks();
  const { publishedProxy, publishedVerifier } = compileAll();
  const ours = await world.deploy(verifierBytecode);
  const proxy = await world.deploy(publishedProxy.bytecode, `0x${'0'.repeat(40)}`);
  const published = await world.deploy(publishedVerifier.bytecode, proxy);
  await world.send(proxy, 'function initializeVerifier(address)', [published]);
  /** Gas of setConfig for each set: ours, published. */
  const gasOfSets: (readonly [number, number])[] = [];
  for (const set of signerSets) {
    const [own, other] = [
      await world.sendData(ours, setConfigCalldata(set)),
      await world.sendData(published, setConfigCalldata(set)),
    ];
    gasOfSets.push([Number(own.gasUsed), Number(other.gasUsed)]);
  }
  return { world, networks, signerSets, ours, proxy, gasOfSets };
};

export type Disagreement = { readonly alteration: string; readonly report: Hex; readonly what: string };
export type Agreement = {
  readonly reports: number;
  readonly accepted: number;
  /** Reports that only the published contracts accept: the encoding is not canonical, the body is what was signed. */
  readonly publishedOnly: Readonly<Record<string, number>>;
  readonly disagreements: readonly Disagreement[];
};

const verifyText = AbiFunction.from('function verify(bytes,bytes) returns (bytes)');

/** Compares the three on `count` reports. The same seed gives the same reports. */
export const runAgreement = async (count: number, seed: number): Promise<Agreement> => {
  const { world, networks, signerSets, ours, proxy } = await openVerifiers();
  const sets: SignerSets = new Map(signerSets.map((set) => [set.configDigest, set]));
  const random = createRandom(seed);
  const publishedOnly: Record<string, number> = {};
  const disagreements: Disagreement[] = [];
  let accepted = 0;
  for (let i = 0; i < count; i += 1) {
    const body = createBody(random);
    const original = pick(random, networks).sign(body, random(2 ** 32));
    const alteration: AlterationName = random(4) === 0 ? 'valid' : pick(random, names);
    const report = alterations[alteration]({ report: original, full: decodeFullReport(original), random, networks });
    // The calldata of `verify` around any bytes; the client's own encoder rejects what is not a report.
    const data = AbiFunction.encodeData(verifyText, [report, '0x']);
    const [own, others] = [await outcomeOf(world.callData(ours, data)), await outcomeOf(world.callData(proxy, data))];
    const verdict = verify(report, sets);
    const disagree = (what: string) => disagreements.push({ alteration, report, what });
    if (verdict.ok !== (own !== undefined)) disagree(`verify: ${verdict.ok}, contract: ${own !== undefined}`);
    if (verdict.ok) accepted += 1;
    if (own !== undefined && (own !== body || others !== body)) disagree('another body was returned');
    if (own === undefined && others !== undefined) {
      if (isCanonical(report) || others !== body) disagree('only the published contracts accept it');
      publishedOnly[alteration] = (publishedOnly[alteration] ?? 0) + 1;
    }
    if (alteration === 'valid' && data !== verifyCalldata(report)) disagree('the client encodes another call');
  }
  return { reports: count, accepted, publishedOnly, disagreements };
};

const isCanonical = (report: Hex): boolean => {
  try {
    decodeFullReport(report);
    return true;
  } catch {
    return false;
  }
};
