import { expect, test } from 'vitest';
import { parseFeedId } from './feed-id.ts';
import type { CandleResolution } from './limits.ts';
import { costOf } from './request-cost.ts';

const feedId = parseFeedId(`0x0003${'1'.padStart(60, '0')}`);
const t0 = 1_763_200_000;

test('cost: routes of the specification cost one token, whatever their arguments', () => {
  expect(costOf('reportLatest', { feedId })).toBe(1);
  expect(costOf('reportAt', { feedId, timestamp: t0 })).toBe(1);
  const feedIds = Array.from({ length: 100 }, () => feedId);
  expect(costOf('reportBulk', { feedIds, timestamp: t0, missing: false })).toBe(1);
  expect(costOf('reportPage', { feedId, startTimestamp: t0, limit: 1_000 })).toBe(1);
});

test('cost: coverage costs a token per started six hours, up to a day', () => {
  const cost = (seconds: number) => costOf('reportCoverage', { feedId, from: t0, to: t0 + seconds - 1 });
  expect([1, 60, 21_600, 21_602, 86_400, 10 ** 9].map(cost)).toEqual([1, 1, 1, 2, 4, 4]);
  expect(costOf('reportCoverage', { feedId, from: t0, to: 0 })).toBe(1);
});

test('cost: coverage of several streams costs a token per four streams and day', () => {
  const cost = (streams: number, seconds: number) =>
    costOf('reportCoverageMany', {
      feedIds: Array.from({ length: streams }, () => feedId),
      from: t0,
      to: t0 + seconds - 1,
    });
  expect([cost(1, 1), cost(4, 86_400), cost(5, 86_400), cost(100, 86_400), cost(100, 10 ** 9)]).toEqual([
    1, 1, 2, 25, 25,
  ]);
});

test('cost: candles cost a token per 1,440 roll-ups', () => {
  const cost = (resolution: CandleResolution, candles: number) =>
    costOf('reportCandles', { feedId, from: t0, to: t0 + candles * resolution - 1, resolution });
  expect([cost(60, 1), cost(60, 1_440), cost(60, 10 ** 6)]).toEqual([1, 1, 1]);
  expect([cost(300, 1), cost(300, 288), cost(300, 289), cost(300, 1_440)]).toEqual([1, 1, 2, 5]);
  expect([cost(900, 96), cost(900, 97), cost(900, 1_440)]).toEqual([1, 2, 15]);
  expect([cost(3_600, 720), cost(3_600, 1_440)]).toEqual([1, 1]);
  expect([cost(14_400, 360), cost(14_400, 361), cost(14_400, 10 ** 6)]).toEqual([1, 2, 4]);
});

test('cost: candles of several streams cost what all of them read', () => {
  const cost = (streams: number, resolution: CandleResolution, candles: number) =>
    costOf('reportCandlesMany', {
      feedIds: Array.from({ length: streams }, () => feedId),
      from: t0,
      to: t0 + candles * resolution - 1,
      resolution,
    });
  expect([cost(1, 60, 1_440), cost(57, 3_600, 25), cost(58, 3_600, 25), cost(100, 3_600, 25)]).toEqual([1, 1, 2, 2]);
  expect([cost(100, 900, 96), cost(100, 900, 10 ** 6), cost(2, 1, 360)]).toEqual([100, 209, 2]);
});

test('cost: candles of a second cost a token per six minutes', () => {
  const cost = (seconds: number) => costOf('reportCandles', { feedId, from: t0, to: t0 + seconds - 1, resolution: 1 });
  expect([1, 360, 362, 1_440, 10 ** 6].map(cost)).toEqual([1, 1, 2, 4, 4]);
});
