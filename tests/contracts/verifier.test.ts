// ReportVerifier in a real EVM: what it accepts, what it rejects and why, and who may register signer sets.
import { setConfigCalldata, verifyBulkCalldata, verifyCalldata } from '@sealpost/client/onchain';
import { decodeFullReport, encodeFullReport, type FullReport, type Hex, type Signature } from '@sealpost/protocol';
import * as AbiParameters from 'ox/AbiParameters';
import { beforeAll, expect, test } from 'vitest';
import { verifierBytecode } from '../../sandbox/src/chain/bytecode.ts';
import { createRandom } from '../support/random.ts';
import { createBody, createNetworks, type Networks } from './reports.ts';
import { accounts, openWorld, type World } from './world.ts';

let world: World;
let verifier: Hex;
let networks: Networks['networks'];
let signerSets: Networks['signerSets'];
let body: Hex;
/** Signed by two of four oracles. */
let fullReport: Hex;
let decoded: FullReport;

beforeAll(async () => {
  world = await openWorld();
  verifier = await world.deploy(verifierBytecode);
  ({ networks, signerSets } = await createNetworks());
  for (const set of signerSets) await world.sendData(verifier, setConfigCalldata(set));
  body = createBody(createRandom(1));
  fullReport = signed(0);
  decoded = decodeFullReport(fullReport);
});

const signed = (network: number, what: Hex = body, round = 1): Hex => networks[network]?.sign(what, round) as Hex;
const verify = async (report: Hex): Promise<Hex> =>
  (await world.call(verifier, 'function verify(bytes,bytes) returns (bytes)', [report, '0x'])) as Hex;
const altered = (change: Partial<FullReport>): Hex => encodeFullReport({ ...decoded, ...change });
const withSignature = (index: number, change: Partial<Signature>): Hex =>
  altered({ signatures: decoded.signatures.map((one, i) => (i === index ? { ...one, ...change } : one)) });

test('verifier: a report of any network size is valid, and its body is returned', async () => {
  for (const i of networks.keys()) expect(await verify(signed(i))).toBe(body);
});

test('verifier: the calldata of the client is what it takes, for one report and for several', async () => {
  const result = await world.callData(verifier, verifyCalldata(fullReport, accounts[1]));
  expect(AbiParameters.decode([{ type: 'bytes' }], result)).toEqual([body]);
  const bodies = [1, 2, 3].map((seed) => createBody(createRandom(seed)));
  const several = await world.callData(verifier, verifyBulkCalldata(bodies.map((one, i) => signed(i, one))));
  expect(AbiParameters.decode([{ type: 'bytes[]' }], several)).toEqual([bodies]);
  const bad = [signed(0), withSignature(0, { v: 2 })];
  await expect(world.callData(verifier, verifyBulkCalldata(bad))).rejects.toThrow('BadVerification()');
});

test('verifier: altered body, context and signatures are rejected with the reason', async () => {
  const [first, second] = decoded.signatures as [Signature, Signature];
  const { context } = decoded;
  const other = `0x${'ab'.repeat(32)}` as const;
  const cases: readonly (readonly [Hex, string])[] = [
    [altered({ body: `${body.slice(0, -1)}${body.endsWith('0') ? '1' : '0'}` as Hex }), 'BadVerification()'],
    [altered({ context: { ...context, epochAndRound: other } }), 'BadVerification()'],
    [altered({ context: { ...context, extraHash: other } }), 'BadVerification()'],
    [altered({ context: { ...context, configDigest: other } }), `DigestNotSet(${other})`],
    [
      altered({ context: { ...context, configDigest: signerSets[1]?.configDigest as Hex } }),
      'IncorrectSignatureCount(2, 3)',
    ],
    [altered({ signatures: [first] }), 'IncorrectSignatureCount(1, 2)'],
    [altered({ signatures: [] }), 'IncorrectSignatureCount(0, 2)'],
    [altered({ signatures: [first, second, first] }), 'IncorrectSignatureCount(3, 2)'],
    [altered({ signatures: [first, first] }), 'BadVerification()'],
    [withSignature(1, { v: first.v === 0 ? 1 : 0 }), 'BadVerification()'],
    [withSignature(1, { v: 27 }), 'BadVerification()'],
    [withSignature(1, { v: 255 }), 'BadVerification()'],
    [withSignature(1, { r: `0x${'0'.repeat(64)}` }), 'BadVerification()'],
    [withSignature(1, { s: `0x${'f'.repeat(64)}` }), 'BadVerification()'],
  ];
  for (const [report, reason] of cases) await expect(verify(report), report).rejects.toThrow(reason);
  expect(await verify(altered({ signatures: [second, first] }))).toBe(body); // the order of signatures does not matter
});

