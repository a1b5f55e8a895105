import { decodeFullReport, type FullReport, feedIdOf } from '@sealpost/protocol';
import vectors from '@sealpost/protocol/vectors/verification.json' with { type: 'json' };
import { expect, test } from 'vitest';
import { createNetwork } from '../../../../simulator/src/network.ts';
import { proveReport } from './proof.ts';
import { readReport } from './reading.ts';

const { signerSets } = vectors;
const [digest] = Object.keys(signerSets);
const good = vectors.cases.find(({ name }) => name === '2 of 4 signers')?.fullReport as string; // a test of the protocol holds it
const report = decodeFullReport(good);
const [first, second] = report.signatures;
const { decoded: signed } = readReport(good);

const withSignatures = (...signatures: (FullReport['signatures'][number] | undefined)[]): FullReport => ({
  ...report,
  signatures: signatures.filter((signature) => signature !== undefined),
});

test.each(vectors.cases)('proof: $name gets the verdict of the vectors', ({ fullReport, ok, reason }) => {
  const proof = proveReport(decodeFullReport(fullReport), signerSets);
  expect([proof.ok, proof.kind]).toEqual([ok, reason ?? 'verified']);
  expect(proof.lines).toHaveLength(decodeFullReport(fullReport).signatures.length);
});

test('proof: each verdict has a title of its own, and only a valid report is called verified', () => {
  const titles = vectors.cases.map(({ fullReport }) => {
    const { kind, title } = proveReport(decodeFullReport(fullReport), signerSets);
    return `${kind}: ${title}`;
  });
  expect([...new Set(titles)]).toEqual([
    'verified: Verified',
    'unknown_config_digest: Cannot be verified: unknown signer set',
    'wrong_signature_count: Not verified: too few signatures',
    'wrong_signature_count: Not verified: too many signatures',
    'unregistered_signer: Not verified: unregistered signer',
    'duplicate_signer: Not verified: duplicate signer',
    'malformed_signature: Not verified: malformed signature',
    'altered_report: Not verified: no valid signature',
  ]);
});

test('proof: the sentence has the size of the quorum, and each line the signer’s number in the set', () => {
  const proof = proveReport(report, signerSets);
  expect(proof.sentence).toBe('Signed by 2 of the network’s 4 oracles. A quorum is 2.');
  expect(proof.signerSet?.configDigest).toBe(digest);
  expect(proof.lines.map(({ number, state }) => [number, state])).toEqual([
    [1, 'registered'],
    [2, 'registered'],
  ]);
  for (const { text } of proof.lines) expect(text).toMatch(/^Registered: signer [1-4] of 4\.$/);
});

test('proof: an altered body names every signature', () => {
  const body = `${report.body.slice(0, -1)}${report.body.endsWith('0') ? '1' : '0'}` as const;
  const proof = proveReport({ ...report, body: body as FullReport['body'] }, signerSets); // a digit is changed, no more
  expect(proof.sentence).toBe(
    'Signatures 1 and 2 are not from any registered signer; the report was altered or signed by someone else.',
  );
  expect(proof.lines.map(({ state, text }) => [state, text])).toEqual([
    ['unregistered', 'Not in the signer set.'],
    ['unregistered', 'Not in the signer set.'],
  ]);
});

test('proof: an altered signature is named, and the other one stays valid', () => {
  const s = `0x${'1'.repeat(64)}` as const;
  const altered = withSignatures(first, second && { ...second, s });
  const proof = proveReport(altered, signerSets);
  expect(proof.ok).toBe(false);
  expect(proof.sentence).toMatch(/^Signature 2 is from 0x[0-9a-f]{40}, which is not in the signer set;/);
  expect(proof.lines.map(({ state }) => state)).toEqual(['registered', 'unregistered']);
});

test('proof: a malformed signature says what is wrong with it', () => {
  const proof = proveReport(withSignatures(first && { ...first, v: 27 }, second), signerSets);
  expect(proof.sentence).toBe('Signature 1 is malformed, so its signer cannot be recovered.');
  expect(proof.lines[0]).toEqual({
    number: 1,
    address: undefined,
    state: 'malformed',
    text: 'Malformed: its v is 27, expected 0 or 1. No signer can be recovered.',
  });
});

test('proof: two malformed signatures are not each other’s duplicates', () => {
  const proof = proveReport(withSignatures(first && { ...first, v: 9 }, second && { ...second, v: 9 }), signerSets);
  expect(proof.lines.map(({ state }) => state)).toEqual(['malformed', 'malformed']);
});

test('proof: a duplicate signer is explained with its first signature', () => {
  const proof = proveReport(withSignatures(first, first), signerSets);
  expect(proof.sentence).toBe('Signature 2 is from a signer that already signed; a quorum needs 2 different signers.');
  expect(proof.lines[1]).toMatchObject({ state: 'duplicate', text: 'Duplicate: the same signer as signature 1.' });
});

test('proof: too few signatures are counted', () => {
  expect(proveReport(withSignatures(first), signerSets).sentence).toBe(
    'The report has 1 signature; a quorum is exactly 2 (f + 1).',
  );
});

test('proof: without a signer set the addresses are recovered, but not checked', () => {
  const proof = proveReport(report, {});
  expect([proof.ok, proof.signerSet]).toEqual([false, undefined]);
  expect(proof.sentence).toContain(`no signer set with the config digest ${digest}`);
  expect(proof.lines.map(({ state }) => state)).toEqual(['unjudged', 'unjudged']);
});

test('proof: a signed report with wrong fields around it fails, and the field is named', () => {
  const claim = {
    feedID: feedIdOf(report.body),
    validFromTimestamp: signed?.validFromTimestamp ?? 0,
    observationsTimestamp: (signed?.observationsTimestamp ?? 0) + 1,
  };
  const proof = proveReport(report, signerSets, claim, signed);
  expect([proof.ok, proof.title]).toEqual([false, 'Not verified: the JSON does not match']);
  expect(proof.sentence).toContain(
    `observationsTimestamp is ${claim.observationsTimestamp}, and the oracles signed ${signed?.observationsTimestamp}.`,
  );
  const honest = { ...claim, observationsTimestamp: signed?.observationsTimestamp ?? 0 };
  expect(proveReport(report, signerSets, honest, signed).ok).toBe(true);
});

test('proof: a report with an unknown schema can be verified', async () => {
  const { signerSet, sign } = await createNetwork({ seed: 'explorer' });
  const read = readReport(sign(`0x0fff${report.body.slice(6)}`, 1));
  expect([read.decoded, read.schema]).toEqual([undefined, 'version 4095, fields not known']);
  expect(read.problem).toBe('The feed ID names schema version 4095, which this release does not know.');
  const { configDigest, f, addresses } = signerSet;
  const signers = { [configDigest]: { f, addresses } };
  expect(proveReport(read.full, signers).title).toBe('Verified');
  const claim = { feedID: read.feedId, validFromTimestamp: 1, observationsTimestamp: 2 };
  expect(proveReport(read.full, signers, claim, read.window).kind).toBe('claim_mismatch');
});
