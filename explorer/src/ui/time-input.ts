// Parses a time that a user types: a date and time in UTC or local time, or a Unix timestamp. The result is a second.
import { secondsMax } from '@sealpost/protocol';

export type Zone = 'utc' | 'local';

/** The parsed second, or what is wrong with the text. */
export type ParsedTime = { readonly seconds: number } | { readonly problem: string };

const isWithin = (seconds: number): boolean => seconds >= 0 && seconds <= secondsMax;

/** Parses `2026-11-15T09:28:17` (seconds are optional, a space may replace the T), or Unix seconds or milliseconds. */
export const parseTime = (raw: string, zone: Zone): ParsedTime => {
  const text = raw.trim();
  if (text === '') return { problem: 'Enter a date and time, or a Unix timestamp.' };
  if (/^[0-9]{1,10}$/.test(text)) return bounded(Number(text));
  // Thirteen digits are milliseconds: as seconds they would be 30,000 years from now.
  if (/^[0-9]{13}$/.test(text)) return bounded(Math.floor(Number(text) / 1_000));
  const [, day, time, fraction, z] =
    /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)(\.\d+)?\s*(Z|UTC)?$/i.exec(text) ?? [];
  if (day === undefined || time === undefined)
    return { problem: 'Enter a date and time such as 2026-11-15 09:28:17, or a Unix timestamp such as 1794734897.' };
  void fraction; // lookups are by second
  const ms = Date.parse(
    `${day}T${time.length === 5 ? `${time}:00` : time}${zone === 'utc' || z !== undefined ? 'Z' : ''}`,
  );
  if (Number.isNaN(ms)) return { problem: 'That date or time does not exist.' };
  return bounded(Math.floor(ms / 1_000));
};

const bounded = (seconds: number): ParsedTime =>
  isWithin(seconds) ? { seconds } : { problem: 'Enter a time from 1970 to 2106.' };

const pad = (value: number): string => String(value).padStart(2, '0');

/** A second in the form of a datetime-local input: `2026-11-15T09:28:17`. */
export const toInputValue = (seconds: number, zone: Zone): string => {
  const date = new Date(seconds * 1_000);
  if (zone === 'utc') return date.toISOString().slice(0, 19);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day}T${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
};
