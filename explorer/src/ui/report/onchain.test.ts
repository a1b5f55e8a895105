import { feeTokens, verifyBulkCalldata, verifyCalldata } from '@sealpost/client/onchain';
import { feeTokenArgument } from '@sealpost/protocol';
import vectors from '@sealpost/protocol/vectors/verification.json' with { type: 'json' };
import { expect, test } from 'vitest';
import { createOnchainCall, feeTokenChoices } from './onchain.ts';

const fullReport = vectors.cases.find(({ name }) => name === '2 of 4 signers')?.fullReport as string; // a test of the protocol holds it
const token = feeTokens[42161].native;

const hexOf = (call: ReturnType<typeof createOnchainCall>, name: string) =>
  call.values.find((value) => value.name === name)?.hex;

test('on-chain: verify has the calldata of the client, both arguments, and a cast command', () => {
  const call = createOnchainCall(fullReport, 'verify', undefined);
  expect(hexOf(call, 'calldata')).toBe(verifyCalldata(fullReport));
  expect([hexOf(call, 'payload'), hexOf(call, 'parameterPayload')]).toEqual([fullReport, '0x']);
  expect(call.cast).toBe(
    `cast call "$SEALPOST_VERIFIER" 'verify(bytes,bytes)(bytes)' ${fullReport} 0x --rpc-url "$SEALPOST_RPC_URL"`,
  );
});

test('on-chain: verifyBulk has a list of one report', () => {
  const call = createOnchainCall(fullReport, 'verifyBulk', token);
  expect(hexOf(call, 'calldata')).toBe(verifyBulkCalldata([fullReport], token));
  const parameter = feeTokenArgument(token);
  expect(call.cast).toBe(
    `cast call "$SEALPOST_VERIFIER" 'verifyBulk(bytes[],bytes)(bytes[])' '[${fullReport}]' ${parameter} --rpc-url "$SEALPOST_RPC_URL"`,
  );
});

test('on-chain: older contracts get one argument, with the token inside', () => {
  const call = createOnchainCall(fullReport, 'older', token);
  expect(call.values).toHaveLength(1);
  const payload = hexOf(call, 'payload') ?? '';
  expect(payload).toContain(token.slice(2));
  expect(call.cast).toBe(
    `cast call "$SEALPOST_VERIFIER" 'verify(bytes)(bytes)' ${payload} --rpc-url "$SEALPOST_RPC_URL"`,
  );
});

test('on-chain: every fee token of the client can be chosen, each once', () => {
  const all = Object.values(feeTokens).flatMap(({ native, link }) => [native, link]);
  expect(feeTokenChoices.map(({ address }) => address)).toEqual(all);
  expect(new Set(all).size).toBe(all.length);
  expect(() => createOnchainCall(fullReport, 'verify', '0x12')).toThrow('feeToken is "0x12"');
});
