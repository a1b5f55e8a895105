import { expect, test } from 'vitest';
import { splitFixed, widenDigits } from './digits.ts';

const one = 10n ** 18n;
const tenth = one / 10n;

test('digits: a stream’s prices all have those of the widest, and never fewer than before', () => {
  const wide = widenDigits(undefined, [64_120n * one + tenth, 64_120n * one + 123_450_000_000_000_000n]);
  expect(wide).toEqual({ shown: 3, all: 5 });
  expect(widenDigits(wide, [64_121n * one])).toBe(wide);
  expect(splitFixed(64_121n * one, wide ?? { shown: 0, all: 0 })).toEqual({ head: '64,121.000', tail: '00' });
  expect(splitFixed(64_120n * one + 123_450_000_000_000_000n, wide ?? { shown: 0, all: 0 })).toEqual({
    head: '64,120.123',
    tail: '45',
  });
  // One more digit before the point takes none away behind it.
  expect(widenDigits({ shown: 4, all: 4 }, [10_000n * one + 1n])).toEqual({ shown: 4, all: 18 });
});

test('digits: two at least, 18 at most, also for negative, tiny and huge prices', () => {
  expect(widenDigits(undefined, [])).toBeUndefined();
  const round = widenDigits(undefined, [5n * one]);
  expect(round).toEqual({ shown: 2, all: 2 });
  expect(splitFixed(-5n * one, round ?? { shown: 0, all: 0 })).toEqual({ head: '-5.00', tail: '' });
  const tiny = widenDigits(undefined, [1n]) ?? { shown: 0, all: 0 };
  expect(tiny).toEqual({ shown: 18, all: 18 });
  expect(splitFixed(one, tiny)).toEqual({ head: '1.000000000000000000', tail: '' });
  const huge = 2n ** 191n - 1n;
  expect(splitFixed(huge, widenDigits(undefined, [huge]) ?? tiny)).toEqual({
    head: '3,138,550,867,693,340,381,917,894,711,603,833,208,051.17',
    tail: '7722232017256447',
  });
});

test('digits: a price that is wider than those before stays exact', () => {
  expect(splitFixed(one + 1n, { shown: 2, all: 4 })).toEqual({ head: '1.00', tail: '0000000000000001' });
});
