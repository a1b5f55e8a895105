import { expect, test } from 'vitest';
import { silentMsOf, usualHoursOf } from './market-hours.ts';

const equities = { marketHours: '09:30-16:00 ET M-F', assetClass: 'Equities' };
const forex = { marketHours: '24/5', assetClass: 'Forex' };
const at = (iso: string): number => Date.parse(iso);
const read = (stream: typeof equities, iso: string) => {
  const hours = usualHoursOf(stream, at(iso));
  return hours && { isOpen: hours.isOpen, opensMs: new Date(hours.opensMs).toISOString() };
};

test('market hours: before, in and after a session, and over a weekend', () => {
  expect(read(equities, '2026-11-16T11:00:00Z')).toEqual({ isOpen: false, opensMs: '2026-11-16T14:30:00.000Z' });
  expect(read(equities, '2026-11-16T14:30:00Z')).toEqual({ isOpen: true, opensMs: '2026-11-17T14:30:00.000Z' });
  expect(read(equities, '2026-11-16T20:59:59Z')).toEqual({ isOpen: true, opensMs: '2026-11-17T14:30:00.000Z' });
  expect(read(equities, '2026-11-13T21:00:00Z')).toEqual({ isOpen: false, opensMs: '2026-11-16T14:30:00.000Z' });
});

test('market hours: forex is open from Sunday to Friday, 17:00 in New York', () => {
  expect(read(forex, '2026-11-13T22:00:00Z')).toEqual({ isOpen: false, opensMs: '2026-11-15T22:00:00.000Z' });
  expect(read(forex, '2026-11-15T22:00:01Z')?.isOpen).toBe(true);
  expect(read(forex, '2026-11-16T03:00:00Z')?.isOpen).toBe(true);
});

test('market hours: the opening after a clock change is at the same time in New York', () => {
  expect(read(forex, '2026-10-31T12:00:00Z')?.opensMs).toBe('2026-11-01T22:00:00.000Z');
  expect(read(forex, '2027-03-13T12:00:00Z')?.opensMs).toBe('2027-03-14T21:00:00.000Z');
});

test('market hours: the last closing, after a weekend and at the closing itself', () => {
  const closedAt = (iso: string) => new Date(usualHoursOf(equities, at(iso))?.closedMs ?? 0).toISOString();
  expect(closedAt('2026-11-16T11:00:30Z')).toBe('2026-11-13T21:00:00.000Z');
  expect(closedAt('2026-11-16T21:00:00Z')).toBe('2026-11-16T21:00:00.000Z');
});

test('market hours: nothing is said of markets that never close or whose hours are not known', () => {
  expect(read({ marketHours: '24/7', assetClass: 'Crypto' }, '2026-11-16T11:00:00Z')).toBeUndefined();
  expect(read({ marketHours: '24/5', assetClass: 'Weather' }, '2026-11-16T11:00:00Z')).toBeUndefined();
  expect(read({ marketHours: 'by appointment', assetClass: 'Equities' }, '2026-11-16T11:00:00Z')).toBeUndefined();
});

test('market hours: silence counts only while the market is open', () => {
  const silence = (stream: typeof equities, observed: string, isClosed: boolean, now: string) =>
    silentMsOf(stream, { observationsMs: at(observed), isClosed }, at(now));
  const crypto = { marketHours: '24/7', assetClass: 'Crypto' };
  expect(silence(crypto, '2026-11-16T15:00:00Z', false, '2026-11-16T15:01:00Z')).toBe(60_000);
  expect(silence(crypto, '2026-11-16T15:00:00Z', true, '2026-11-16T15:01:00Z')).toBeUndefined(); // as the report says
  expect(silence(equities, '2026-11-16T20:59:59Z', false, '2026-11-16T21:30:00Z')).toBeUndefined(); // after the bell
  expect(silence(equities, '2026-11-16T15:00:00Z', true, '2026-11-16T16:00:00Z')).toBeUndefined(); // a holiday
  expect(silence(equities, '2026-11-16T15:00:00Z', false, '2026-11-16T16:00:00Z')).toBe(3_600_000);
});

test('market hours: a stream that does not resume after the opening is silent since then', () => {
  const friday = { observationsMs: at('2026-11-13T21:00:30Z'), isClosed: true };
  expect(silentMsOf(equities, friday, at('2026-11-16T14:29:59Z'))).toBeUndefined();
  expect(silentMsOf(equities, friday, at('2026-11-16T14:31:00Z'))).toBe(60_000);
  expect(silentMsOf(undefined, { ...friday, isClosed: false }, friday.observationsMs + 5_000)).toBe(5_000);
});
