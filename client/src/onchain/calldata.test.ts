import * as AbiItem from 'ox/AbiItem';
import { expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import { SealpostError } from '../errors.ts';
import { feeTokens, setConfigCalldata, verifierFunctions, verifyBulkCalldata, verifyCalldata } from './calldata.ts';

const { report: sign, signerSets } = await createSignedReports();
const fullReport = `0x${Buffer.from(sign(secondStream(1), 1_763_200_000, 1_763_200_001).fullReport).toString('hex')}`;
const [signerSet] = [...signerSets.values()];
if (signerSet === undefined) throw new Error('The sample has a signer set.');

const failureOf = (act: () => unknown): Pick<SealpostError, 'code' | 'message'> => {
  try {
    act();
  } catch (error) {
    if (error instanceof SealpostError) return { code: error.code, message: error.message };
  }
  throw new Error('It did not fail with a SealpostError.');
};

test('calldata: begins with the selector of the published function', () => {
  const calls = {
    verify: verifyCalldata(fullReport),
    verifyBulk: verifyBulkCalldata([fullReport]),
    setConfig: setConfigCalldata(signerSet),
  };
  for (const [name, { signature, selector }] of Object.entries(verifierFunctions)) {
    expect(selector).toBe(AbiItem.getSelector(`function ${signature}`));
    expect(calls[name as keyof typeof calls].slice(0, 10)).toBe(selector);
  }
});

test('calldata: a report of the API, its text and its upper-case text give the same bytes', () => {
  const upper = `0x${fullReport.slice(2).toUpperCase()}`;
  const token = feeTokens[42161].link;
  expect(verifyCalldata({ fullReport }, token)).toBe(verifyCalldata(fullReport, token));
  expect(verifyCalldata(upper, `0x${token.slice(2).toUpperCase()}`)).toBe(verifyCalldata(fullReport, token));
});

test.each([
  [
    'a fee token that is not an address',
    () => verifyCalldata(fullReport, '0x12'),
    'malformed_argument',
    'feeToken is "0x12", expected an address, 0x and 40 hex digits.',
  ],
  ['text that is not a report', () => verifyCalldata('0x1234'), 'malformed_report', /^fullReport is truncated/],
  ['no reports', () => verifyBulkCalldata([]), 'malformed_argument', 'reports is [], expected a list of reports.'],
  [
    'one report of several',
    () => verifyBulkCalldata([fullReport, 'x']),
    'malformed_report',
    'reports[1]: fullReport must be 0x and an even number of hex digits.',
  ],
  [
    'f of 0',
    () => setConfigCalldata({ ...signerSet, f: 0 }),
    'malformed_argument',
    'signerSet.f is 0, expected at least 1: the contract rejects 0.',
  ],
  [
    'a zero address',
    () => setConfigCalldata({ ...signerSet, addresses: [`0x${'0'.repeat(40)}`, ...signerSet.addresses] }),
    'malformed_argument',
    /^signerSet\.addresses\[0\] is "0x0{40}", expected the address of a signer, not zero\.$/,
  ],
  [
    'a config digest that is too short',
    () => setConfigCalldata({ ...signerSet, configDigest: '0x00' }),
    'malformed_argument',
    'signerSet is "0x00", expected a config digest, 0x and 64 hex digits.',
  ],
] as const)('calldata: %s is rejected by name', (_, act, code, message) => {
  expect(failureOf(act)).toEqual({
    code,
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  });
});
