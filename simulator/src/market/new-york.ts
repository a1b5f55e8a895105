// The calendar of New York: local time, and the full holidays of the New York Stock Exchange, by rule. Half days and one-time closures follow no rule and are
// trading days here. Days are whole numbers since 1970-01-01, so that calendar rules are integer arithmetic.
import { dayMs, daySeconds } from '@sealpost/protocol';

/** The day of a date; January is month 1. */
export const dayOf = (year: number, month: number, date: number): number => Date.UTC(year, month - 1, date) / dayMs;

/** 0 is Sunday. */
export const weekdayOf = (day: number): number => (((day + 4) % 7) + 7) % 7;

const yearOf = (day: number): number => new Date(day * dayMs).getUTCFullYear();

/** The nth (from 1) given weekday of a month. */
const nthWeekdayOf = (year: number, month: number, weekday: number, nth: number): number => {
  const first = dayOf(year, month, 1);
  return first + ((weekday - weekdayOf(first) + 7) % 7) + (nth - 1) * 7;
};

const hourSeconds = 3_600;
// UTC−5, and UTC−4 from the second Sunday of March to the first Sunday of November, 2:00 local time.
const standardOffset = -5 * hourSeconds;
const daylightOffset = -4 * hourSeconds;

const offsetAt = (seconds: number): number => {
  const year = yearOf(Math.floor(seconds / daySeconds));
  const daylightFrom = nthWeekdayOf(year, 3, 0, 2) * daySeconds + 2 * hourSeconds - standardOffset;
  const daylightTo = nthWeekdayOf(year, 11, 0, 1) * daySeconds + 2 * hourSeconds - daylightOffset;
  return seconds >= daylightFrom && seconds < daylightTo ? daylightOffset : standardOffset;
};

/** New York local time at a Unix second, as seconds since 1970-01-01 00:00 local time. */
export const toNewYork = (seconds: number): number => seconds + offsetAt(seconds);

/** The Unix second of a New York local time; wrong in the hours around the two daylight-saving changes. */
export const fromNewYork = (wallSeconds: number): number => wallSeconds - offsetAt(wallSeconds - standardOffset);

const monday = 1;
const thursday = 4;

/** The holidays of a year, in no order. */
export const nyseHolidaysOf = (year: number): readonly number[] =>
  [
    observedDayOf(dayOf(year, 1, 1)),
    nthWeekdayOf(year, 1, monday, 3), // Martin Luther King
    nthWeekdayOf(year, 2, monday, 3), // Presidents
    easterOf(year) - 2, // Good Friday
    nthWeekdayOf(year, 6, monday, 1) - 7, // Memorial Day, the last Monday of May
    observedDayOf(dayOf(year, 6, 19)), // Juneteenth
    observedDayOf(dayOf(year, 7, 4)),
    nthWeekdayOf(year, 9, monday, 1), // Labor Day
    nthWeekdayOf(year, 11, thursday, 4), // Thanksgiving
    observedDayOf(dayOf(year, 12, 25)),
    // A New Year's Day on a Saturday is not moved: the last day of December closes the books.
  ].filter((day) => yearOf(day) === year);

/** Whether the exchange is closed for a holiday. */
export const isNyseHoliday = (day: number): boolean => nyseHolidaysOf(yearOf(day)).includes(day);

const observedDayOf = (day: number): number => {
  const weekday = weekdayOf(day);
  if (weekday === 6) return day - 1;
  return weekday === 0 ? day + 1 : day;
};

// The Gregorian computus of Meeus, Jones and Butcher; the letters are theirs.
const easterOf = (year: number): number => {
  const a = year % 19;
  const b = Math.floor(year / 100);
  const c = year % 100;
  const d = Math.floor(b / 4);
  const e = b % 4;
  const g = Math.floor((8 * b + 13) / 25);
  const h = (19 * a + b - d - g + 15) % 30;
  const i = Math.floor(c / 4);
  const k = c % 4;
  const l = (32 + 2 * e + 2 * i - h - k) % 7;
  const m = Math.floor((a + 11 * h + 22 * l) / 451);
  const dayInMarch = h + l - 7 * m + 22; // beyond 31 it runs on into April, as Date.UTC does
  return dayOf(year, 3, dayInMarch);
};
