// Prices as tests write them, at the 18 decimals that reports have. No price passes through a float.
import { unexpected } from './errors.ts';

/** `'4200.55'`, a number, or a bigint that is scaled by 10^18 already. */
export type Price = string | number | bigint;

const decimals = 18;
const pattern = /^([+-]?)(\d{1,60})(?:\.(\d{1,60}))?(?:e([+-]?\d{1,2}))?$/i;
const int192Max = 2n ** 191n - 1n;
const int192Min = -(2n ** 191n);

/** The digits of a decimal, shifted by 18 places; undefined where more than 18 decimals are given, or it is not a number. */
const scale = (text: string): bigint | undefined => {
  const [, sign, whole = '', fraction = '', exponent = '0'] = pattern.exec(text) ?? [];
  if (sign === undefined) return undefined;
  const places = decimals - fraction.length + Number(exponent);
  const digits = BigInt(whole + fraction);
  const divisor = 10n ** BigInt(Math.max(0, -places));
  if (digits % divisor !== 0n) return undefined;
  const scaled = (digits / divisor) * 10n ** BigInt(Math.max(0, places));
  return sign === '-' ? -scaled : scaled;
};

/** The scaled integer of a price. */
export function parsePrice(argument: string, value: unknown): bigint {
  const scaled = typeof value === 'bigint' ? value : isDecimal(value) ? scale(String(value).trim()) : undefined;
  if (scaled !== undefined && scaled >= int192Min && scaled <= int192Max) return scaled;
  throw unexpected(
    argument,
    value,
    "a decimal such as '4200.55' with at most 18 decimals, a number, or a bigint scaled by 10^18, that fits into 192 bits",
  );
}

const isDecimal = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number';
