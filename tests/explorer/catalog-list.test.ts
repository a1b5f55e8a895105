// What the list of streams offers beyond finding one: watchlist, columns, change, trend and spread, export; and that every row exists and keeps the
// focus. In real Chromium on the real demo.
import { readFileSync } from 'node:fs';
import type { CatalogEntry } from '@sealpost/protocol';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  count,
  exact,
  expectPairs,
  expectSearch,
  head,
  link,
  manyStreams,
  pairs,
  poll,
  pricesOf,
  ready,
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

const serveCatalog = (feeds: readonly CatalogEntry[]) => (page: Page) =>
  page.route('**/api/v1/discovery*', (route) => route.fulfill({ json: { feeds } }));

/** The accessible name of the focused element; `body` if nothing has the focus. */
const focused = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const { activeElement: element, body } = document;
    if (element === null || element === body) return 'body';
    return element.getAttribute('aria-label') ?? element.querySelector('.pair')?.textContent ?? element.id;
  });

const star = (page: Page, row: number) => page.locator(`[data-row="${row}"] .star`);
const feedIdOf = (pair: string): string | undefined =>
  demo.find(({ baseAsset, quoteAsset }) => `${baseAsset}/${quoteAsset}` === pair)?.feedId;

test(
  'watchlist: starred by pointer and key, kept in the browser, the same in all tabs, and the focus stays in the list',
  async () => {
    const { page, expectAccessible } = await world.openPage({ path: '/?base_asset=AVAX,BNB,DOGE' });
    await ready(page);
    await star(page, 0).click();
    await expect.poll(() => star(page, 0).getAttribute('aria-pressed')).toBe('true');
    await page.getByText('AVAX/USD added to the watchlist.').waitFor();
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => focused(page), poll).toBe('BNB/USD');
    await page.keyboard.press('s');
    await page.getByText('BNB/USD added to the watchlist.').waitFor();
    await page.getByRole('button', { name: /^Watchlist/ }).click();
    await expectSearch(page, '?base_asset=AVAX,BNB,DOGE&watchlist=true');
    await expectPairs(page, ['AVAX/USD', 'BNB/USD']);
    await page.reload();
    await expectPairs(page, ['AVAX/USD', 'BNB/USD']);
    const other = await page.context().newPage();
    await other.goto(`${world.url}/?watchlist=true`);
    await expectPairs(other, ['AVAX/USD', 'BNB/USD']);
    await star(page, 1).focus();
    await page.keyboard.press('Enter');
    await expectPairs(page, ['AVAX/USD']);
    await expectPairs(other, ['AVAX/USD']);
    await expect.poll(() => focused(page)).toBe('Watch AVAX/USD');
    await page.keyboard.press('s');
    await page.getByRole('heading', { name: 'Your watchlist is empty' }).waitFor();
    expect(await focused(page)).not.toBe('body');
    await expectAccessible();
    await page.getByRole('button', { name: 'Show all streams' }).press('Enter');
    await expect.poll(() => count(page).textContent(), poll).toBe('26');
    expect(await focused(page)).not.toBe('body');
  },
  timeout,
);

test(
  'filters: odd ones of an address have a chip that fits the page and goes; an ignored one is not chosen in the panel',
  async () => {
    const { page } = await world.openPage({
      path: `/?base_asset=${'wstX'.repeat(100)},btc,BTC&status=live,`,
      prepare: serveCatalog(demo),
    });
    const chips = page.getByRole('button', { name: /^Remove filter: / });
    await expect.poll(() => chips.count(), poll).toBe(2);
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    await page.setViewportSize({ width: 320, height: 640 });
    await expect.poll(overflow, poll).toBeLessThanOrEqual(0);
    await page.getByRole('button', { name: /^Filters/ }).click();
    const live = page.getByRole('group', { name: 'Status' }).getByRole('checkbox', { name: /^live/ });
    expect(await live.isChecked()).toBe(false);
    await live.check();
    await page.getByRole('button', { name: 'Remove filter: Status: live' }).waitFor();
    await page.getByRole('button', { name: /^Remove filter: Base asset: wstX/ }).click();
    await expect.poll(() => chips.allTextContents(), poll).toEqual(['Status: live', 'Base asset: BTC']);
  },
  timeout,
);

