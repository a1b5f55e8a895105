// The catalog page, used as a person does, in real Chromium on the real demo. Responses that the demo's catalog cannot give are mocked.
import { type CatalogEntry, dateFilters, nameFilters } from '@sealpost/protocol';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  cellsOf,
  count,
  exact,
  expectPairs,
  expectSearch,
  fill,
  head,
  link,
  manyStreams,
  pairs,
  poll,
  pressWithinFrame,
  pricesOf,
  ready,
  search,
  tick,
  watchRequests,
} from './catalog-page.ts';
import { type ExplorerWorld, openExplorerTimeoutMs, openExplorerWorld, testTimeoutMs as timeout } from './world.ts';

let world: ExplorerWorld;
let demo: readonly CatalogEntry[];
beforeAll(async () => {
  world = await openExplorerWorld();
  const response = await fetch(`${world.url}/api/v1/discovery`);
  demo = ((await response.json()) as { readonly feeds: readonly CatalogEntry[] }).feeds; // as the API documents
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

/** Answers the request for the catalog; everything else comes from the demo. */
const serveCatalog =
  (feeds: () => readonly CatalogEntry[]) =>
  (page: Page): Promise<unknown> =>
    page.route('**/api/v1/discovery*', (route) => route.fulfill({ json: { feeds: feeds() } }));

/** The demo's catalog with changes to the streams of a pair. */
const changed = (pair: string, changes: Partial<CatalogEntry>): readonly CatalogEntry[] =>
  demo.map((stream) => (`${stream.baseAsset}/${stream.quoteAsset}` === pair ? { ...stream, ...changes } : stream));

type FilterCase = {
  readonly set: (page: Page) => Promise<unknown>;
  readonly query: string;
  readonly pairs: readonly string[];
};

/** Every filter of the specification: how to set it, the resulting query, and the pairs that match. */
const filters: Readonly<Record<string, FilterCase>> = {
  status: { set: tick('Status', 'testing'), query: 'status=testing', pairs: ['HYPE/USD'] },
  asset_class: { set: tick('Asset class', 'Forex'), query: 'asset_class=forex', pairs: ['EUR/USD', 'USD/JPY'] },
  feed_type: {
    set: tick('Feed type', 'Crypto-DEX'),
    query: 'feed_type=crypto-dex',
    pairs: ['AERO/USD', 'CAKE/USD'],
  },
  attribute_type: { set: tick('Attribute', 'TWAP'), query: 'attribute_type=twap', pairs: ['ETH/USD'] },
  base_asset: { set: fill('Base asset', 'xau'), query: 'base_asset=xau', pairs: ['XAU/USD'] },
  quote_asset: { set: tick('Quote asset', 'JPY'), query: 'quote_asset=jpy', pairs: ['USD/JPY'] },
  network_type: { set: tick('Network', 'mainnet'), query: 'network_type=mainnet', pairs: ['AVAX/USD'] },
  created_after: {
    set: fill('Created after', '2025-08-31'),
    query: 'created_after=2025-08-31',
    pairs: ['BTC/USD', 'HYPE/USD'],
  },
  created_before: {
    set: fill('Created before', '2024-01-16'),
    query: 'created_before=2024-01-16',
    pairs: ['BTC/USD', 'ETH/USD', 'LINK/USD'],
  },
  expected_decommission_after: {
    set: fill('Decommission expected after', '2030-06-27'),
    query: 'expected_decommission_after=2030-06-27',
    pairs: ['LTC/USD'],
  },
  expected_decommission_before: {
    set: fill('Decommission expected before', '2030-06-29'),
    query: 'expected_decommission_before=2030-06-29',
    pairs: ['LTC/USD'],
  },
  decommissioned_after: {
    set: fill('Decommissioned after', '2025-05-12'),
    query: 'decommissioned_after=2025-05-12',
    pairs: ['FTM/USD'],
  },
  decommissioned_before: {
    set: fill('Decommissioned before', '2025-05-14'),
    query: 'decommissioned_before=2025-05-14',
    pairs: ['FTM/USD'],
  },
};

test('filters: every filter of the API is tested here', () => {
  const ofDates = Object.keys(dateFilters).flatMap((prefix) => [`${prefix}_after`, `${prefix}_before`]);
  expect(Object.keys(filters).sort()).toEqual([...Object.keys(nameFilters), ...ofDates].sort());
});

test(
  'filters: each of them, set by hand, is in the address, comes back with it, and goes with its chip',
  async () => {
    const prepare = serveCatalog(() => changed('AVAX/USD', { networkType: 'mainnet' }));
    const { page } = await world.openPage({ prepare });
    await ready(page);
    await page.getByRole('button', { name: /^Filters/ }).click();
    const chips = page.getByRole('button', { name: /^Remove filter: / });
    const told: string[] = [];
    for (const { set, query, pairs: expected } of Object.values(filters)) {
      await set(page);
      await expectPairs(page, expected);
      await expectSearch(page, `?${query}`);
      await expect.poll(() => count(page).textContent()).toBe(`${expected.length} of 26`);
      told.push(...(await chips.allTextContents()));
      await chips.click();
      await expect.poll(() => count(page).textContent(), poll).toBe('26');
      await expectSearch(page, '');
    }
    // One load for all of them: each page takes a second of CPU. The last one left shows what it filters.
    const queries = Object.values(filters).map(({ query }) => query);
    await page.goto(`${world.url}/?${queries.join('&')}`);
    await expect.poll(async () => (await chips.allTextContents()).sort(), poll).toEqual(told.sort());
    await page.getByRole('heading', { name: 'No matching streams' }).waitFor();
    const last = Object.values(filters).at(-1);
    for (let left = queries.length; left > 1; left -= 1) {
      await chips.first().click();
      await expect.poll(() => chips.count(), poll).toBe(left - 1);
    }
    await expectSearch(page, `?${last?.query}`);
    await expectPairs(page, last?.pairs ?? []);
  },
  timeout,
);

test(
  'filters: hidden streams are shown to entitled accounts that include them',
  async () => {
    const { page } = await world.openPage({ path: '/?q=sui', signedIn: true });
    await page.getByRole('heading', { name: 'No matching streams' }).waitFor();
    await page.getByRole('button', { name: /^Filters/ }).click();
    await page.getByLabel('Include hidden streams').check();
    await expectPairs(page, ['SUI/USD']);
    await expectSearch(page, '?q=sui&hidden=true');
    await page.reload();
    await expectPairs(page, ['SUI/USD']);
    const { page: anonymous } = await world.openPage({ path: '/?q=sui&hidden=true' });
    await anonymous.getByRole('heading', { name: 'No matching streams' }).waitFor();
  },
  timeout,
);

test(
  'filters: values of one filter add streams, more filters remove streams, all are cleared at once, and Escape closes panels',
  async () => {
    const { page } = await world.openPage({ path: '/?sort=-pair' });
    await ready(page);
    await page.getByRole('button', { name: /^Filters/ }).click();
    await tick('Asset class', 'Forex')(page);
    await tick('Asset class', 'Equities')(page);
    await expectPairs(page, ['USD/JPY', 'TSLA/USD', 'EUR/USD', 'AAPL/USD']);
    await fill('Created after', '2025-05-01')(page);
    await expectPairs(page, ['TSLA/USD', 'AAPL/USD']);
    await expectSearch(page, '?sort=-pair&asset_class=forex,equities&created_after=2025-05-01');
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await expectSearch(page, '?sort=-pair');
    await expect.poll(() => count(page).textContent()).toBe('26');
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    expect(await focused()).toBe('Filters');
    for (const [name, box] of [
      ['Columns', 'Schema'],
      ['Filters', 'Forex'],
    ] as const) {
      await page.getByRole('button', { name }).click();
      await page.getByRole('checkbox', { name: box }).first().press('Escape');
      await expect.poll(() => page.getByRole('checkbox').count()).toBe(0);
      expect(await focused()).toBe(name);
    }
  },
  timeout,
);

test(
  'filters: an invalid one is named and ignored, the others apply',
  async () => {
    const { page } = await world.openPage({ path: '/?created_after=yesterday&asset_class=forex' });
    await expectPairs(page, ['EUR/USD', 'USD/JPY']);
    const told = await page.getByRole('alert').textContent();
    expect(told).toMatch(/created_after.*yesterday/);
    await page.getByRole('button', { name: 'Remove filter', exact: true }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await expectSearch(page, '?asset_class=forex');
  },
  timeout,
);

test(
  'search: names, assets and feed IDs, every word, and a way to clear it if nothing matches',
  async () => {
    const { page } = await world.openPage();
    await ready(page);
    const box = page.getByRole('searchbox');
    await box.fill('Bitcoin');
    await expectPairs(page, ['BTC/USD', 'BTC/USD', 'BTC/USD']);
    await expectSearch(page, '?q=Bitcoin');
    await box.fill('usd forexprice');
    await expectPairs(page, ['EUR/USD', 'USD/JPY']);
    const gold = demo.find(({ baseAsset }) => baseAsset === 'XAU');
    const part = gold?.feedId.slice(20, 40) ?? '';
    await box.fill(part);
    await expectPairs(page, ['XAU/USD']);
    await expectSearch(page, `?q=${part}`);
    await page.reload();
    await expectPairs(page, ['XAU/USD']);
    await box.fill('no such thing');
    await page.getByRole('heading', { name: 'No matching streams' }).waitFor();
    await page.getByRole('button', { name: 'Clear search' }).click();
    await expect.poll(() => count(page).textContent(), poll).toBe('26');
    await expect.poll(() => box.inputValue()).toBe('');
    expect(await box.evaluate((element) => element === document.activeElement)).toBe(true);
    await box.fill('no such thing');
    await page.getByRole('button', { name: /^Watchlist/ }).click();
    await page.getByRole('heading', { name: 'Your watchlist is empty' }).waitFor();
  },
  timeout,
);

/** The first pair after one click on a column head, and after two. */
const firstOf: Readonly<Record<string, readonly [column: string, ascending: string, descending: string]>> = {
  Pair: ['pair', 'AAPL/USD', 'XRP/USD'],
  Status: ['status', 'LTC/USD', 'FTM/USD'],
  'Asset class': ['class', 'XAU/USD', 'AAPL/USD'],
  'Feed type': ['type', 'XAU/USD', 'EUR/USD'],
  Attribute: ['attribute', 'AVAX/USD', 'ETH/USD'],
  Schema: ['schema', 'ETH/USD', 'BTC/USD'],
  'Market hours': ['hours', 'AAPL/USD', 'AERO/USD'],
};

test(
  'sort: by each column head, both directions, with aria-sort, and kept in the address',
  async () => {
    const { page } = await world.openPage({ path: '/?sort=feed' });
    await ready(page);
    const ids = demo.map(({ feedId }) => feedId).sort();
    const firstId = () => page.locator('[data-row="0"] code').getAttribute('title');
    await expect.poll(() => firstId()).toBe(ids[0]);
    await head(page, 'Feed ID').getByRole('button').click();
    await expect.poll(firstId, poll).toBe(ids.at(-1));
    for (const [label, [column, ascending, descending]] of Object.entries(firstOf)) {
      await head(page, label).getByRole('button').click();
      await expect.poll(async () => [label, (await pairs(page))[0]], poll).toEqual([label, ascending]);
      await expect.poll(() => head(page, label).getAttribute('aria-sort')).toBe('ascending');
      await expectSearch(page, column === 'pair' ? '' : `?sort=${column}`);
      await head(page, label).getByRole('button').click();
      await expect.poll(async () => [label, (await pairs(page))[0]], poll).toEqual([label, descending]);
      await expect.poll(() => head(page, label).getAttribute('aria-sort')).toBe('descending');
      await expectSearch(page, `?sort=-${column}`);
    }
    await page.reload();
    await expect.poll(async () => (await pairs(page))[0], poll).toBe('AERO/USD');
  },
  timeout,
);

test(
  'sort: by price in both directions: exact, with streams without a price at the end',
  async () => {
    const { page } = await world.openPage({ path: '/?sort=price&base_asset=BTC,DOGE,FTM,XAU,ETH', signedIn: true });
    const isSorted = (isInOrder: (a: bigint, b: bigint) => boolean) =>
      expect
        .poll(async () => {
          const prices = (await pricesOf(page)).map(exact);
          const known = prices.filter((price) => price !== undefined);
          const isSortedNow = known.every((price, i) => i === 0 || isInOrder(known[i - 1] ?? 0n, price));
          return [known.length, isSortedNow, prices.at(-1)];
        }, poll)
        .toEqual([7, true, undefined]);
    await isSorted((a, b) => a <= b);
    await head(page, 'Latest price').getByRole('button').click();
    await expect.poll(() => search(page), poll).toContain('sort=-price');
    await isSorted((a, b) => a >= b);
  },
  timeout,
);

test(
  'sort: by age, the newest first',
  async () => {
    const { page } = await world.openPage({ path: '/', signedIn: true });
    await head(page, 'Age').getByRole('button').click();
    await expectSearch(page, '?sort=age');
    // Streams of every second come before those that report once a day.
    await expect
      .poll(async () => (await cellsOf(page, 'age')).slice(0, 5).filter((age) => /^[0-9]+ s$/.test(age)).length, poll)
      .toBe(5);
    expect((await pairs(page)).slice(0, 5).filter((pair) => /SOFR|NWTF|NWBF/.test(pair))).toEqual([]);
  },
  timeout,
);

test(
  'keyboard: / searches, arrows move, Enter opens, and going back restores the position and focuses the row',
  async () => {
    const { page } = await world.openPage({ path: '/?network_type=testnet' });
    await ready(page);
    const focused = (): Promise<string | null> => page.evaluate(() => document.activeElement?.textContent ?? null);
    const rowOfFocus = (): Promise<string | undefined> =>
      page.evaluate(() => document.activeElement?.closest<HTMLElement>('[data-row]')?.dataset.row);
    await page.keyboard.press('/');
    await expect.poll(() => page.getByRole('searchbox').evaluate((box) => box === document.activeElement)).toBe(true);
    await page.keyboard.type('u');
    await expect.poll(() => page.getByRole('searchbox').inputValue()).toBe('u');
    await page.keyboard.press('ArrowDown');
    await expect.poll(rowOfFocus, poll).toBe('0');
    await page.keyboard.press('ArrowUp');
    await expect.poll(() => page.getByRole('searchbox').evaluate((box) => box === document.activeElement)).toBe(true);
    await page.getByRole('searchbox').fill('');
    await pressWithinFrame(page, 'ArrowDown', 3);
    for (let i = 0; i < 18; i += 1) await page.keyboard.press('ArrowDown');
    await expect.poll(rowOfFocus, poll).toBe('20');
    const [text, scrollY] = [await focused(), await page.evaluate(() => window.scrollY)];
    expect(scrollY).toBeGreaterThan(100);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/streams\/0x[0-9a-f]{64}$/);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.goBack();
    await expect.poll(rowOfFocus, poll).toBe('20');
    await expect.poll(() => page.evaluate(() => window.scrollY), poll).toBe(scrollY);
    expect(search(page)).toBe('?network_type=testnet');
    await expect.poll(() => link(page, 20).textContent()).toBe(text);
    await page.getByRole('searchbox').fill('tesla');
    await page.getByRole('searchbox').press('Enter');
    await page.waitForURL(`${world.url}/streams/${demo.find(({ baseAsset }) => baseAsset === 'TSLA')?.feedId}`);
  },
  timeout,
);

const noBox = { x: 0, y: 0, width: 0, height: 0 };

test(
  'feed ID: copied from the row in full, without opening it',
  async () => {
    const { page } = await world.openPage();
    await ready(page);
    await page.locator('[data-row="2"]').getByRole('button', { name: 'Copy feed ID' }).click();
    await page.locator('[data-row="2"] .copy.done').waitFor();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(demo[2]?.feedId);
    expect(page.url()).toBe(`${world.url}/`);
    const { x, y, width, height } = (await page.locator('[data-row="2"] .col-class').boundingBox()) ?? noBox;
    await page.mouse.click(x + width / 2, y + height / 2); // anywhere else in the row opens it
    await page.waitForURL(`${world.url}/streams/${demo[2]?.feedId}`);
  },
  timeout,
);

test(
  'phone: cards instead of a table, sorted with a select box, filtered, opened by a tap',
  async () => {
    const { page, expectAccessible } = await world.openPage({ viewport: 'phone', theme: 'dark', signedIn: true });
    await page.locator('.catalog-cards li').first().waitFor();
    expect(await page.getByRole('table').count()).toBe(0);
    await page.getByLabel('Sort by').selectOption({ label: 'Schema ↓' });
    await expectSearch(page, '?sort=-schema');
    await expect.poll(async () => (await pairs(page))[0], poll).toBe('BTC/USD');
    await page.getByRole('button', { name: /^Filters/ }).tap();
    await tick('Asset class', 'Forex')(page);
    await expectSearch(page, '?sort=-schema&asset_class=forex');
    await expectAccessible();
    const isTooWide = () => document.documentElement.scrollWidth > document.documentElement.clientWidth;
    expect(await page.evaluate(isTooWide)).toBe(false);
    await page.getByRole('button', { name: /^Filters/ }).tap();
    await expectPairs(page, ['EUR/USD', 'USD/JPY']); // they were out of view
    await page.locator('.catalog-cards li').nth(1).tap();
    await page.waitForURL(/\/streams\/0x0008/);
  },
  timeout,
);

test(
  'anonymous: the catalog without prices, and no request for reports or feeds',
  async () => {
    let requests: ReturnType<typeof watchRequests> | undefined;
    const { page } = await world.openPage({ prepare: async (opening) => (requests = watchRequests(opening)) });
    await ready(page);
    await page.getByRole('button', { name: 'Sign in for live prices' }).waitFor();
    expect(await head(page, 'Latest price').count()).toBe(0);
    expect(await head(page, 'Age').count()).toBe(0);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('End'); // other streams come into view
    await link(page, 25).waitFor();
    await page.getByRole('link', { name: 'Status' }).first().click();
    await page
      .getByText(/^(Ready|Not ready)$/)
      .first()
      .waitFor();
    expect(requests?.paths).toContain('/api/v1/discovery');
    expect(requests?.paths.filter((path) => /\/reports|\/feeds/.test(path))).toEqual([]);
  },
  timeout,
);

test(
  'live: one connection delivers the prices of every row in view, even after scrolling',
  async () => {
    let requests: ReturnType<typeof watchRequests> | undefined;
    const { page } = await world.openPage({
      signedIn: true,
      prepare: async (opening) => (requests = watchRequests(opening)),
    });
    const priceOf = (row: number) => page.locator(`[data-row="${row}"] .col-price .exact`);
    await priceOf(3).waitFor();
    await page.locator('.catalog-head .pill', { hasText: 'Connected' }).waitFor();
    await expect.poll(() => requests?.open(), poll).toBe(1);
    const before = await priceOf(3).textContent();
    await expect.poll(() => priceOf(3).textContent(), poll).not.toBe(before);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('End');
    await priceOf(24).waitFor();
    await page.keyboard.press('Home');
    await priceOf(0).waitFor();
    await expect.poll(() => requests?.open(), poll).toBe(1);
    // The previous connection ends when the next one delivers, so that nothing is lost in between.
    expect(Math.max(...(requests?.openedWith() ?? []))).toBeLessThanOrEqual(2);
  },
  timeout,
);

test(
  '2,000 streams: few rows exist at a time, and scroll, keyboard, search, filter and sort reach the last one',
  async () => {
    const { page, expectAccessible } = await world.openPage({
      signedIn: true,
      prepare: serveCatalog(() => manyStreams(demo)),
    });
    await ready(page);
    await expect.poll(() => count(page).textContent()).toBe('2,000');
    const last = page.locator('[data-row="1999"]');
    const rows = page.locator('[data-row]');
    const expectFewRows = async (): Promise<void> => expect(await rows.count()).toBeLessThan(40);
    await expectFewRows();
    await page.mouse.move(640, 500);
    for (let i = 0; i < 10; i += 1) {
      await page.mouse.wheel(0, 1_000);
      await page.evaluate(() => new Promise(requestAnimationFrame));
      await expectFewRows();
    }
    await expect.poll(() => page.evaluate(() => window.scrollY)).toBeGreaterThan(5_000);
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
    await last.waitFor();
    await expect.poll(() => last.locator('.pair').textContent()).toBe('Z1973/USD');
    await expect.poll(() => last.getAttribute('aria-rowindex')).toBe('2001');
    // Rows that scroll by quickly show name and price; once scrolling stops, they show all.
    await expect.poll(async () => (await rows.locator('.col-feed code').count()) - (await rows.count()), poll).toBe(0);
    await expectFewRows();
    await expectAccessible();
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('End');
    await expect.poll(() => last.locator('a').evaluate((row) => row === document.activeElement), poll).toBe(true);
    await head(page, 'Pair').getByRole('button').click();
    await expect.poll(async () => (await pairs(page)).includes('Z1973/USD'), poll).toBe(false);
    await page.evaluate(() => window.scrollTo(0, 0));
    await expect.poll(async () => (await pairs(page))[0], poll).toBe('Z1973/USD');
    await page.getByRole('searchbox').pressSequentially('asset 1973');
    await expectPairs(page, ['Z1973/USD']);
    await page.getByRole('searchbox').fill('');
    await page.getByRole('button', { name: /^Filters/ }).click();
    await tick('Status', 'decommissioned')(page);
    await expect.poll(() => count(page).textContent(), poll).toBe('77 of 2,000');
    await expect.poll(() => rows.count(), poll).toBe(77);
  },
  timeout,
);
