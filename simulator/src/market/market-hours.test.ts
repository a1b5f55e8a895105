import { expect, test } from 'vitest';
import { lastOpenAt, type MarketHours, openCodeOf, sessionAt, sessionCodes } from './market-hours.ts';

const seconds = (date: string) => Date.parse(date) / 1_000;
const sessionOf = (kind: MarketHours, date: string) => sessionAt(kind, seconds(date));
const lastOpenOf = (kind: MarketHours, date: string) =>
  new Date(lastOpenAt(kind, seconds(date)) * 1_000).toISOString().replace('.000', '');

test('crypto never closes', () => {
  expect(sessionOf('always', '2025-12-25T03:00:00Z')).toBe('regular');
  expect(lastOpenOf('always', '2025-12-25T03:00:00Z')).toBe('2025-12-25T03:00:00Z');
});

test.each([
  ['in winter', '2025-01-17T22:00:00Z', '2025-01-19T22:00:00Z'],
  ['in summer', '2025-07-18T21:00:00Z', '2025-07-20T21:00:00Z'],
  ['over the change to daylight saving time', '2025-03-07T22:00:00Z', '2025-03-09T21:00:00Z'],
  ['over the change to standard time', '2025-10-31T21:00:00Z', '2025-11-02T22:00:00Z'],
])('forex closes on Friday at 17:00 New York time and opens on Sunday at 17:00, %s', (_, closes, opens) => {
  const session = (second: number) => sessionAt('forex', second);
  expect([session(seconds(closes) - 1), session(seconds(closes))]).toEqual(['regular', 'closed']);
  expect([session(seconds(opens) - 1), session(seconds(opens))]).toEqual(['closed', 'regular']);
  expect(lastOpenAt('forex', seconds(opens) - 1)).toBe(seconds(closes) - 1);
});

test('forex trades on days when the stock exchange is closed', () => {
  expect(sessionOf('forex', '2025-07-04T15:00:00Z')).toBe('regular');
});

test.each([
  ['2025-11-03T08:59:59Z', 'overnight'],
  ['2025-11-03T09:00:00Z', 'pre-market'],
  ['2025-11-03T14:29:59Z', 'pre-market'],
  ['2025-11-03T14:30:00Z', 'regular'],
  ['2025-11-03T20:59:59Z', 'regular'],
  ['2025-11-03T21:00:00Z', 'post-market'],
  ['2025-11-04T00:59:59Z', 'post-market'],
  ['2025-11-04T01:00:00Z', 'overnight'],
  ['2025-11-04T05:00:00Z', 'overnight'],
  ['2025-10-31T13:30:00Z', 'regular'],
  ['2025-03-10T13:29:59Z', 'pre-market'],
  ['2025-03-10T13:30:00Z', 'regular'],
] as const)('US equities with extended hours are at %s in session %s', (date, session) => {
  expect(sessionOf('us-equities-extended', date)).toBe(session);
});

test('US equities with extended hours close from Friday 20:00 to Sunday 20:00', () => {
  expect(sessionOf('us-equities-extended', '2025-10-31T23:59:59Z')).toBe('post-market');
  expect(sessionOf('us-equities-extended', '2025-11-01T00:00:00Z')).toBe('closed');
  expect(sessionOf('us-equities-extended', '2025-11-03T00:59:59Z')).toBe('closed');
  expect(sessionOf('us-equities-extended', '2025-11-03T01:00:00Z')).toBe('overnight');
  expect(lastOpenOf('us-equities-extended', '2025-11-02T12:00:00Z')).toBe('2025-10-31T23:59:59Z');
});

test('a holiday closes its trading day, which begins on the evening before', () => {
  expect(sessionOf('us-equities-extended', '2025-11-27T00:59:59Z')).toBe('post-market');
  expect(sessionOf('us-equities-extended', '2025-11-27T01:00:00Z')).toBe('closed');
  expect(sessionOf('us-equities-extended', '2025-11-27T15:00:00Z')).toBe('closed');
  expect(sessionOf('us-equities-extended', '2025-11-28T01:00:00Z')).toBe('overnight');
  expect(lastOpenOf('us-equities-extended', '2025-11-27T15:00:00Z')).toBe('2025-11-27T00:59:59Z');
});

test('a holiday on Monday makes a weekend of three days', () => {
  expect(lastOpenOf('us-equities-extended', '2025-09-01T18:00:00Z')).toBe('2025-08-29T23:59:59Z');
});

test('regular hours end at 16:00 and begin at 9:30 of the next trading day', () => {
  expect(sessionOf('us-equities-regular', '2025-11-03T14:29:59Z')).toBe('closed');
  expect(sessionOf('us-equities-regular', '2025-11-03T14:30:00Z')).toBe('regular');
  expect(sessionOf('us-equities-regular', '2025-11-03T21:00:00Z')).toBe('closed');
  expect(lastOpenOf('us-equities-regular', '2025-11-03T14:29:59Z')).toBe('2025-10-31T19:59:59Z');
  expect(lastOpenOf('us-equities-regular', '2025-11-03T23:00:00Z')).toBe('2025-11-03T20:59:59Z');
});

test('a daily value is struck at 16:00 of each trading day', () => {
  expect(lastOpenOf('daily-strike', '2025-11-03T20:59:59Z')).toBe('2025-10-31T20:00:00Z');
  expect(lastOpenOf('daily-strike', '2025-11-03T21:00:00Z')).toBe('2025-11-03T21:00:00Z');
  expect(lastOpenOf('daily-strike', '2025-11-04T20:59:59Z')).toBe('2025-11-03T21:00:00Z');
});

test('status codes are those of the schemas', () => {
  expect(sessionCodes).toEqual({ 'pre-market': 1, regular: 2, 'post-market': 3, overnight: 4, closed: 5 });
  expect([openCodeOf('closed'), openCodeOf('regular'), openCodeOf('overnight')]).toEqual([1, 2, 2]);
});
