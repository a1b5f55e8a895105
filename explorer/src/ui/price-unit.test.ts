import { expect, test } from 'vitest';
import { isRate, isRateStream, unitTextOf } from './price-unit.ts';

test('a price is in its quote asset, an interest rate in percent', () => {
  expect(unitTextOf(3, 10n ** 18n, 'USD')).toBe('USD');
  expect(unitTextOf(7, 10n ** 18n, 'ETH')).toBe('ETH');
  expect(unitTextOf(5, 41_814_000_000_000_000n, 'USD')).toBe('= 4.1814 %');
  expect(unitTextOf(5, -2_500_000_000_000_000n, 'USD')).toBe('= -0.25 %');
  expect(unitTextOf(3, 1n, undefined)).toBe('');
  expect([isRate(5), isRate(3)]).toEqual([true, false]);
  const streams = ['0005', '0003', '0fff'].map((start) => `0x${start}${'ab'.repeat(30)}`);
  expect([...streams, ''].map(isRateStream)).toEqual([true, false, false, false]);
});
