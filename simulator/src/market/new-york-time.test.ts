import { expect, test } from 'vitest';
import { fromNewYork, toNewYork } from './new-york-time.ts';

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
