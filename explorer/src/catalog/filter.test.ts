import { expect, test } from 'vitest';
import { catalogEntry as entry } from '../state/catalog-entry.fixture.ts';
import {
  activeFilters,
  chosenOf,
  countRows,
  dateFilterNames,
  filterLabels,
  filterValuesOf,
  nameFilterNames,
  readSelection,
  selectStreams,
  toggleValue,
  toSearchable,
  withoutFilters,
  withValue,
} from './filter.ts';

const ether = entry({});
const apple = entry({
  feedId: `0x000b${'a'.repeat(60)}`,
  name: 'AAPL/USD-EquityPrice',
  assetName: 'Apple',
  baseAsset: 'AAPL',
  assetClass: 'Equities',
  feedType: 'Equities',
  createdAt: '2025-06-02T00:00:00.000000Z',
});
const ended = entry({
  feedId: `0x0002${'b'.repeat(60)}`,
  name: 'LUNA/USD-CexPrice',
  assetName: 'Terra',
  baseAsset: 'LUNA',
  status: 'decommissioned',
  decommissionedAt: '2025-01-31T08:00:00.000000Z',
});
const secret = entry({ feedId: `0x0004${'c'.repeat(60)}`, name: 'XAU/USD', assetName: 'Gold', baseAsset: 'XAU' });
const all = [ether, apple, ended, secret];

const from = {
  streams: all.map(toSearchable),
  hidden: new Set([secret.feedId]),
  watchlist: new Set([apple.feedId, secret.feedId]),
};

const select = (query: string): readonly string[] =>
  selectStreams(from, readSelection(new URLSearchParams(query))).map(({ baseAsset }) => baseAsset);

test('catalog filter: hidden streams are listed only with hidden=true', () => {
  expect(select('')).toEqual(['ETH', 'AAPL', 'LUNA']);
  expect(select('hidden=true')).toEqual(['ETH', 'AAPL', 'LUNA', 'XAU']);
  expect(select('hidden=false')).toEqual(['ETH', 'AAPL', 'LUNA']);
});

test('catalog filter: names in any case, values of one filter are alternatives, all filters must match', () => {
  expect(select('base_asset=eth,aapl')).toEqual(['ETH', 'AAPL']);
  expect(select('base_asset=ETH,LUNA&status=Live')).toEqual(['ETH']);
  expect(select('asset_class=Equities')).toEqual(['AAPL']);
});

test('catalog filter: only the watchlist, together with the other filters', () => {
  expect(select('watchlist=true')).toEqual(['AAPL']);
  expect(select('watchlist=true&hidden=true')).toEqual(['AAPL', 'XAU']);
  expect(select('watchlist=true&q=ether')).toEqual([]);
  expect(select('watchlist=1')).toEqual(['ETH', 'AAPL', 'LUNA']);
  const query = new URLSearchParams('watchlist=true&sort=price');
  expect(activeFilters(query, filterValuesOf(all)).map(({ label }) => label)).toEqual(['Watchlist']);
  expect(withoutFilters(query).toString()).toBe('sort=price');
});

test('catalog filter: the number beside a value is the number of rows that choosing it gives', () => {
  for (const query of ['', 'hidden=true', 'q=usd', 'status=live', 'watchlist=true', 'asset_class=crypto&status=live']) {
    const counts = countRows(from, readSelection(new URLSearchParams(query)));
    for (const name of nameFilterNames)
      for (const { value } of filterValuesOf(all)[name]) {
        const chosen = withValue(new URLSearchParams(query), name, value.toLowerCase());
        expect([query, name, value, counts.of(name, value)]).toEqual([
          query,
          name,
          value,
          select(chosen.toString()).length,
        ]);
      }
  }
  expect(countRows(from, readSelection(new URLSearchParams('q=usd'))).hidden).toBe(1);
  expect(countRows(from, readSelection(new URLSearchParams('status=decommissioned'))).hidden).toBe(0);
});

test('catalog filter: days are strict on both sides', () => {
  expect(select('created_after=2025-06-01')).toEqual(['AAPL']);
  expect(select('created_after=2025-06-02')).toEqual([]);
  expect(select('decommissioned_before=2025-02-01')).toEqual(['LUNA']);
  expect(select('decommissioned_before=2025-01-31')).toEqual([]);
});

test('catalog filter: search covers names, assets and feed IDs, and every word must match', () => {
  expect(select('q=appl')).toEqual(['AAPL']);
  expect(select('q=ETH/usd')).toEqual(['ETH']);
  expect(select('q=0x000baaaa')).toEqual(['AAPL']);
  expect(select('q=usd+terra')).toEqual(['LUNA']);
  expect(select('q=usd+nothing')).toEqual([]);
});

