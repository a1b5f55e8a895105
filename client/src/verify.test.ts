import { toSignerSetsJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createSignedReports, millisecondStream, secondStream } from '../../tests/support/signed-reports.ts';
import { decode, formatDecimal } from './decode.ts';
import { SealpostError } from './errors.ts';
import { verify, withFeeToken } from './verify.ts';

const { report: sign, signerSets } = await createSignedReports();
const signers = toSignerSetsJson(signerSets);
const feedId = secondStream(1);
const answered = (id = feedId, price = 3_120_550_000_000_000_000_000n, unit = 1) => {
  const { fullReport } = sign(id, 1_763_200_000 * unit, 1_763_200_001 * unit, price);
  return {
    feedID: id as string, // ReportJson has no brand
    validFromTimestamp: 1_763_200_000,
    observationsTimestamp: 1_763_200_001,
    fullReport: `0x${Buffer.from(fullReport).toString('hex')}`,
  };
};

test('decode: prices are exact integers and decimals, windows seconds and milliseconds', () => {
  const decoded = decode(answered());
  expect(decoded).toMatchObject({
    feedId,
    version: 3,
    validFromTimestamp: 1_763_200_000,
    observationsTimestamp: 1_763_200_001,
    observationsMs: 1_763_200_001_000,
    price: 3_120_550_000_000_000_000_000n,
    priceText: '3120.55',
    bid: 3_120_550_000_000_000_000_000n,
    signatureCount: 2,
  });
  expect(decode(answered().fullReport)).toEqual(decoded);
  expect(decode(answered(millisecondStream(1), 5n, 1_000))).toMatchObject({
    observationsTimestamp: 1_763_200_001,
    observationsMs: 1_763_200_001_000,
    priceText: '0.000000000000000005',
  });
});

test.each([
  [0n, 18, '0'],
  [1n, 18, '0.000000000000000001'],
  [-1_500_000_000_000_000_000n, 18, '-1.5'],
  [10n ** 18n, 18, '1'],
  [1_234n, 2, '12.34'],
  [7n, 0, '7'],
])('decode: %s with %i decimals is %s', (value, decimals, text) => {
  expect(formatDecimal(value, decimals)).toBe(text);
});

test.each([[1.5], ['3'], [undefined]])('decode: a price of %j is no bigint, and is rejected', (value) => {
  expect(() => formatDecimal(value as never)).toThrow(`value is a ${typeof value}, but must be a bigint.`);
});

test('decode: invalid input is a typed error', () => {
  const codeOf = (act: () => unknown): unknown => {
    try {
      return act();
    } catch (error) {
      return error instanceof SealpostError ? [error.code, error.details.reason, error.retryable] : error;
    }
  };
  for (const [wrong, reason] of [
    ['0x12zz', 'malformed_hex'],
    ['0x1234', 'malformed_envelope'],
  ] as const) {
    expect(codeOf(() => decode(wrong))).toEqual(['malformed_report', reason, false]);
    expect(codeOf(() => withFeeToken(wrong, `0x${'1'.repeat(40)}`, 'appended'))).toEqual([
      'malformed_report',
      reason,
      false,
    ]);
  }
  for (const wrong of [undefined, null, 7, {}, { fullReport: 7 }])
    expect(codeOf(() => decode(wrong as never))).toEqual(['malformed_report', undefined, false]); // what a caller without types may pass
});

test('verify: a report that a quorum signed passes, with published signer sets or a map of them', () => {
  const report = answered();
  const verdict = verify(report, signers);
  expect(verdict).toMatchObject({ ok: true, decoded: { priceText: '3120.55' } });
  expect(verdict.ok && verdict.signers).toHaveLength(2);
  expect(verify(report.fullReport, signerSets).ok).toBe(true);
});

test.each([
  ['another stream', { feedID: secondStream(2) }, 'feedID'],
  ['another beginning', { validFromTimestamp: 1_763_199_999 }, 'validFromTimestamp'],
  ['another end', { observationsTimestamp: 1_763_200_002 }, 'observationsTimestamp'],
])('verify: a signed report that is returned as %s fails', (_, changes, field) => {
  expect(verify({ ...answered(), ...changes }, signers)).toEqual({
    ok: false,
    reason: 'mismatched_fields',
    message: `${field} of the response differs from what was signed.`,
  });
});

test('verify: an altered report, a cut one, and one of unknown signers fail with their reason', () => {
  const report = answered();
  const at = report.fullReport.indexOf(feedId.slice(2)) + 64 * 6 + 60; // in the price
  const flipped = `${report.fullReport.slice(0, at)}${report.fullReport[at] === '0' ? '1' : '0'}${report.fullReport.slice(at + 1)}`;
  expect(verify({ ...report, fullReport: flipped }, signers)).toMatchObject({ reason: 'altered_report' });
  expect(verify({ ...report, fullReport: report.fullReport.slice(0, -64) }, signers)).toMatchObject({
    reason: 'malformed_report',
  });
  expect(verify(report, {})).toMatchObject({ reason: 'unknown_config_digest' });
  expect(() => verify(report, { '0x12': { f: 1, addresses: [] } })).toThrow(/config digest/);
});

test('fee token: two arguments for newer contracts, one for older ones, empty bytes without a token', () => {
  const report = answered();
  const token = `0x${'AB'.repeat(20)}`;
  const word = `${'0'.repeat(24)}${'ab'.repeat(20)}`;
  expect(withFeeToken(report, token)).toEqual([report.fullReport, `0x${word}`]);
  expect(withFeeToken(report)).toEqual([report.fullReport, '0x']);
  const [payload, ...rest] = withFeeToken(report, token, 'appended');
  expect(rest).toEqual([]);
  expect(payload).toContain(word);
  expect(payload).not.toBe(report.fullReport);
  expect(() => withFeeToken(report, '0x12')).toThrow(expect.objectContaining({ code: 'malformed_argument' }));
});
