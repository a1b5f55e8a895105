import { expect, test } from 'vitest';
import { appendFeeToken, feeTokenArgument } from './fee-token.ts';
import vectors from './vectors/fee-token.json' with { type: 'json' };

test.each(vectors.cases)('fee token: both encodings', ({ fullReport, feeToken, appended, argument }) => {
  expect(appendFeeToken(fullReport, feeToken)).toBe(appended);
  expect(feeTokenArgument(feeToken)).toBe(argument);
  expect(feeTokenArgument(`0x${feeToken.slice(2).toUpperCase()}`)).toBe(argument);
});

test('fee token: billing by subscription takes empty bytes', () => {
  expect(feeTokenArgument()).toBe('0x');
});

test('fee token: a token that is not an address is rejected', () => {
  expect(() => feeTokenArgument('0x12')).toThrow('feeToken is "0x12", expected an address, 0x and 40 hex digits.');
});