test(
  'focus: moves to the next chip, then to what takes their place, when chips are removed; a row that is scrolled away keeps it',
  async () => {
    const { page } = await world.openPage({
      path: '/?asset_class=crypto&status=live',
      prepare: serveCatalog(manyStreams(demo)),
    });
    await ready(page);
    const chips = page.getByRole('button', { name: /^Remove filter: / });
    await chips.first().press('Enter');
    await expect.poll(() => focused(page), poll).toBe('Remove filter: Asset class: Crypto');
    await chips.first().press('Enter');
    await expect.poll(() => chips.count(), poll).toBe(0);
    await expect.poll(() => page.evaluate(() => document.activeElement?.closest('main') !== null), poll).toBe(true);
    await link(page, 3).focus();
    const pair = await focused(page);
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
    await page.locator('[data-row="1999"]').waitFor();
    expect(await focused(page)).toBe(pair);
    await page.keyboard.press('ArrowDown'); // from the row with the focus, not from those in view
    await expect.poll(() => link(page, 4).evaluate((row) => row === document.activeElement), poll).toBe(true);
  },
  timeout,
);

test(
  'rows: up to 200 exist in full, with their first values; more than that exist around the view',
  async () => {
    const many = manyStreams(demo);
    const { page } = await world.openPage({ signedIn: true, prepare: serveCatalog(many.slice(0, 200)) });
    await ready(page);
    await expect.poll(() => page.locator('[data-row]').count(), poll).toBe(200);
    await expect.poll(async () => (await pricesOf(page)).filter((price) => price !== '').length, poll).toBe(25);
    await expect.poll(() => page.getByText('Z0173/USD', { exact: true }).count()).toBe(1);
    await page.getByRole('searchbox').fill('z01');
    await expect.poll(() => page.locator('[data-row]').count(), poll).toBe(74);
  },
  timeout,
);

test(
  'numbers beside filter values are the rows that choosing them gives',
  async () => {
    const { page } = await world.openPage({ path: '/?q=usd', signedIn: true });
    await ready(page);
    await page.getByRole('button', { name: /^Filters/ }).click();
    await tick('Status', 'live')(page);
    const box = page.getByRole('group', { name: 'Asset class', exact: true }).locator('label', { hasText: 'Forex' });
    await expect.poll(() => box.textContent()).toBe('Forex2');
    await box.click();
    await expect.poll(() => page.locator('[data-row]').count(), poll).toBe(2);
  },
  timeout,
);

test(
  'columns: chosen ones are kept in the browser; change, trend and spread come with few requests, and sort',
  async () => {
    let requests: ReturnType<typeof watchRequests> | undefined;
    const { page, expectAccessible } = await world.openPage({
      path: '/?base_asset=BTC,ETH,XAU,FTM',
      signedIn: true,
      prepare: async (opening) => (requests = watchRequests(opening)),
    });
    await page.locator('[data-row] .trend').nth(4).waitFor();
    await page
      .locator('[data-row] .col-spread', { hasText: /^[0-9.]+ bp$/ })
      .first()
      .waitFor();
    await expect
      .poll(() => page.locator('[data-row="0"] .col-change').textContent())
      .toMatch(/^[+−]?[0-9.]+ %since [0-9:]{5}$/);
    const bulk = requests?.paths.filter((path) => path === '/api/v1/reports/candles/bulk') ?? [];
    expect(bulk.length).toBeLessThanOrEqual(4);
    await page.getByText('Stream ended').waitFor();
    await head(page, 'Change 24 h').getByRole('button').click();
    await expectSearch(page, '?base_asset=BTC,ETH,XAU,FTM&sort=change');
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('checkbox', { name: 'Trend 24 h' }).uncheck();
    await page.getByRole('checkbox', { name: 'Schema' }).check();
    await expect.poll(() => head(page, 'Schema').count(), poll).toBe(1);
    expect(await head(page, 'Trend 24 h').count()).toBe(0);
    await expectAccessible('#columns');
    await page.reload();
    await expect.poll(() => head(page, 'Schema').count(), poll).toBe(1);
    for (const width of [1_024, 768, 320]) {
      await page.setViewportSize({ width, height: 800 });
      await ready(page);
      const isTooWide = () => document.documentElement.scrollWidth > document.documentElement.clientWidth;
      await expect.poll(async () => [width, await page.evaluate(isTooWide)]).toEqual([width, false]);
    }
    await expectAccessible();
  },
  timeout,
);

