import { expect, test } from 'vitest';
import { describeForm, parseTime, toAddressTime, type Zone } from './time-input.ts';

const nowMs = 1_794_735_000_500;
const parse = (text: string, zone: Zone = 'utc') => parseTime(text, zone, nowMs);

test('time input: a date and time is a second, in UTC unless local time is chosen', () => {
  expect(parse('2026-11-15T09:28:17')).toEqual({ seconds: 1_794_734_897, form: 'utc' });
  expect(parse(' 2026-11-15 09:28 ')).toEqual({ seconds: 1_794_734_880, form: 'utc' });
  expect(parse('2026-11-15')).toEqual({ seconds: 1_794_700_800, form: 'utc' });
  const local = new Date(2026, 10, 15, 9, 28, 17).getTime() / 1_000;
  expect(parse('2026-11-15T09:28:17', 'local')).toEqual({ seconds: local, form: 'local' });
});

test('time input: a zone in the text counts, whatever is chosen', () => {
  for (const zone of ['utc', 'local'] as const) {
    for (const text of ['2026-11-15 09:28:17 UTC', '2026-11-15T09:28:17.999z', '2026-11-15T10:28:17+01:00'])
      expect(parse(text, zone)).toEqual({ seconds: 1_794_734_897, form: 'zoned' });
    expect(parse('2026-11-15 04:28:17 -0500', zone)).toEqual({ seconds: 1_794_734_897, form: 'zoned' });
  }
});

test('time input: a plus that an address turned into a space is still a zone', () => {
  expect(parse('2026-11-15T10:28:17 01:00')).toEqual({ seconds: 1_794_734_897, form: 'zoned' });
});

test('time input: a number is Unix seconds, a large one milliseconds', () => {
  expect(parse('1794734897')).toEqual({ seconds: 1_794_734_897, form: 'seconds' });
  expect(parse('1794734897999')).toEqual({ seconds: 1_794_734_897, form: 'milliseconds' });
});

test('time input: a minus sign counts back from now', () => {
  expect(parse('-5m')).toEqual({ seconds: 1_794_734_700, form: 'relative' });
  expect(parse('-2h30m')).toEqual({ seconds: 1_794_726_000, form: 'relative' });
  expect(parse('−1d')).toEqual({ seconds: 1_794_648_600, form: 'relative' });
  expect(parse('-1w 2D 3min 4s')).toEqual({ seconds: 1_794_735_000 - 777_784, form: 'relative' });
  expect(describeForm('relative', 1_794_726_000, nowMs)).toBe('2 h 30 min before now');
});

test('time input: what is wrong is named, with an example', () => {
  const problems = ['', 'yesterday', '2026-02-30 09:28', '2026-11-15T25:00', '9999999999', '5m', '-900000d', '1e9'].map(
    (text) => parse(text).problem,
  );
  expect(problems).toEqual([
    'Enter a time, such as 2026-11-15 09:28:17, 2026-11-15T10:28:17+01:00, 1794734897 or -2h30m.',
    '“yesterday” is not a time. Examples: 2026-11-15 09:28:17, 2026-11-15T10:28:17+01:00, 1794734897 or -2h30m.',
    '2026-02-30 09:28 does not exist. Example: 2026-11-15 09:28:17.',
    '2026-11-15T25:00 does not exist. Example: 2026-11-15 09:28:17.',
    'Enter a time from 1970 to 2106, such as 2026-11-15 09:28:17 or -5m.',
    'For a time before now, begin with a minus sign: -5m.',
    'Enter a time from 1970 to 2106, such as 2026-11-15 09:28:17 or -5m.',
    '“1e9” is not a time. Examples: 2026-11-15 09:28:17, 2026-11-15T10:28:17+01:00, 1794734897 or -2h30m.',
  ]);
});

test('time input: the time in an address is the same second for everyone', () => {
  expect(toAddressTime(1_794_734_897)).toBe('2026-11-15T09:28:17Z');
  expect(parse('2026-11-15T09:28:17Z', 'local')).toEqual({ seconds: 1_794_734_897, form: 'zoned' });
});
