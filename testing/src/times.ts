// Durations and moments as tests write them.
import { realDateMs } from '@sealpost/protocol';
import { clockMaxMs, durationMs } from 'sealpost/sandbox';
import { unexpected } from './errors.ts';

/** `'500ms'`, `'10s'`, `'5m'`, `'2h'`, `'1d'`, or a number of milliseconds. */
export type Duration = string | number;

/** A date, `'2026-03-13T14:30:00Z'`, or Unix seconds, as reports have them. */
export type Moment = Date | string | number;

const durationExpected = (max: string): string =>
  `a duration up to ${max} such as '10s' or '500ms', or a whole number of milliseconds`;

/** A duration in whole ms, from 0 to a maximum. */
export const parseDuration = (argument: string, value: unknown, maxMs: number, max: string): number => {
  const ms = typeof value === 'string' ? durationMs(value.trim()) : value;
  if (typeof ms === 'number' && Number.isInteger(ms) && ms >= 0 && ms <= maxMs) return ms;
  throw unexpected(argument, value, durationExpected(max));
};

const dated = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

const msOf = (value: unknown): number => {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'number') return value * 1_000;
  return typeof value === 'string' && dated.test(value) ? realDateMs(value) : Number.NaN;
};

/** A moment in ms. */
export const parseMoment = (argument: string, value: unknown): number => {
  const ms = msOf(value);
  if (Number.isInteger(ms) && ms >= 0 && ms <= clockMaxMs) return ms;
  throw unexpected(argument, value, "a Date, a date such as '2026-03-13T14:30:00Z', or Unix seconds, before 2106");
};
