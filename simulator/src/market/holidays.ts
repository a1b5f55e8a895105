// The full holidays of the New York Stock Exchange, by rule. Half days and one-time closures follow no rule and are trading days here.
import { dayOf, nthWeekdayOf, weekdayOf, yearOf } from './calendar-day.ts';

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