test(
  'a server without candles of many streams, and a stream without reports, are said in the rows',
  async () => {
    let asked = 0;
    const fantom = demo.map((stream) =>
      stream.baseAsset === 'FTM' ? { ...stream, status: 'live' as const, decommissionedAt: null } : stream,
    );
    const { page, allow } = await world.openPage({
      path: '/?base_asset=FTM,BTC',
      signedIn: true,
      prepare: async (opening) => {
        await serveCatalog(fantom)(opening);
        await opening.route('**/api/v1/reports/candles/bulk*', (route) => {
          asked += 1;
          return route.fulfill({ status: 404, json: { error: 'route_not_found', message: 'No such route.' } });
        });
      },
    });
    allow(/404/);
    const mark = page.locator('[data-row="3"] .state-mark', { hasText: 'No data yet' });
    await mark.waitFor();
    const middleOf = async (place: ReturnType<typeof page.locator>): Promise<number> => {
      const { y, height } = (await place.boundingBox()) ?? { y: 0, height: 0 };
      return y + height / 2;
    };
    expect(Math.abs((await middleOf(mark)) - (await middleOf(page.locator('[data-row="3"] .pill'))))).toBeLessThan(4);
    await page.locator('[title="This server does not offer candles of many streams."]').first().waitFor();
    await page.getByRole('searchbox').fill('bitcoin');
    await expectPairs(page, ['BTC/USD', 'BTC/USD', 'BTC/USD']);
    expect(asked).toBe(1);
  },
  timeout,
);

test(
  'a change and trend that cannot be loaded look different from none, and are loaded later',
  async () => {
    let isBroken = true;
    const { page, allow, expectAccessible } = await world.openPage({
      path: '/?base_asset=BTC',
      signedIn: true,
      prepare: (opening) =>
        opening.route('**/api/v1/reports/candles/bulk*', (route) =>
          isBroken
            ? route.fulfill({ status: 400, json: { error: 'invalid_parameter', message: 'Not now.' } })
            : route.continue(),
        ),
    });
    allow(/400/);
    const marks = page.getByRole('img', { name: 'Not loaded' });
    await expect.poll(() => marks.count(), poll).toBe(6); // change and trend of three streams
    expect(await marks.first().getAttribute('title')).toBe('Could not be loaded. Retrying every 15 s.');
    await expectAccessible('[data-row="0"]');
    isBroken = false;
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))); // as after 15 s
    await page.locator('[data-row] .trend').nth(2).waitFor();
    await expect.poll(() => marks.count(), poll).toBe(0);
  },
  timeout,
);

