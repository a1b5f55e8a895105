// Times on the command line: Unix seconds, RFC 3339, now, or relative to now.
import { daySeconds, realDateMs, secondsMax } from '@sealpost/protocol';
import { usageError } from './failure.ts';

/** The accepted forms of a time, for help texts and errors. */
export const timeForms =
  'Unix seconds, an RFC 3339 date such as 2025-01-31T12:00:00Z, now, or a relative time such as -1h or +30s';

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: daySeconds };
const datePattern = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$/i;

/** Reads a time as whole Unix seconds; relative ones count from `nowSeconds`. */
export function parseTime(option: string, raw: string, nowSeconds: number): number {
  const seconds = toSeconds(raw, nowSeconds);
  if (seconds >= 0 && seconds <= secondsMax) return seconds;
  throw usageError(`${option} has the value "${raw}", expected ${timeForms}.`);
}

// NaN when the text is none of the forms.
const toSeconds = (raw: string, nowSeconds: number): number => {
  if (raw === 'now') return nowSeconds;
  if (/^[0-9]+$/.test(raw)) return Number(raw);
  const [, sign, count, unit] = /^([+-])([0-9]+)([smhd])$/.exec(raw) ?? [];
  if (unit !== undefined) return nowSeconds + Number(`${sign}${count}`) * (unitSeconds[unit] ?? Number.NaN);
  return datePattern.test(raw) ? Math.floor(realDateMs(raw) / 1_000) : Number.NaN;
};

/** The options of a command that reads a time range. */
export type SpanOptions = { readonly from?: string; readonly to?: string };

/** Reads a time range, both ends included; a missing end is taken from `whole`. */
export function parseSpan(
  options: SpanOptions,
  whole: { readonly from: number; readonly to: number },
  nowSeconds: number,
): { readonly from: number; readonly to: number } {
  const from = options.from === undefined ? whole.from : parseTime('--from', options.from, nowSeconds);
  const to = options.to === undefined ? whole.to : parseTime('--to', options.to, nowSeconds);
  if (from > to) throw usageError(`--to (${to}) is before --from (${from}).`);
  return { from, to };
}
