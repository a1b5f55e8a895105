import { expect, test } from 'vitest';
import { dayOf, fromNewYork, isNyseHoliday, nyseHolidaysOf, toNewYork } from './new-york.ts';

const seconds = (date: string) => Date.parse(date) / 1_000;
const shown = (date: string) => new Date(toNewYork(seconds(date)) * 1_000).toISOString().slice(0, 19);

test('clocks go forward on the second Sunday of March at 2:00', () => {
  expect(shown('2025-03-09T06:59:59Z')).toBe('2025-03-09T01:59:59');
  expect(shown('2025-03-09T07:00:00Z')).toBe('2025-03-09T03:00:00');
});

test('clocks go back on the first Sunday of November at 2:00', () => {
  expect(shown('2025-11-02T05:59:59Z')).toBe('2025-11-02T01:59:59');
  expect(shown('2025-11-02T06:00:00Z')).toBe('2025-11-02T01:00:00');
});

test('the rule agrees with the time zone database from 2024 to 2035', () => {
  const zone = new Intl.DateTimeFormat('sv-SE', {
    timeZone: 'America/New_York',
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  for (let at = seconds('2024-01-01T00:00:00Z'); at < seconds('2035-01-01T00:00:00Z'); at += 9.7 * 3_600) {
    const whole = Math.floor(at);
    expect(new Date(toNewYork(whole) * 1_000).toISOString().slice(0, 19).replace('T', ' ')).toBe(
      zone.format(whole * 1_000),
    );
  }
});

test('local time converts back to the same second', () => {
  for (const date of ['2025-01-15T21:00:00Z', '2025-07-15T20:00:00Z', '2025-03-09T21:00:00Z', '2025-11-02T22:00:00Z']) {
    expect(fromNewYork(toNewYork(seconds(date)))).toBe(seconds(date));
  }
});

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
