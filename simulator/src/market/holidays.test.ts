import { expect, test } from 'vitest';
import { dayOf } from './calendar-day.ts';
import { isNyseHoliday, nyseHolidaysOf } from './holidays.ts';

const datesOf = (year: number) =>
  [...nyseHolidaysOf(year)].sort((a, b) => a - b).map((day) => new Date(day * 86_400_000).toISOString().slice(5, 10));

// As published by the exchange.
test.each([
  [2024, '01-01 01-15 02-19 03-29 05-27 06-19 07-04 09-02 11-28 12-25'],
  [2025, '01-01 01-20 02-17 04-18 05-26 06-19 07-04 09-01 11-27 12-25'],
  [2026, '01-01 01-19 02-16 04-03 05-25 06-19 07-03 09-07 11-26 12-25'],
  [2027, '01-01 01-18 02-15 03-26 05-31 06-18 07-05 09-06 11-25 12-24'],
])('the full holidays of %i are those of the exchange', (year, dates) => {
  expect(datesOf(year).join(' ')).toBe(dates);
});

test("a New Year's Day on a Saturday closes nothing: the Friday before trades", () => {
  expect(datesOf(2028)).toEqual(['01-17', '02-21', '04-14', '05-29', '06-19', '07-04', '09-04', '11-23', '12-25']);
  expect(isNyseHoliday(dayOf(2027, 12, 31))).toBe(false);
});

test("a New Year's Day on a Sunday is kept on Monday", () => {
  expect(isNyseHoliday(dayOf(2023, 1, 2))).toBe(true);
});
