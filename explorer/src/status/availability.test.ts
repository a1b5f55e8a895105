import type { StreamCoverage } from '@sealpost/client';
import type { CatalogEntry } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import {
  availabilityProblems,
  describeStrip,
  formatAvailability,
  measuredRange,
  readAvailabilityOrder,
  searchStreams,
  shareOf,
  sortByAvailability,
  stripOf,
  toggleAvailabilityOrder,
  toMeasured,
  writeAvailabilityOrder,
} from './availability.ts';

const hour = 1_763_197_200; // a whole one
const range = { from: hour - 23 * 3_600, to: hour + 99 };
const stream = (baseAsset: string, changes: Partial<CatalogEntry> = {}) =>
  ({
    feedId: `0x${baseAsset}`,
    name: `${baseAsset}/USD-Streams`,
    baseAsset,
    quoteAsset: 'USD',
    assetName: `${baseAsset} coin`,
    status: 'live',
    ...changes,
  }) as CatalogEntry; // what the functions read
const coverage = (changes: Partial<StreamCoverage> = {}): StreamCoverage => ({
  feedID: '0x1',
  from: range.from,
  coveredSeconds: range.to - range.from + 1,
  gapCount: 0,
  longestGap: null,
  newestMs: (hour + 100) * 1_000,
  hours: [],
  ...changes,
});

test('availability: the range is the current hour and the 23 before it, without the newest seconds', () => {
  expect(measuredRange((hour + 189) * 1_000 + 500)).toEqual(range);
  expect(measuredRange((hour + 89) * 1_000)).toEqual({ from: hour - 24 * 3_600, to: hour - 1 });
});

test('availability: the share is of what was measured, and only complete coverage reads 100 %', () => {
  const late = coverage({ from: range.to - 9, coveredSeconds: 5 });
  expect(shareOf(toMeasured(late, range, 0))).toBe(0.5);
  expect(
    shareOf(toMeasured({ ...coverage(), from: undefined } as unknown as StreamCoverage, range, 0)),
  ).toBeUndefined(); // absent
  expect([formatAvailability(1), formatAvailability(0.999999), formatAvailability(0)]).toEqual([
    '100 %',
    '99.99 %',
    '0 %',
  ]);
});

test('availability: the strip has a cell per hour; hours before the first report are unknown', () => {
  const hours = [
    { timestamp: hour - 3 * 3_600, seconds: 600, coveredSeconds: 600 },
    { timestamp: hour - 2 * 3_600, seconds: 3_600, coveredSeconds: 3_599 },
    { timestamp: hour - 3_600, seconds: 3_600, coveredSeconds: 0 },
    { timestamp: hour, seconds: 100, coveredSeconds: 100 },
  ];
  const cells = stripOf(toMeasured(coverage({ hours }), range, 0));
  expect(cells).toHaveLength(24);
  expect(cells.slice(-5).map(({ grade }) => grade)).toEqual(['unknown', 'whole', 'partly', 'none', 'whole']);
  expect(cells.at(-3)?.text).toBe('99.97 %');
  expect(describeStrip(cells)).toBe('Last 24 hours: 2 hours complete, 1 partly, 1 without reports, 20 not measured');
});

test('availability: streams are found by every word of a search', () => {
  const streams = [stream('BTC'), stream('ETH'), stream('WETH')];
  const found = (text: string) => searchStreams(streams, text).map(({ baseAsset }) => baseAsset);
  expect([found(''), found(' eth '), found('coin weth'), found('0xbtc'), found('none')]).toEqual([
    ['BTC', 'ETH', 'WETH'],
    ['ETH', 'WETH'],
    ['WETH'],
    ['BTC'],
    [],
  ]);
});

test('availability: unknown values are last in either direction, equal ones by pair', () => {
  const streams = [stream('D'), stream('C'), stream('B'), stream('A', { status: 'testing' })];
  const measured = new Map([
    ['0xA', toMeasured(coverage({ newestMs: 99_000, gapCount: 2 }), range, 100_000)],
    ['0xB', toMeasured(coverage({ newestMs: 40_000, gapCount: 2 }), range, 100_000)],
    ['0xC', toMeasured(coverage({ newestMs: 101_000 }), range, 100_000)],
  ]);
  const sorted = (raw: string) =>
    sortByAvailability(streams, readAvailabilityOrder(raw), (feedId) => measured.get(feedId))
      .map(({ baseAsset }) => baseAsset)
      .join('');
  expect(['stream', '-stream', 'lag', '-lag', '-gaps', '-status', 'nonsense'].map(sorted)).toEqual([
    'ABCD',
    'DCBA',
    'CABD',
    'BACD',
    'ABCD',
    'ABCD',
    'ABCD',
  ]);
});

test('availability: a click on a head sorts by it, the worst first, and another reverses it', () => {
  const first = toggleAvailabilityOrder(readAvailabilityOrder(null), 'lag');
  expect([writeAvailabilityOrder(first), writeAvailabilityOrder(toggleAvailabilityOrder(first, 'lag'))]).toEqual([
    '-lag',
    'lag',
  ]);
  expect(writeAvailabilityOrder(toggleAvailabilityOrder(first, 'availability'))).toBe('availability');
});

test('availability: an order or page that the address has wrong is named', () => {
  const texts = (query: string) => availabilityProblems(new URLSearchParams(query), 3).map(({ text }) => text);
  expect(['', 'q=btc&sort=-lag&page=3', 'page=4', 'page=x&sort=price'].map(texts)).toEqual([
    [],
    [],
    ['page must be from 1 to 3.'],
    [
      'sort must be stream, status, lag, availability, gaps, longest, or one of them after a minus.',
      'page must be from 1 to 3.',
    ],
  ]);
});
