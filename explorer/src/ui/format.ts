// Formats numbers and times. Prices stay exact: integers become text without passing through a float.
import { formatDecimal } from '@sealpost/client';

/** The exact price with thousands separators and without trailing zeros: `64,120.55`. */
export const formatPrice = (value: bigint, decimals = 18): string => groupThousands(formatDecimal(value, decimals));

/** Adds thousands separators to a decimal number in text, of up to 78 digits as 256 bits have. */
const groupThousands = (text: string): string => {
  const [whole = '', fraction] = text.split('.');
  const grouped = whole.replace(/\B(?=(?:[0-9]{3}){1,26}$)/g, ',');
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
};

/** A price in two parts: the significant digits, and the rest. Together they are the exact price. */
export function splitPrice(value: bigint, decimals = 18): { readonly head: string; readonly tail: string } {
  const text = formatPrice(value, decimals);
  const [whole = '', fraction = ''] = text.split('.');
  // In small prices, leading zeros do not count as significant.
  const zeros = /^-?0$/.test(whole) ? (/^0*/.exec(fraction)?.[0].length ?? 0) : 0;
  const wholeDigits = /^-?0$/.test(whole) ? 0 : whole.replace(/[^0-9]/g, '').length;
  const digits = Math.max(2, significantDigits - wholeDigits) + zeros;
  if (fraction.length <= digits) return { head: text, tail: '' };
  return { head: `${whole}.${fraction.slice(0, digits)}`, tail: fraction.slice(digits) };
}

/** Significant digits that are not dimmed. */
const significantDigits = 8;

const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A duration in its largest units, by default two: `12 s`, `3 min 5 s`, `2 d 4 h`. Negative ones are `0 s`. */
export function formatAge(ms: number, unitsMax = 2): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first === -1) return '0 s';
  const parts = units.slice(first, first + unitsMax).map(([unit, size], i) => {
    const within = i === 0 ? seconds : seconds % (units[first]?.[1] ?? 1);
    return [Math.floor(within / size), unit] as const;
  });
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${formatCount(count)} ${unit}`)
    .join(' ');
}

/** An interval: `1 s`, `0.25 s`, `1 min`. */
export const formatInterval = (ms: number): string => (ms < 1_000 || ms % 1_000 !== 0 ? tenths(ms) : formatAge(ms));

const tenths = (ms: number): string => (ms >= 60_000 ? formatAge(ms) : `${Math.round(ms / 10) / 100} s`);

const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0');

const fractionOf = (ms: number): string => (ms % 1_000 === 0 ? '' : `.${pad(((ms % 1_000) + 1_000) % 1_000, 3)}`);

/** A time in UTC, for `times` (state/settings/times.ts), which all pages use: `2026-11-15 09:28:17 UTC`, with milliseconds if not zero. */
export function formatUtc(ms: number): string {
  const iso = new Date(ms).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)}${fractionOf(ms)} UTC`;
}

/** A time in local time: `2026-11-15 10:28:17 +01:00`. */
export function formatLocal(ms: number): string {
  const date = new Date(ms);
  const day = `${pad(date.getFullYear(), 4)}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}${fractionOf(ms)}`;
  return `${day} ${time} ${formatOffset(-date.getTimezoneOffset())}`;
}

/** A UTC offset in minutes as `+01:00`. */
export function formatOffset(minutes: number): string {
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '−' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}

/** A whole number with thousands separators. */
export const formatCount = (count: number): string => groupThousands(String(Math.round(count)));

/** Shortens a long hex value: `0x000396…c66c5e`. */
export const shortId = (id: string): string => (id.length <= 18 ? id : `${id.slice(0, 8)}…${id.slice(-6)}`);

/** The age up to which a report is fresh: two intervals, and two seconds for delivery. */
export const allowedAgeMs = (intervalMs: number): number => 2 * intervalMs + 2_000;

/** Compares an age with the stream's interval; `stale` beyond five times the allowed age. */
export function freshnessOf(ageMs: number, intervalMs: number): 'fresh' | 'late' | 'stale' {
  const allowedMs = allowedAgeMs(intervalMs);
  return ageMs <= allowedMs ? 'fresh' : ageMs <= 5 * allowedMs ? 'late' : 'stale';
}

/** Text of somebody else for a message: 40 characters at most. */
export const shorten = (text: string): string => (text.length <= 40 ? text : `${text.slice(0, 40)}…`);