test(
  'order: by a live value, it is paused while a row has the focus, so that Enter opens the stream that was chosen',
  async () => {
    const { page } = await world.openPage({ path: '/?sort=age', signedIn: true });
    await page.locator('[data-row] .exact').nth(5).waitFor();
    await link(page, 3).focus();
    const chosen = await link(page, 3).getAttribute('href');
    await page.getByText('Order paused').waitFor();
    // From here on, the order by age would have changed.
    const order = await pairs(page);
    const ages = () => page.locator('[data-row] .col-age').allTextContents();
    const before = await ages();
    await expect.poll(async () => (await ages()).join() !== before.join(), poll).toBe(true);
    await page.keyboard.press('s');
    expect(await pairs(page)).toEqual(order);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${world.url}${chosen}`);
  },
  timeout,
);

test(
  'order: by a live value, the focus that Back returns does not pause it, follows its stream, and pauses it once a key is pressed',
  async () => {
    const { page } = await world.openPage({ path: '/?sort=age', signedIn: true });
    await page.locator('[data-row] .exact').nth(5).waitFor();
    await link(page, 3).click();
    await page.waitForURL(/\/streams\//);
    const opened = new URL(page.url()).pathname;
    await page.goBack();
    const focusedHref = () => page.evaluate(() => document.activeElement?.getAttribute('href'));
    await expect.poll(focusedHref, poll).toBe(opened);
    await page.mouse.move(0, 0); // the pointer rested on the row that was clicked
    const order = (await pairs(page)).join();
    await expect.poll(async () => (await pairs(page)).join() !== order, poll).toBe(true);
    expect(await page.getByText('Order paused').count()).toBe(0);
    await expect.poll(focusedHref, poll).toBe(opened);
    await page.keyboard.press('Shift');
    await page.getByText('Order paused').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`${world.url}${opened}`);
  },
  timeout,
);

test(
  'address: a watchlist and an order in capitals count; what means nothing is said, and can be removed',
  async () => {
    const { page } = await world.openPage({ path: '/?watchlist=TRUE' });
    await page.getByRole('heading', { name: 'Your watchlist is empty' }).waitFor();
    await page.goto(`${world.url}/?sort=-nothing&watchlist=maybe`);
    await page.getByText('Ignored the order in the address: there is no column "-nothing" to sort by.').waitFor();
    await page.getByText('Ignored a filter in the address: watchlist must be true or false.').waitFor();
    await page.getByRole('button', { name: 'Remove order' }).click();
    await page.getByRole('button', { name: 'Remove filter' }).click();
    await expectSearch(page, '');
  },
  timeout,
);

test(
  'export: the rows shown, in their order, with the exact values that the page has',
  async () => {
    const { page } = await world.openPage({ path: '/?base_asset=BTC,XAU,FTM&sort=-pair', signedIn: true });
    await page.locator('[data-row] .exact').nth(3).waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^sealpost-streams-[0-9T-]+Z\.csv$/);
    const [names = '', ...lines] = readFileSync(await file.path(), 'utf8')
      .trimEnd()
      .split('\r\n');
    const rows = lines.map((line) => line.split(','));
    const column = (name: string): readonly (string | undefined)[] =>
      rows.map((cells) => cells[names.split(',').indexOf(name)]);
    expect(column('pair')).toEqual(['XAU/USD', 'FTM/USD', 'BTC/USD', 'BTC/USD', 'BTC/USD']);
    expect(column('feed_id')[0]).toBe(feedIdOf('XAU/USD'));
    expect(column('price').map((price) => exact(price ?? '') !== undefined)).toEqual([true, false, true, true, true]);
    expect(column('observed_at')[2]).toMatch(/^[0-9-]{10}T[0-9:.]+Z$/);
    expect(column('change_since')[2]).toMatch(/Z$/);
    await page.getByText('Exported 5 streams.').waitFor();
  },
  timeout,
);

/** Runs in a page: keeps every text that the status of the first row has had. */
const keepPillTexts = (): void => {
  const pillTexts = new Set<string>();
  Object.assign(globalThis, { pillTexts });
  new MutationObserver(() => {
    pillTexts.add(document.querySelector('[data-row] .pill')?.textContent ?? '');
  }).observe(document, { subtree: true, childList: true, characterData: true });
};

test(
  'decommission: an end years away is no warning, a near one counts down in the status, and is overdue once it has passed',
  async () => {
    const { page } = await world.openPage({ path: '/?base_asset=LTC' });
    const pill = page.locator('[data-row] .pill');
    await expect.poll(() => pill.textContent(), poll).toBe('live');
    expect(await pill.getAttribute('title')).toContain('2030-06-28 00:00:00 UTC');
    const inTwelveSeconds = (): string => new Date(Date.now() + 12_000).toISOString().replace('Z', '000Z');
    let endAt: string | undefined;
    const { page: soon } = await world.openPage({
      path: '/?base_asset=LTC',
      prepare: async (opening) => {
        await opening.addInitScript(keepPillTexts);
        await opening.route('**/api/v1/discovery*', (route) => {
          endAt ??= inTwelveSeconds(); // from when the page asks: a slow machine needs seconds to get there
          const [expectedDecommissionAt, litecoin] = [endAt, demo.filter(({ baseAsset }) => baseAsset === 'LTC')];
          return route.fulfill({ json: { feeds: litecoin.map((stream) => ({ ...stream, expectedDecommissionAt })) } });
        });
      },
    });
    await expect.poll(() => soon.locator('[data-row] .pill').textContent(), poll).toBe('live · end overdue');
    const told = await soon.evaluate(() => [...((globalThis as { pillTexts?: Set<string> }).pillTexts ?? [])]); // as prepared
    expect(told.filter((text) => /^live · \d+ s left$/.test(text)).length).toBeGreaterThan(1);
  },
  timeout,
);
