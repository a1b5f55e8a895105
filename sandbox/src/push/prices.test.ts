import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parsePrice } from './prices.ts';

const one = 10n ** 18n;

test.each<[string | number | bigint, bigint]>([
  ['4200.55', 4_200_550_000_000_000_000_000n],
  ['0.000000000000000001', 1n],
  ['-1.5', -1_500_000_000_000_000_000n],
  [' 1e3 ', 1_000n * one],
  ['1.000000000000000000000', one],
  [4_200.55, 4_200_550_000_000_000_000_000n],
  [1e-7, 100_000_000_000n],
  [1e21, 10n ** 39n],
  [0.1, one / 10n],
  [-0, 0n],
  [7n, 7n],
])('prices: %s is exact', (given, scaled) => {
  expect(parsePrice('price', given)).toBe(scaled);
});

test.each([
  '',
  'abc',
  '1,000',
  '0x10',
  '1.',
  '.5',
  '0.0000000000000000001',
  Number.NaN,
  Number.POSITIVE_INFINITY,
  null,
  undefined,
  {},
  [],
  true,
  2n ** 191n,
  -(2n ** 191n) - 1n,
  '1e60',
  '9'.repeat(61),
  1e300,
])('prices: %s is rejected, and the error names the argument and what is allowed', (given) => {
  expect(() => parsePrice('bid', given)).toThrow(
    /^bid is .*, expected a decimal such as '4200\.55' with at most 18 decimals/,
  );
});

test('prices: every decimal with up to 18 places is the integer of its digits', () => {
  const decimal = fc.tuple(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), fc.bigInt({ min: 0n, max: one - 1n }));
  fc.assert(
    fc.property(decimal, ([whole, rest]) => {
      const text = `${whole}.${rest.toString().padStart(18, '0')}`;
      const sign = text.startsWith('-') ? -1n : 1n;
      expect(parsePrice('price', text)).toBe(whole * one + sign * rest);
    }),
  );
});
