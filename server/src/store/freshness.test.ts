import { encodeReportBody, parseFeedId, type Stream } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import { expect, test } from 'vitest';
import { testStream } from '../../../tests/support/samples.ts';
import { lateReason, readFreshness, silenceOf } from './freshness.ts';

const { sign } = await createNetwork({ seed: 'freshness' });
const feedId = parseFeedId(`0x0008${'1'.padStart(60, '0')}`);
const [closed, open] = [1, 2];

/** A store whose newest report is of this window, in seconds. */
const storeWith = (at?: { readonly from: number; readonly to: number; readonly marketStatus: number }) => ({
  newestMs: () => at && at.to * 1_000,
  latest: () => {
    if (at === undefined) return undefined;
    const { from: validFromTimestamp, to: observationsTimestamp, marketStatus } = at;
    const head = { feedId, validFromTimestamp, observationsTimestamp, nativeFee: 1n, linkFee: 1n };
    const rest = { expiresAt: observationsTimestamp + 9, lastUpdateTimestamp: 1n, midPrice: 1n, marketStatus };
    const fullReport = sign(encodeReportBody({ version: 8, ...head, ...rest }), 1);
    const json = JSON.stringify({ report: { fullReport } });
    return { validFromMs: validFromTimestamp * 1_000, observationsMs: observationsTimestamp * 1_000, tag: '', json };
  },
});

const always = testStream(feedId);
const forex = testStream(feedId, { marketHours: '24/5', assetClass: 'Forex' });
const equity = testStream(feedId, { marketHours: '09:30-16:00 ET M-F', assetClass: 'Equities' });
const secondsOf = (date: string): number => Date.parse(date) / 1_000;

/** How long the stream has been silent, and how long it may be, in seconds. */
const silence = (stream: Stream, date: string, newest?: { to: string; interval?: number; marketStatus?: number }) => {
  const { to = '', interval = 1, marketStatus = open } = newest ?? {};
  const at = newest && { from: secondsOf(to) - interval + 1, to: secondsOf(to), marketStatus };
  const found = silenceOf(storeWith(at), stream, Date.parse(date));
  return found && [found.silentMs / 1_000, found.maxMs / 1_000];
};

test('freshness: a stream may be silent for a minute, or for three of its intervals', () => {
  expect(silence(always, '2025-11-15T12:00:10Z', { to: '2025-11-15T12:00:00Z' })).toEqual([10, 60]);
  expect(silence(always, '2025-11-15T12:02:00Z', { to: '2025-11-15T12:00:00Z' })).toEqual([120, 60]);
  expect(silence(always, '2025-11-15T12:02:00Z', { to: '2025-11-15T12:00:00Z', interval: 301 })).toEqual([120, 900]);
  expect(silence(always, '2025-11-15T12:02:00Z')).toEqual([Number.POSITIVE_INFINITY, 60]);
});

test('freshness: a stream is not silent while its market is closed, and from the opening on it is', () => {
  const friday = { to: '2025-11-14T21:59:59Z' }; // 16:59:59 in New York
  expect(silence(forex, '2025-11-15T12:00:00Z', friday)).toBeUndefined();
  expect(silence(forex, '2025-11-15T12:00:00Z')).toBeUndefined();
  expect(silence(forex, '2025-11-16T22:05:00Z', friday)).toEqual([300, 60]);
  const yesterday = { to: '2025-07-15T19:59:59Z', marketStatus: closed };
  expect(silence(equity, '2025-07-16T13:29:00Z', yesterday)).toBeUndefined();
  expect(silence(equity, '2025-07-16T13:35:00Z', yesterday)).toEqual([300, 60]); // 09:35 in New York, in summer
});

test('freshness: a market that a report of this session closed, on a holiday or in a halt, is closed', () => {
  const thanksgiving = { to: '2025-11-27T14:30:05Z', marketStatus: closed };
  expect(silence(equity, '2025-11-27T17:00:00Z', thanksgiving)).toBeUndefined();
  expect(silence(equity, '2025-11-27T17:00:00Z', { ...thanksgiving, marketStatus: open })).toEqual([8_995, 60]);
  const unknownHours = testStream(feedId, { marketHours: '16:00 ET M-F' });
  expect(silence(unknownHours, '2025-11-28T17:00:00Z', thanksgiving)).toBeUndefined();
});

test('freshness: reports are late when every stream whose market is open is silent for too long', async () => {
  const late = async (streams: readonly Stream[], date: string, interval = 1) => {
    const to = secondsOf('2025-11-14T21:59:59Z');
    const store = storeWith({ from: to - interval + 1, to, marketStatus: open });
    return lateReason(await readFreshness(store, streams, Date.parse(date)));
  };
  expect(await late([forex], '2025-11-15T12:00:00Z')).toBeUndefined();
  expect(await late([forex, always], '2025-11-14T22:01:59Z')).toBe('the newest report is 120 s old');
  expect(await late([always], '2025-11-14T22:01:59Z', 61)).toBeUndefined();
  expect(await late([forex], '2025-11-16T22:02:00Z')).toBe('the newest report is 172921 s old');
  expect(lateReason(await readFreshness(storeWith(), [always], Date.now()))).toBeUndefined();
});
