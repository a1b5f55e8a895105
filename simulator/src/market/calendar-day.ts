// Days as whole numbers since 1970-01-01, so that calendar rules are integer arithmetic.
import { dayMs } from '@sealpost/protocol';

/** The day of a date; January is month 1. */
export const dayOf = (year: number, month: number, date: number): number => Date.UTC(year, month - 1, date) / dayMs;

/** 0 is Sunday. */
export const weekdayOf = (day: number): number => (((day + 4) % 7) + 7) % 7;

export const yearOf = (day: number): number => new Date(day * dayMs).getUTCFullYear();

/** The nth (from 1) given weekday of a month. */
export const nthWeekdayOf = (year: number, month: number, weekday: number, nth: number): number => {
  const first = dayOf(year, month, 1);
  return first + ((weekday - weekdayOf(first) + 7) % 7) + (nth - 1) * 7;
};
