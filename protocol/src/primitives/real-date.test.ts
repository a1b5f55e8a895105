import { expect, test } from 'vitest';
import { realDateMs } from './real-date.ts';

test('date: one that exists is a time, whatever its form', () => {
  const noon = Date.UTC(2024, 1, 29, 12);
  for (const raw of ['2024-02-29T12:00:00Z', '2024-02-29t13:00:00.000+01:00', '2024-02-29T12:00Z'])
    expect(realDateMs(raw), raw).toBe(noon);
  expect(realDateMs('2024-02-29')).toBe(Date.UTC(2024, 1, 29));
});

test('date: a day or hour that does not exist is none', () => {
  for (const raw of [
    '2025-02-29T00:00:00Z',
    '2025-11-31T12:00:00+05:00',
    '2025-02-30',
    '2025-11-15T24:00:00Z',
    '2025-11-15T23:59:60Z',
    '2025-13-01T00:00:00Z',
  ])
    expect(realDateMs(raw), raw).toBeNaN();
});
