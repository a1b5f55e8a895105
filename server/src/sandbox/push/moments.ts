// Moments as those who push reports write them.
import { realDateMs } from '@sealpost/protocol';
import { clockMaxMs } from '../clock.ts';
import { unexpected } from './errors.ts';

/** A date, `'2026-03-13T14:30:00Z'`, or Unix seconds, as reports have them. */
export type Moment = Date | string | number;

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
