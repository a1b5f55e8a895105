import { expect, test } from 'vitest';
import { formatSpread, spreadOf } from './spread.ts';

const one = 10n ** 18n;

test('spread: in basis points of the middle, to a hundredth', () => {
  expect(spreadOf({ bid: 9_999n * one, ask: 10_001n * one })).toBe(200n);
  expect(spreadOf({ bid: 10_001n * one, ask: 9_999n * one })).toBe(-200n);
  expect(spreadOf({ bid: one, ask: one })).toBe(0n);
  expect(spreadOf({ bid: 3n, ask: 4n })).toBe(285_714n);
});

test('spread: unknown without bid and ask, or around zero', () => {
  expect(spreadOf(undefined)).toBeUndefined();
  expect(spreadOf({ bid: undefined, ask: one })).toBeUndefined();
  expect(spreadOf({ bid: -one, ask: one })).toBeUndefined();
  expect(spreadOf({ bid: 0n, ask: 0n })).toBeUndefined();
});

test('spread: two decimals, and never a zero that is none', () => {
  expect(formatSpread(123n, false)).toBe('1.23 bp');
  expect(formatSpread(-5n, false)).toBe('−0.05 bp');
  expect(formatSpread(0n, true)).toBe('0.00 bp');
  expect(formatSpread(0n, false)).toBe('< 0.01 bp');
});
