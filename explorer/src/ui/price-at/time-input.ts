// Parses a time that a user types: ISO 8601, Unix seconds or milliseconds, or a time before now such as -5m. The result is a second.
import { daySeconds, secondsMax } from '@sealpost/protocol';
import { formatAge, shorten } from '../format.ts';

export type Zone = 'utc' | 'local';

/** How a text was understood: `utc` and `local` had no zone of their own. */
export type TimeForm = 'relative' | 'seconds' | 'milliseconds' | 'zoned' | Zone;

/** The parsed second, or what is wrong with the text. */
export type ParsedTime =
  | { readonly seconds: number; readonly form: TimeForm; readonly problem?: never }
  | { readonly seconds?: never; readonly problem: string };

const examples = '2026-11-15 09:28:17, 2026-11-15T10:28:17+01:00, 1794734897 or -2h30m';

/** Parses a text; a date and time without a zone is read in `zone`, and `-5m` counts from `nowMs`. */
export function parseTime(raw: string, zone: Zone, nowMs: number): ParsedTime {
  const text = raw.trim().replace(/^−/, '-');
  if (text === '') return { problem: `Enter a time, such as ${examples}.` };
  if (/^[0-9]+$/.test(text)) return parseUnix(text);
  return (
    parseRelative(text, nowMs) ??
    parseDate(text, zone) ?? { problem: `“${shorten(text)}” is not a time. Examples: ${examples}.` }
  );
}

const bounded = (seconds: number, form: TimeForm): ParsedTime =>
  seconds >= 0 && seconds <= secondsMax
    ? { seconds, form }
    : { problem: 'Enter a time from 1970 to 2106, such as 2026-11-15 09:28:17 or -5m.' };

/** Eleven digits and more are milliseconds: as seconds they would be 1,000 years from now. */
const parseUnix = (text: string): ParsedTime =>
  text.length <= 10 ? bounded(Number(text), 'seconds') : bounded(Math.floor(Number(text) / 1_000), 'milliseconds');

const unitSeconds: Readonly<Record<string, number>> = { w: 7 * daySeconds, d: daySeconds, h: 3_600, m: 60, s: 1 };

const parseRelative = (text: string, nowMs: number): ParsedTime | undefined => {
  const [, sign, parts] = /^(-?)((?:[0-9]{1,9} ?(?:w|d|h|min|m|s) ?)+)$/i.exec(text) ?? [];
  if (parts === undefined) return undefined;
  if (sign === '')
    return { problem: `For a time before now, begin with a minus sign: -${shorten(parts.replaceAll(' ', ''))}.` };
  const ago = [...parts.matchAll(/([0-9]{1,9}) ?([a-z])/gi)].reduce(
    (sum, [, count, unit = 's']) => sum + Number(count) * (unitSeconds[unit.toLowerCase()] ?? 1),
    0,
  );
  return bounded(Math.floor(nowMs / 1_000) - ago, 'relative');
};

/** `2026-11-15T09:28:17`: time of day, seconds and zone may be missing, and a space may replace the T or the plus, as in an address. */
const dateForm =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*(?:(Z|UTC)|([+−\- ])(\d{2}):?(\d{2}))?)?$/i;

const parseDate = (text: string, zone: Zone): ParsedTime | undefined => {
  const found = dateForm.exec(text);
  if (found === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  const utcMs = Date.UTC(year, month - 1, day, hour, minute, second);
  const exists =
    new Date(utcMs).toISOString().slice(0, 10) === text.slice(0, 10) && hour < 24 && minute < 60 && second < 60;
  if (!exists) return { problem: `${shorten(text)} does not exist. Example: 2026-11-15 09:28:17.` };
  const [, , , , , , , utc, sign, offsetHours, offsetMinutes] = found;
  if (utc !== undefined) return bounded(utcMs / 1_000, 'zoned');
  if (sign !== undefined) {
    const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60;
    return bounded(utcMs / 1_000 + (sign === '-' || sign === '−' ? offset : -offset), 'zoned');
  }
  if (zone === 'utc') return bounded(utcMs / 1_000, 'utc');
  return bounded(Math.floor(new Date(year, month - 1, day, hour, minute, second).getTime() / 1_000), 'local');
};

/** A second as an address holds it: `2026-11-15T09:28:17Z`. */
export const toAddressTime = (seconds: number): string => `${new Date(seconds * 1_000).toISOString().slice(0, 19)}Z`;

const formTexts: Readonly<Record<Exclude<TimeForm, 'relative'>, string>> = {
  seconds: 'Unix seconds',
  milliseconds: 'Unix milliseconds',
  zoned: 'Date and time',
  utc: 'No zone given, read as UTC',
  local: 'No zone given, read as local time',
};

/** How a text was understood, in a few words. */
export const describeForm = (form: TimeForm, seconds: number, nowMs: number): string =>
  form === 'relative' ? `${formatAge(nowMs - seconds * 1_000)} before now` : formTexts[form];
