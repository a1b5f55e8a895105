import { expect, test } from 'vitest';
import { parseTime, toInputValue } from './time-input.ts';

test('a date and time in UTC is a second', () => {
  expect(parseTime('2026-11-15T09:28:17', 'utc')).toEqual({ seconds: 1_794_734_897 });
  expect(parseTime(' 2026-11-15 09:28:17 UTC ', 'local')).toEqual({ seconds: 1_794_734_897 });
  expect(parseTime('2026-11-15T09:28', 'utc')).toEqual({ seconds: 1_794_734_880 });
});

test('a date and time in local time is a second', () => {
  const expected = new Date(2026, 10, 15, 9, 28, 17).getTime() / 1_000;
  expect(parseTime('2026-11-15T09:28:17', 'local')).toEqual({ seconds: expected });
});

test('a number is Unix seconds, thirteen digits are milliseconds', () => {
  expect(parseTime('1794734897', 'utc')).toEqual({ seconds: 1_794_734_897 });
  expect(parseTime('1794734897999', 'local')).toEqual({ seconds: 1_794_734_897 });
});

test('an invalid time is explained with what to enter', () => {
  expect(parseTime('', 'utc')).toEqual({ problem: 'Enter a date and time, or a Unix timestamp.' });
  expect(parseTime('yesterday', 'utc')).toEqual({
    problem: 'Enter a date and time such as 2026-11-15 09:28:17, or a Unix timestamp such as 1794734897.',
  });
  expect(parseTime('2026-13-40T09:28', 'utc')).toEqual({ problem: 'That date or time does not exist.' });
  expect(parseTime('9999999999', 'utc')).toEqual({ problem: 'Enter a time from 1970 to 2106.' });
});

test('the input value of a second parses back to it', () => {
  expect(toInputValue(1_794_734_897, 'utc')).toBe('2026-11-15T09:28:17');
  expect(parseTime(toInputValue(1_794_734_897, 'local'), 'local')).toEqual({ seconds: 1_794_734_897 });
});
