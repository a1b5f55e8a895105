import { expect, test } from 'vitest';
import {
  formatAge,
  formatCount,
  formatInterval,
  formatLocal,
  formatOffset,
  formatPrice,
  formatUtc,
  freshnessOf,
  shortId,
  splitPrice,
} from './format.ts';

const one = 10n ** 18n;

test('price: keeps every digit, adds thousands separators, drops trailing zeros', () => {
  expect(formatPrice(64_120n * one + 550_000_000_000_000_000n)).toBe('64,120.55');
  expect(formatPrice(1_234_567n * one)).toBe('1,234,567');
  expect(formatPrice(1n)).toBe('0.000000000000000001');
  expect(formatPrice(0n)).toBe('0');
  expect(formatPrice(-1_000n * one - 5n)).toBe('-1,000.000000000000000005');
  expect(formatPrice(2n ** 191n - 1n)).toBe('3,138,550,867,693,340,381,917,894,711,603,833,208,051.177722232017256447');
});

test('price: the two parts together are the exact price', () => {
  expect(splitPrice(64_120n * one + 123_456_789_000_000_000n)).toEqual({ head: '64,120.123', tail: '456789' });
  expect(splitPrice(123_456_789_012_345n)).toEqual({ head: '0.00012345678', tail: '9012345' });
  expect(splitPrice(-1_500_000_000_000_000_000n)).toEqual({ head: '-1.5', tail: '' });
  expect(splitPrice(12_345_678n * one + 1n)).toEqual({ head: '12,345,678.00', tail: '0000000000000001' });
});

test('age: the two largest units, never below zero', () => {
  expect(formatAge(0)).toBe('0 s');
  expect(formatAge(-5_000)).toBe('0 s');
  expect(formatAge(119_000, 1)).toBe('1 min');
  expect(formatAge(12_999)).toBe('12 s');
  expect(formatAge(60_000)).toBe('1 min');
  expect(formatAge(185_000)).toBe('3 min 5 s');
  expect(formatAge(3_600_000 + 59_000)).toBe('1 h');
  expect(formatAge(1_320 * 86_400_000)).toBe('1,320 d');
  expect(formatAge(2 * 86_400_000 + 4 * 3_600_000 + 59_000)).toBe('2 d 4 h');
});

test('interval: shorter than a second, fractional and whole', () => {
  expect(formatInterval(250)).toBe('0.25 s');
  expect(formatInterval(1_000)).toBe('1 s');
  expect(formatInterval(1_500)).toBe('1.5 s');
  expect(formatInterval(60_000)).toBe('1 min');
  expect(formatInterval(60_500)).toBe('1 min');
});

test('time: UTC, with milliseconds if not zero', () => {
  expect(formatUtc(1_700_000_000_000)).toBe('2023-11-14 22:13:20 UTC');
  expect(formatUtc(1_700_000_000_042)).toBe('2023-11-14 22:13:20.042 UTC');
});

test('time: local time with its offset', () => {
  const ms = 1_700_000_000_000;
  const offset = formatOffset(-new Date(ms).getTimezoneOffset());
  expect(formatLocal(ms)).toMatch(/^2023-11-1[45] [0-9]{2}:13:20 /);
  expect(formatLocal(ms).endsWith(` ${offset}`)).toBe(true);
  expect(formatOffset(60)).toBe('+01:00');
  expect(formatOffset(-570)).toBe('−09:30');
  expect(formatOffset(0)).toBe('+00:00');
});

test('ids and counts are short', () => {
  expect(shortId('0x000359843a543ee2fe414dc14c7e7920ef10f4372990b79d6361cdc0dd1ba782')).toBe('0x000359…1ba782');
  expect(shortId('0x0003')).toBe('0x0003');
  expect(formatCount(1_234_567)).toBe('1,234,567');
});

test('freshness: depends on the interval of the stream', () => {
  expect(freshnessOf(4_000, 1_000)).toBe('fresh');
  expect(freshnessOf(4_001, 1_000)).toBe('late');
  expect(freshnessOf(20_000, 1_000)).toBe('late');
  expect(freshnessOf(20_001, 1_000)).toBe('stale');
  expect(freshnessOf(100_000, 60_000)).toBe('fresh');
});
