// Calldata of generated reports and signer sets, compared byte by byte with ox's encoder.
import { type Address, encodeFullReport, parseSignerSet } from '@sealpost/protocol';
import fc from 'fast-check';
import * as AbiFunction from 'ox/AbiFunction';
import { expect, test } from 'vitest';
import { verifierAbi, verifierProxyAbi } from './abi.ts';
import { setConfigCalldata, verifyBulkCalldata, verifyCalldata } from './calldata.ts';

const hexBytes = (length: number) =>
  fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}` as const);

const signature = fc.record({ r: hexBytes(32), s: hexBytes(32), v: fc.integer({ min: 0, max: 255 }) });
const fullReport = fc
  .record({
    context: fc.record({ configDigest: hexBytes(32), epochAndRound: hexBytes(32), extraHash: hexBytes(32) }),
    body: fc.integer({ min: 0, max: 500 }).chain(hexBytes),
    signatures: fc.array(signature, { maxLength: 31 }),
  })
  .map(encodeFullReport);
const feeToken = fc.option(hexBytes(20), { nil: undefined });
/** `abi.encode(address)`, or empty bytes without a token. */
const parameterOf = (token: Address | undefined) =>
  token === undefined ? '0x' : (`0x${'0'.repeat(24)}${token.slice(2)}` as const);

const verify = AbiFunction.fromAbi(verifierProxyAbi, 'verify');
const verifyBulk = AbiFunction.fromAbi(verifierProxyAbi, 'verifyBulk');
const setConfig = AbiFunction.fromAbi(verifierAbi, 'setConfig');

test('calldata: ox encodes verify to the same bytes', () => {
  fc.assert(
    fc.property(fullReport, feeToken, (report, token) => {
      expect(verifyCalldata(report, token)).toBe(AbiFunction.encodeData(verify, [report, parameterOf(token)]));
    }),
    { numRuns: 200 },
  );
});

test('calldata: ox encodes verifyBulk to the same bytes', () => {
  fc.assert(
    fc.property(fc.array(fullReport, { minLength: 1, maxLength: 5 }), feeToken, (reports, token) => {
      const expected = AbiFunction.encodeData(verifyBulk, [reports, parameterOf(token)]);
      expect(verifyBulkCalldata(reports, token)).toBe(expected);
    }),
    { numRuns: 100 },
  );
});

test('calldata: ox encodes setConfig to the same bytes', () => {
  const address = hexBytes(20).filter((hex) => !/^0x0+$/.test(hex));
  const signerSet = fc.integer({ min: 1, max: 10 }).chain((f) =>
    fc.record({
      configDigest: hexBytes(32),
      f: fc.constant(f),
      addresses: fc.uniqueArray(address, { minLength: 3 * f + 1, maxLength: 31 }),
    }),
  );
  fc.assert(
    fc.property(signerSet, ({ configDigest, f, addresses }) => {
      const set = parseSignerSet(configDigest, { f, addresses });
      const expected = AbiFunction.encodeData(setConfig, [configDigest, set.addresses, f, []]);
      expect(setConfigCalldata(set)).toBe(expected);
    }),
    { numRuns: 100 },
  );
});