test('verifier: only the canonical encoding is accepted (D18)', async () => {
  const words = fullReport.slice(2).match(/.{64}/g) as string[];
  const replaced = (at: number, word: string): Hex => `0x${words.with(at, word).join('')}`;
  const cases: readonly Hex[] = [
    `${fullReport}00`,
    `${fullReport}${'0'.repeat(64)}`,
    replaced(6, `${(words[6] as string).slice(0, -2)}01`), // a byte of vs beyond the signatures
    replaced(5, words[4] as string), // ss are read from rs
    // The body's offset points to a copy at the end.
    `${replaced(3, (words.length * 32).toString(16).padStart(64, '0'))}${words.slice(7, 8 + body.length / 64).join('')}` as Hex,
  ];
  for (const report of cases) await expect(verify(report)).rejects.toThrow('NonCanonicalReport()');
  const unpadded = signed(0, '0x1234');
  expect(await verify(unpadded)).toBe('0x1234');
  await expect(verify(unpadded.replace(`1234${'0'.repeat(60)}`, `1234${'0'.repeat(59)}1`) as Hex)).rejects.toThrow(
    'NonCanonicalReport()',
  );
  for (const report of ['0x', fullReport.slice(0, -2), fullReport.slice(0, 66)] as Hex[])
    await expect(verify(report)).rejects.toThrow('0x()');
});

test('verifier: a high s is accepted, because it is the signature of the same signer (D178)', async () => {
  const n = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const [first] = decoded.signatures as [Signature];
  const high = `0x${(n - BigInt(first.s)).toString(16).padStart(64, '0')}` as const;
  expect(await verify(withSignature(0, { s: high, v: 1 - first.v }))).toBe(body);
  // It does not count as another signer.
  const twice = altered({ signatures: [first, { ...first, s: high, v: 1 - first.v }] });
  await expect(verify(twice)).rejects.toThrow('BadVerification()');
});

const setConfig = 'function setConfig(bytes32,address[],uint8,(address,uint64)[])';
const addresses = (count: number): readonly Hex[] =>
  Array.from({ length: count }, (_, i) => `0x${(i + 1).toString(16).padStart(40, '0')}` as const);
const digest = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`;

test('verifier: a signer set that is not sound is not registered', async () => {
  const zero = `0x${'0'.repeat(40)}` as const;
  const cases = [
    [[digest(1), addresses(4), 0, []], 'FaultToleranceMustBePositive()'],
    [[digest(1), addresses(3), 1, []], 'InsufficientSigners(3, 4)'],
    [[digest(1), addresses(32), 1, []], 'ExcessSigners(32, 31)'],
    [[digest(1), addresses(31), 255, []], 'InsufficientSigners(31, 766)'],
    [[digest(1), [...addresses(4), addresses(1)[0]], 1, []], 'NonUniqueSignatures()'],
    [[digest(1), [...addresses(3), zero], 1, []], 'ZeroAddress()'],
    [[digest(1), addresses(4), 1, [[accounts[1], 1n]]], 'RewardsNotSupported()'],
    [[signerSets[0]?.configDigest, addresses(4), 1, []], 'ConfigDigestAlreadySet()'],
  ] as const;
  for (const [args, reason] of cases) await expect(world.send(verifier, setConfig, args)).rejects.toThrow(reason);
  expect(await world.call(verifier, 'function signerSetOf(bytes32) returns (uint8,bool)', [digest(1)])).toEqual([
    0,
    false,
  ]);
});

test('verifier: only the owner registers and retires, and the owner can change', async () => {
  const from = accounts[1];
  const retire = 'function deactivateConfig(bytes32)';
  const transfer = 'function transferOwnership(address)';
  for (const [text, args] of [
    [setConfig, [digest(2), addresses(4), 1, []]],
    [retire, [signerSets[0]?.configDigest]],
    [transfer, [from]],
  ] as const)
    await expect(world.send(verifier, text, args, { from })).rejects.toThrow('AccessForbidden()');
  const own = await world.deploy(verifierBytecode);
  await expect(world.send(own, transfer, [`0x${'0'.repeat(40)}`])).rejects.toThrow('ZeroAddress()');
  await world.send(own, transfer, [from]);
  await world.send(own, setConfig, [digest(2), addresses(4), 1, []], { from });
  await expect(world.send(own, setConfig, [digest(3), addresses(4), 1, []])).rejects.toThrow('AccessForbidden()');
  expect(await world.call(own, 'function isSigner(bytes32,address) returns (bool)', [digest(2), addresses(4)[3]])).toBe(
    true,
  );
  expect(await world.call(own, 'function isSigner(bytes32,address) returns (bool)', [digest(2), from])).toBe(false);
});

test('verifier: a retired signer set rejects all of its reports and cannot come back', async () => {
  const own = await world.deploy(verifierBytecode);
  const [set] = signerSets as [Networks['signerSets'][number]];
  const retire = 'function deactivateConfig(bytes32)';
  await expect(world.send(own, retire, [set.configDigest])).rejects.toThrow(`DigestNotSet(${set.configDigest})`);
  await world.sendData(own, setConfigCalldata(set));
  await world.callData(own, verifyCalldata(fullReport));
  await world.send(own, retire, [set.configDigest]);
  const inactive = `DigestInactive(${set.configDigest})`;
  await expect(world.callData(own, verifyCalldata(fullReport))).rejects.toThrow(inactive);
  await expect(world.send(own, retire, [set.configDigest])).rejects.toThrow(inactive);
  await expect(world.sendData(own, setConfigCalldata(set))).rejects.toThrow('ConfigDigestAlreadySet()');
});