test('catalog filter: a malformed filter is ignored and named, the others apply', () => {
  const selection = readSelection(new URLSearchParams('created_after=soon&status=live&base_asset=a&base_asset=b'));
  expect(selection.problems).toEqual([
    { name: 'base_asset', text: 'base_asset is given 2 times, expected once.' },
    { name: 'created_after', text: 'created_after is "soon", expected a date, YYYY-MM-DD.' },
  ]);
  expect(select('created_after=soon&status=live')).toEqual(['ETH', 'AAPL']);
});

test('catalog filter: the values of a filter, the most frequent first', () => {
  expect(filterValuesOf(all).asset_class).toEqual([
    { value: 'Crypto', count: 3 },
    { value: 'Equities', count: 1 },
  ]);
});

test('catalog filter: a value is added and removed again', () => {
  const once = toggleValue(new URLSearchParams('q=x'), 'asset_class', 'Crypto');
  expect(once.toString()).toBe('q=x&asset_class=crypto');
  const twice = toggleValue(once, 'asset_class', 'Equities');
  expect(chosenOf(twice, 'asset_class')).toEqual(['crypto', 'equities']);
  expect(toggleValue(twice, 'asset_class', 'CRYPTO').get('asset_class')).toBe('equities');
  expect(toggleValue(once, 'asset_class', 'Crypto').toString()).toBe('q=x');
});

test('catalog filter: clearing keeps the order', () => {
  const query = new URLSearchParams('q=x&sort=-price&status=live&created_after=2025-01-01&hidden=true');
  expect(withoutFilters(query).toString()).toBe('sort=-price');
  expect(withValue(query, 'q', '').has('q')).toBe(false);
});

test('catalog filter: what is on has a chip each, spelled as in the catalog', () => {
  const query = new URLSearchParams('asset_class=crypto,equities&created_after=2025-01-01&hidden=true&sort=age');
  expect(activeFilters(query, filterValuesOf(all)).map(({ label }) => label)).toEqual([
    'Asset class: Crypto',
    'Asset class: Equities',
    'Created after 2025-01-01',
    'Hidden streams',
  ]);
  expect(activeFilters(query, filterValuesOf(all))[0]?.without.get('asset_class')).toBe('equities');
});

test('catalog filter: what is ignored has no chip', () => {
  const query = new URLSearchParams('status=live&status=testing&created_after=soon&hidden=maybe&asset_class=crypto');
  expect(readSelection(query).problems.map(({ name }) => name)).toEqual(['status', 'created_after', 'hidden']);
  expect(activeFilters(query, filterValuesOf(all)).map(({ label }) => label)).toEqual(['Asset class: Crypto']);
});

test('catalog filter: a value that is given twice has one chip, which removes it', () => {
  const query = new URLSearchParams('status=live,LIVE,testing,live');
  const chips = activeFilters(query, filterValuesOf(all));
  expect(chips.map(({ label }) => label)).toEqual(['Status: live', 'Status: testing']);
  expect(chips[0]?.without.toString()).toBe('status=testing');
  expect(chosenOf(query, 'status')).toEqual(['live', 'testing']);
});

test('catalog filter: a value that no stream has is spelled as in the address, also after another was removed', () => {
  const chips = activeFilters(new URLSearchParams('base_asset=wstETH,LunA'), filterValuesOf(all));
  expect(chips.map(({ label }) => label)).toEqual(['Base asset: wstETH', 'Base asset: LUNA']);
  expect(chips[1]?.without.get('base_asset')).toBe('wstETH');
});

test('catalog filter: a filter that is ignored has no chosen value, and choosing one replaces it', () => {
  for (const text of ['status=live,', 'status=live&status=testing', 'status=']) {
    const query = new URLSearchParams(text);
    expect(chosenOf(query, 'status'), text).toEqual([]);
    expect(toggleValue(query, 'status', 'live').toString(), text).toBe('status=live');
  }
});

test('catalog filter: every filter of the API is on the page', () => {
  expect([...nameFilterNames, ...dateFilterNames, 'hidden'].sort()).toEqual(
    [
      'asset_class',
      'attribute_type',
      'base_asset',
      'created_after',
      'created_before',
      'decommissioned_after',
      'decommissioned_before',
      'expected_decommission_after',
      'expected_decommission_before',
      'feed_type',
      'hidden',
      'network_type',
      'quote_asset',
      'status',
    ].sort(),
  );
  expect(Object.keys(filterLabels)).toHaveLength(14);
});

test('catalog filter: watchlist is true in any case; what is neither true nor false is a problem', () => {
  const selectionOf = (text: string) => readSelection(new URLSearchParams(text));
  expect(selectionOf('watchlist=TRUE').isWatched).toBe(true);
  expect([selectionOf('watchlist=False').isWatched, selectionOf('watchlist=False').problems]).toEqual([false, []]);
  expect([selectionOf('watchlist=yes').isWatched, selectionOf('watchlist=yes').problems]).toEqual([
    false,
    [{ name: 'watchlist', text: 'watchlist must be true or false.' }],
  ]);
});
