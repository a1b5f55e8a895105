import type { CatalogEntry } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import type { Day } from '../state/days.ts';
import type { LiveReport } from '../state/live-prices.ts';
import { orderProblem, readOrder, sortStreams, toggleOrder } from './sort.ts';

const stream = (feedId: string, change: Partial<CatalogEntry> = {}): CatalogEntry =>
  ({
    feedId,
    baseAsset: feedId,
    quoteAsset: 'USD',
    status: 'live',
    expectedDecommissionAt: null,
    ...change,
  }) as CatalogEntry; // what is sorted by

const prices: Readonly<Record<string, bigint>> = { a: 9n, b: 10n, d: 2n ** 100n + 1n, e: 2n ** 100n };
const values = {
  latest: (feedId: string): LiveReport | undefined => {
    const price = prices[feedId];
    if (price === undefined) return undefined;
    const decoded = { price, bid: price, ask: price + 1n };
    return { decoded, observationsMs: Number(price % 100n) } as LiveReport; // what is sorted by
  },
  day: (feedId: string): Day | undefined => (feedId === 'e' ? undefined : ({ first: 3n } as Day)), // as above
};

const sorted = (query: string, streams: readonly CatalogEntry[]): string =>
  sortStreams(streams, readOrder(new URLSearchParams(query)), values)
    .map(({ feedId }) => feedId)
    .join('');

const five = ['c', 'e', 'd', 'b', 'a'].map((feedId) => stream(feedId));

test('catalog order: by pair by default, and if the address is invalid', () => {
  expect(sorted('', five)).toBe('abcde');
  expect(sorted('sort=-pair', five)).toBe('edcba');
  expect(sorted('sort=constructor', five)).toBe('abcde');
});

test('catalog order: prices are compared exactly, streams without one come last in either direction', () => {
  expect(sorted('sort=price', five)).toBe('abedc');
  expect(sorted('sort=-price', five)).toBe('debac');
});

test('catalog order: schema versions by number, not by text', () => {
  const streams = [stream('x', { schemaVersion: 'V11' }), stream('y', { schemaVersion: 'V3' })];
  expect(sorted('sort=schema', streams)).toBe('yx');
});

test('catalog order: by status, live ones that end first come first', () => {
  const streams = [
    stream('over', { status: 'decommissioned' }),
    stream('test', { status: 'testing' }),
    stream('live'),
    stream('later', { expectedDecommissionAt: '2030-01-01T00:00:00.000000Z' }),
    stream('soon', { expectedDecommissionAt: '2027-01-01T00:00:00.000000Z' }),
  ];
  expect(sorted('sort=status', streams)).toBe('soonlaterlivetestover');
});

test('catalog order: a second click reverses it, and the default order is not in the address', () => {
  const once = toggleOrder(new URLSearchParams('q=x'), 'price');
  expect(once.toString()).toBe('q=x&sort=price');
  expect(toggleOrder(once, 'price').toString()).toBe('q=x&sort=-price');
  expect(toggleOrder(once, 'pair').toString()).toBe('q=x');
  expect(toggleOrder(new URLSearchParams(), 'pair').toString()).toBe('sort=-pair');
});

test('catalog order: by change in percent, and by spread in basis points; unknown ones last', () => {
  expect(sorted('sort=-change', five)).toBe('dbace');
  expect(sorted('sort=change', five)).toBe('abdce');
  expect(sorted('sort=-spread', five)).toBe('abedc');
  expect(sorted('sort=trend', five)).toBe('abcde'); // a line has no order
});

test('catalog order: in any case, and an unknown column is a problem', () => {
  expect(readOrder(new URLSearchParams('sort=-Price'))).toEqual({ column: 'price', descending: true });
  expect(orderProblem(new URLSearchParams('sort=-Price'))).toBeUndefined();
  expect(orderProblem(new URLSearchParams())).toBeUndefined();
  expect(readOrder(new URLSearchParams('sort=-nothing'))).toEqual({ column: 'pair', descending: false });
  expect(orderProblem(new URLSearchParams('sort=-nothing'))).toBe('there is no column "-nothing" to sort by.');
  const long = orderProblem(new URLSearchParams(`sort=${'x'.repeat(10_000)}`));
  expect(long).toBe(`there is no column "${'x'.repeat(40)}…" to sort by.`);
});
