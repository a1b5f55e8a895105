// The stream page and the status page, used as a person does, in real Chromium on the real demo.
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openDuckDb } from '../support/exports/duckdb.ts';
import { listed } from './stream-page.ts';
import { type ExplorerWorld, openExplorerTimeoutMs, openExplorerWorld, patienceMs as waitMs } from './world.ts';

let world: ExplorerWorld;
let path: string;
beforeAll(async () => {
  world = await openExplorerWorld();
  path = `/streams/${world.feedIds[0]}`;
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

type OpenedPage = Awaited<ReturnType<ExplorerWorld['openPage']>>['page'];

/** The chart once it has bars, and how to point at a share of its width. */
const openChart = async (query = '') => {
  const { page, ...rest } = await world.openPage({ path: `${path}${query}`, signedIn: true });
  const chart = page.getByRole('application', { name: /^Price chart of/ });
  await chart.locator('canvas').first().waitFor({ timeout: waitMs });
  await page.locator('.legend-value').nth(1).waitFor({ timeout: waitMs });
  const { x, y, width, height } = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  // Without the price axis, which is about 60 pixels wide.
  const place = (share: number) => [x + (width - 60) * share, y + height / 2] as const;
  return { page, chart, place, ...rest };
};

const legendOf = (page: OpenedPage) => page.locator('.legend-value').first().innerText();
const secondsOf = (text: string): number => Date.parse(text.replace(' UTC', 'Z').replace(' ', 'T')) / 1_000;

/** When two frames have been drawn: a key's effect is on the page. */
const drawn = (page: OpenedPage) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

test('stream page: price in the title, figures, and a live list, each report once; its chart stands still while pointed at; a click and keys open the report in its legend', async () => {
  const { page, chart, place } = await openChart();
  await page.getByText('Connected', { exact: true }).waitFor({ timeout: waitMs });
  await page.locator('.strip').waitFor({ timeout: waitMs });
  await expect.poll(() => page.title(), { timeout: waitMs }).toMatch(/^[0-9,]+\.?[0-9]* \w+\/\w+ · Sealpost$/);
  await page.locator('.report-table tbody tr').nth(10).waitFor({ timeout: waitMs });
  const before = (await listed(page)).at(-1) ?? 0;
  await expect.poll(async () => (await listed(page)).at(-1), { timeout: waitMs }).toBeGreaterThan(before + 2);
  const seconds = await listed(page);
  expect(seconds).toEqual([...new Set(seconds)].sort((one, other) => one - other));
  await page.mouse.move(...place(0.7));
  await page.getByText(/^Paused · ([3-9]|\d\d+) new reports$/).waitFor({ timeout: waitMs });
  const pointed = await legendOf(page);
  await page.getByText('Click to open the report').waitFor();
  const decimals = (await page.locator('.legend .exact').allTextContents()).map((text) => text.split('.')[1]?.length);
  expect([decimals.length, new Set(decimals).size]).toEqual([3, 1]); // price, bid and ask
  await page.mouse.click(...place(0.7));
  await page.waitForURL(new RegExp(`/at/${secondsOf(pointed)}$`), { timeout: waitMs });
  await page.goBack();
  await page.locator('.chart-canvas canvas').first().waitFor({ timeout: waitMs });
  await page.mouse.move(0, 0);
  await expect.poll(() => page.getByText(/^Paused/).count(), { timeout: waitMs }).toBe(0);
  await page.locator('.legend-value').nth(1).waitFor({ timeout: waitMs });
  await chart.focus();
  await chart.press('End');
  const newest = secondsOf(await legendOf(page));
  await expect
    .poll(async () => {
      await chart.press('ArrowLeft');
      await drawn(page);
      return secondsOf(await legendOf(page));
    })
    .toBeLessThan(newest);
  const chosen = secondsOf(await legendOf(page));
  await chart.press('+');
  await page.waitForURL(/view=|range=150s/, { timeout: waitMs });
  await expect.poll(async () => secondsOf(await legendOf(page))).toBe(chosen);
  await chart.press('Enter');
  await page.waitForURL(new RegExp(`/at/${chosen}$`), { timeout: waitMs });
});

test('chart: range and type are in the address, and restored from it', async () => {
  const { page } = await openChart();
  await page.getByRole('button', { name: '1h', exact: true }).click();
  await page.getByRole('button', { name: 'Line' }).click();
  await page.waitForURL((url) => url.search === '?range=1h&kind=line', { timeout: waitMs });
  await page.locator('.legend', { hasText: 'Open' }).waitFor({ timeout: waitMs });
  await page.reload();
  await page.locator('.legend', { hasText: 'Open' }).waitFor({ timeout: waitMs });
  expect(new URL(page.url()).search).toBe('?range=1h&kind=line');
});

test('chart: a click on a candle zooms into it, a drag moves in time, and Now returns to the newest report', async () => {
  const { page, place } = await openChart('?range=1h');
  await page.mouse.move(...place(0.97));
  await page.getByText('Click to zoom into these 1 min').waitFor({ timeout: waitMs });
  await page.mouse.click(...place(0.97));
  await page.waitForURL(/view=\d+-\d+$/, { timeout: waitMs });
  await page.getByText('Each bar covers the seconds').waitFor();
  const before = page.url();
  await page.mouse.move(...place(0.3));
  await page.mouse.down();
  await page.mouse.move(...place(0.6), { steps: 4 });
  await page.mouse.up();
  await page.waitForURL((url) => url.href !== before && url.search.includes('view='), { timeout: waitMs });
  await page.getByRole('button', { name: 'Now' }).click();
  await page.waitForURL((url) => url.search === '?range=1m', { timeout: waitMs });
});

test('stream page: “Use it” has programs for this stream and server, and keeps the language', async () => {
  const { page, expectAccessible } = await world.openPage({ path, signedIn: true });
  await page.getByRole('button', { name: 'Use it' }).click();
  const program = page.locator('.code-sample-text');
  await expect
    .poll(() => program.innerText())
    .toContain(`sealpost sign GET '/api/v1/reports/latest?feedID=${world.feedIds[0]}' --url ${world.url}`);
  await page.getByRole('button', { name: 'Python', exact: true }).click();
  await expect.poll(() => program.innerText()).toContain('os.environ["SEALPOST_SECRET"]');
  await page.getByRole('button', { name: 'Live reports' }).click();
  await expect.poll(() => program.innerText()).toContain(`/api/v1/reports/stream?feedIDs=${world.feedIds[0]}`);
  expect(await page.content()).not.toContain(world.secret);
  await expectAccessible();
  await page.reload();
  await page.getByRole('button', { name: 'Use it' }).click();
  await expect
    .poll(() => page.getByRole('button', { name: 'Python', exact: true }).getAttribute('aria-pressed'))
    .toBe('true');
});

test('stream page on a phone: the feed ID is between its label and its buttons, and no placeholder is cut off', async () => {
  const { page } = await world.openPage({ path, viewport: 'phone', signedIn: true });
  const parts = page.locator('.use-it-row > *');
  await page.getByRole('button', { name: 'Use it' }).waitFor();
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 800 });
    const [label = 0, feedId = 0, ...buttons] = await parts.evaluateAll((all) =>
      all.map((part) => part.getBoundingClientRect().top),
    );
    expect(feedId).toBeGreaterThan(label);
    expect(Math.min(...buttons)).toBeGreaterThan(feedId);
    const cut = () =>
      page.locator('input[placeholder]').evaluateAll((inputs) =>
        inputs.flatMap((input) => {
          const { font, paddingLeft, paddingRight } = getComputedStyle(input);
          const context = document.createElement('canvas').getContext('2d');
          if (context === null || !(input instanceof HTMLInputElement)) return ['no canvas'];
          context.font = font;
          const space = input.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
          return context.measureText(input.placeholder).width > space ? [input.placeholder] : [];
        }),
      );
    await expect.poll(cut).toEqual([]);
  }
});

test('stream page: the reports of a day are in the address, page after page, in both orders', async () => {
  const { page, allow, expectAccessible } = await world.openPage({ path, signedIn: true });
  allow(/404/); // how the end of an empty day is found
  await page.getByRole('button', { name: 'By date' }).click();
  await page.locator('.report-table tbody tr').nth(49).waitFor({ timeout: waitMs });
  const [first, newest] = [(await listed(page))[0] ?? 0, (await listed(page)).at(-1) ?? 0];
  const older = page.getByRole('button', { name: 'Older reports' });
  await older.press('Enter');
  await expect.poll(async () => (await listed(page)).at(-1), { timeout: waitMs }).toBe(first - 1);
  await expect.poll(() => older.evaluate((button) => button === document.activeElement)).toBe(true);
  await page.getByRole('button', { name: 'Oldest first' }).click();
  await expect.poll(async () => (await listed(page))[0], { timeout: waitMs }).toBe(first - 1);
  await expectAccessible('[aria-labelledby=reports-title]');
  await page.reload();
  await expect.poll(async () => (await listed(page))[0], { timeout: waitMs }).toBe(first - 1);
  await page.goBack();
  await page.goBack();
  await expect.poll(async () => (await listed(page)).at(-1), { timeout: waitMs }).toBeGreaterThanOrEqual(newest);
  await page.getByRole('button', { name: '← Previous day' }).click();
  await page
    .getByText(/^No reports on [0-9-]{10} \(UTC\)\. The stream has none before that day\.$/)
    .waitFor({ timeout: waitMs });
  await expect
    .poll(() => page.getByRole('button', { name: '← Previous day' }).getAttribute('aria-disabled'))
    .toBe('true');
});

test('stream page: by date, the label says what the time means, a double click turns one page, and local times have their date', async () => {
  const { page } = await world.openPage({ path, signedIn: true });
  await page.getByRole('button', { name: 'By date' }).click();
  await page.locator('.report-table tbody tr').nth(49).waitFor({ timeout: waitMs });
  const [entries, first] = [await page.evaluate(() => history.length), (await listed(page))[0] ?? 0];
  const older = page.getByRole('button', { name: 'Older reports' });
  await expect.poll(() => older.getAttribute('aria-disabled'), { timeout: waitMs }).toBe('false');
  await older.evaluate((button: HTMLButtonElement) => [button.click(), button.click()]); // at once, on a busy machine too
  await expect.poll(async () => (await listed(page)).at(-1), { timeout: waitMs }).toBe(first - 1);
  await expect.poll(() => page.evaluate(() => history.length)).toBe(entries + 1);
  await page.getByRole('button', { name: 'Oldest first' }).click();
  await page.getByLabel('Up to (UTC, optional)').waitFor();
  await page.getByLabel('Date (UTC)').fill('');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('Enter a date, such as').waitFor();
  await page.getByRole('button', { name: 'Newest first' }).click();
  await expect.poll(() => page.getByText('Enter a date, such as').count()).toBe(0);
  await page.keyboard.press('t');
  const observed = page.locator('.report-table tbody a').first();
  const local = await observed.evaluate((link) => {
    const at = new Date(Number(link.getAttribute('href')?.split('/at/')[1]) * 1_000);
    return at.getDate() === at.getUTCDate() ? /^[0-9:]{8} / : /^[0-9-]{10} [0-9:]{8} /;
  });
  await expect.poll(() => observed.innerText()).toMatch(local);
});

test('stream page: the first day of all has none before it, and the candles as a table can be scrolled with the keyboard', async () => {
  const opened = await world.openPage({ path: `${path}?range=1h&day=1970-01-01`, signedIn: true });
  opened.allow(/40[04]/);
  const { page, expectAccessible } = opened;
  await page.getByText('Before retained history').waitFor({ timeout: waitMs });
  await page.getByRole('button', { name: '← Previous day' }).press('Enter');
  expect(page.url()).toContain('day=1970-01-01');
  await page.getByText('Chart candles as a table').click({ timeout: waitMs });
  await page.getByRole('region', { name: 'Chart candles' }).focus();
  await expectAccessible('[aria-labelledby=reports-title]');
});

/** Answers requests in the server's place until `restore` is called. */
const failing = async (page: OpenedPage, pattern: string, status: number, headers: Record<string, string> = {}) => {
  const json = { error: 'No.', code: status === 429 ? 'rate_limited' : 'unavailable', requestId: 'r' };
  await page.route(pattern, (route) => route.fulfill({ status, headers, json }));
  return () => page.unroute(pattern);
};

test('download: a double click starts one; an empty range saves nothing; a wait is shown; a changed form discards what failed', async () => {
  const { page, allow } = await world.openPage({ path, signedIn: true });
  allow(/status of (429|503)/);
  await page.locator('.report-table tbody tr').nth(3).waitFor({ timeout: waitMs });
  const at = (await listed(page)).at(-1) ?? 0;
  const [from, button] = [page.getByLabel('From', { exact: true }), page.getByRole('button', { name: 'Download' })];
  await from.fill(String(at - 9));
  await page.getByLabel('To (empty: now)').fill(String(at));
  const saved = page.waitForEvent('download', { timeout: waitMs });
  await button.dblclick();
  await saved;
  await page.getByText(/^Saved 10 reports/).waitFor({ timeout: waitMs });
  let restore = await failing(page, '**/api/v1/reports/page?*', 429, { 'Retry-After': '60' });
  await button.click();
  await page.getByText(/^Continuing in [1-5]\d s$/).waitFor({ timeout: waitMs });
  await from.press('Enter'); // in a field, it does not cancel
  expect(await page.getByText(/^Continuing/).count()).toBe(1);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await button.press('Enter');
  await page.getByRole('button', { name: 'Cancel' }).press('Enter'); // at once
  await button.waitFor({ timeout: waitMs });
  await restore();
  restore = await failing(page, '**/api/v1/reports/page?*', 503);
  await button.click();
  const again = page.locator('[aria-labelledby=download-title]').getByRole('button', { name: 'Try again' });
  await again.press('Enter', { timeout: waitMs });
  await again.waitFor({ timeout: waitMs });
  expect(await page.evaluate(() => document.activeElement?.tagName)).not.toBe('BODY');
  await restore();
  await page.getByLabel('To (empty: now)').fill(String(at - 1));
  await expect.poll(() => again.count()).toBe(0);
  await page.route('**/api/v1/reports/page?*', (route) =>
    route.fulfill({ json: { reports: [] }, headers: { Link: '' } }),
  );
  await button.click();
  await page.getByText(/^There are no reports from .* Nothing was saved\.$/).waitFor({ timeout: waitMs });
});

test('stream page: a time range is downloaded as CSV and as Parquet, whole and exact', async () => {
  const { page, expectAccessible } = await world.openPage({ path, signedIn: true });
  await page.locator('.report-table tbody tr').nth(3).waitFor({ timeout: waitMs });
  const at = (await listed(page)).at(-1) ?? 0;
  await page.getByLabel('From', { exact: true }).fill(String(at - 59));
  await page.getByLabel('To (empty: now)').fill(String(at));
  const download = async (format: string): Promise<string> => {
    await page.getByRole('button', { name: format }).click();
    await page.getByText('about 60 reports, 1 request').waitFor({ timeout: waitMs });
    const [file] = await Promise.all([
      page.waitForEvent('download', { timeout: waitMs }),
      page.getByRole('button', { name: 'Download' }).click(),
    ]);
    await page.getByText(/^Saved 60 reports as /).waitFor({ timeout: waitMs });
    return file.path();
  };
  const [header, ...lines] = readFileSync(await download('CSV'), 'utf8')
    .trimEnd()
    .split('\n');
  expect([header?.startsWith('name,feedID,version,'), lines.length]).toEqual([true, 60]);
  expect(lines.at(-1)).toContain(`,${at},`);
  await expectAccessible('[aria-labelledby=download-title]');
  const duck = await openDuckDb();
  const sql = `SELECT count(*) AS n, max(observationsTimestamp) AS at, min(price) > 0 AS good FROM read_parquet('${await download('Parquet')}')`;
  expect(await duck.rows(sql)).toEqual([{ n: 60n, at: BigInt(at), good: true }]);
  duck.close();
});

test('chart: it is compared with another stream, saved as a picture, and shown on the full screen', async () => {
  const { page, expectAccessible } = await openChart(`?range=1h&compare=0x0003${'f'.repeat(60)}`);
  await page.getByText('Ignored in the address: compare is not a stream of this server').waitFor();
  await page.getByRole('button', { name: 'Remove compare from the address' }).click();
  await page.waitForURL((url) => url.search === '?range=1h', { timeout: waitMs });
  await page.getByRole('button', { name: 'Compare' }).click();
  await page.getByRole('searchbox', { name: 'Compare with a stream' }).fill('eth');
  await page.keyboard.press('Enter');
  await page.waitForURL(/compare=0x[0-9a-f]{64}$/, { timeout: waitMs });
  await page.locator('.legend-other', { hasText: /ETH.* %$/ }).waitFor({ timeout: waitMs });
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toMatch(/^vs .*ETH/);
  await expectAccessible();
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'PNG' }).click();
  expect((await saved).suggestedFilename()).toMatch(/^[A-Z]+-USD_\d{4}-\d\d-\d\dT\d{6}Z_\d{4}-\d\d-\d\dT\d{6}Z\.png$/);
  await page.getByRole('button', { name: 'Full screen' }).click();
  await page.locator('.chart.is-full').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.chart:not(.is-full)').waitFor();
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Full screen');
  await page.getByRole('button', { name: 'End the comparison' }).click();
  await page.waitForURL((url) => !url.search.includes('compare'), { timeout: waitMs });
});

test('chart: candles that do not load are no gap: it says so, and “Try again” loads them; a rate is in percent', async () => {
  const { feeds } = await (await fetch(`${world.url}/api/v1/discovery?base_asset=SOFR`)).json();
  let isLost = true;
  const { page, allow } = await world.openPage({
    path: `/streams/${feeds[0].feedId}?range=1h`,
    signedIn: true,
    prepare: (tab) =>
      tab.route('**/api/v1/reports/candles?*', (route) => {
        if (!isLost) return route.continue();
        return route.fulfill({ status: 404, json: { error: 'No.', code: 'route_not_found', requestId: 'r' } });
      }),
  });
  allow(/404/);
  await page.locator('.stream-price-figure', { hasText: '%' }).waitFor();
  const again = page.locator('.chart').getByRole('button', { name: 'Try again' });
  await again.waitFor();
  isLost = false;
  await again.click();
  await again.waitFor({ state: 'detached' });
});

test('stream page: anonymous users see the stream’s details and how to sign in', async () => {
  const { page, expectAccessible } = await world.openPage({ path });
  await page.getByText('Sign in to see the price').waitFor();
  await page.getByRole('heading', { name: 'Stream details' }).waitFor();
  await expectAccessible();
});

test('stream page: a stream that has ended says so, and offers no live price', async () => {
  const { feeds } = await (await fetch(`${world.url}/api/v1/discovery?base_asset=FTM`)).json();
  const { page, expectAccessible } = await world.openPage({
    path: `/streams/${feeds[0].feedId}`,
    viewport: 'phone',
    signedIn: true,
  });
  await page.getByText('Stream ended').first().waitFor();
  await page.getByText('No reports are left.').first().waitFor();
  expect(await page.getByRole('link', { name: 'Add alert' }).count()).toBe(0); // it would never be triggered
  await expectAccessible();
});

test('stream page: an unknown feed ID is explained', async () => {
  const { page } = await world.openPage({ path: `/streams/0x0003${'f'.repeat(60)}`, signedIn: true });
  await page.getByRole('heading', { name: 'Stream not found', level: 1 }).waitFor();
});

test('price at: its time is in the address, for Back, a reload and a shared link; a future time and an old one say why there is no report', async () => {
  const { page, allow, expectAccessible } = await world.openPage({ path: `${path}?at=-1m`, signedIn: true });
  const answer = page.locator('.price-at-answer');
  await answer.getByRole('link', { name: 'Open report and proof' }).waitFor({ timeout: waitMs });
  await page.waitForURL(/\?at=[0-9-]{10}T[0-9:]{8}Z$/, { timeout: waitMs });
  const [first, address] = [await answer.innerText(), page.url()];
  expect(first).toMatch(/ [A-Z]{3,4}\n/); // the currency after the price
  const box = page.getByLabel('Date and time, Unix, or -5m');
  await box.fill('-2m');
  await page.getByText('2 min before now: ').waitFor();
  await box.press('Enter');
  await expect.poll(() => answer.innerText(), { timeout: waitMs }).not.toBe(first);
  await page.goBack();
  await expect.poll(() => answer.innerText(), { timeout: waitMs }).toBe(first);
  expect(page.url()).toBe(address);
  await page.reload();
  await expect.poll(() => answer.innerText(), { timeout: waitMs }).toBe(first);
  await page.locator('.report-table tbody tr').nth(3).waitFor({ timeout: waitMs });
  const [second = 0] = await listed(page);
  await box.fill('5 bananas');
  await box.press('Enter');
  await page.getByText('“5 bananas” is not a time. Examples: 2026-11-15 09:28:17').waitFor();
  await box.fill(String(second));
  await page.getByText(`Unix seconds: ${new Date(second * 1_000).toISOString().slice(0, 10)}`).waitFor();
  await box.press('Enter');
  await page.getByRole('link', { name: 'Open report and proof' }).waitFor();
  allow(/404/);
  await box.fill(String(second + 86_400));
  await page.getByRole('button', { name: 'Look up' }).click();
  await page.getByText('That time is in the future.').waitFor();
  await page.getByRole('link', { name: 'Open report', exact: true }).waitFor();
  const gap = await page.locator('.price-at-answer').evaluate((answer) => {
    const [notice, before] = [answer.querySelector('.notice'), answer.querySelector('h3')];
    return (before?.getBoundingClientRect().top ?? 0) - (notice?.getBoundingClientRect().bottom ?? 0);
  });
  expect(gap).toBeGreaterThanOrEqual(12);
  await expectAccessible();
  allow(/400/);
  await box.fill('1577836800');
  await page.getByRole('button', { name: 'Look up' }).click();
  await page.getByText('This server keeps reports from').waitFor();
  await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('BUTTON');
});

test('status page on a phone: lag and availability of each stream, searched and sorted by the address, and what changed', async () => {
  const { page, expectAccessible } = await world.openPage({
    path: '/status?q=btc&sort=-gaps',
    viewport: 'phone',
    signedIn: true,
  });
  const rows = page.locator('.status-card');
  await page
    .getByRole('img', { name: /^Last 24 hours: / })
    .nth(2)
    .waitFor({ timeout: waitMs });
  expect(await rows.filter({ hasText: 'BTC/USD' }).count()).toBe(await rows.count());
  await rows.filter({ hasText: /\d %/ }).first().waitFor({ timeout: waitMs });
  await page.getByText('Signer set added').waitFor({ timeout: waitMs });
  await expectAccessible();
  const search = page.getByRole('searchbox', { name: 'Search streams' });
  await search.fill('nothing like this');
  await page.getByText('No stream matches the search.').waitFor();
  await search.fill('eth');
  await rows.filter({ hasText: 'ETH/USD' }).first().waitFor();
  await expect.poll(() => search.evaluate((box) => box === document.activeElement)).toBe(true);
  await expect.poll(() => page.url()).toContain('q=eth');
});

test('status page without an account: what the server says of itself, and an invitation to sign in instead of the table', async () => {
  const { page } = await world.openPage({ path: '/status', theme: 'dark' });
  for (const name of ['Readiness', 'Ingest lag', 'Streams behind', 'Uptime'])
    await page.locator('dt', { hasText: name }).first().waitFor({ timeout: waitMs });
  await page.getByText('2 of 4 (f = 1, n = 4)').waitFor({ timeout: waitMs });
  await page.getByText('Sign in to see each stream').waitFor({ timeout: waitMs });
  expect(await page.getByRole('searchbox', { name: 'Search streams' }).count()).toBe(0);
});

test('status page: a server without availability says so, and the rest of the page works', async () => {
  const { page, allow } = await world.openPage({
    path: '/status',
    signedIn: true,
    prepare: (tab) =>
      tab.route('**/api/v1/reports/coverage/bulk?*', (route) =>
        route.fulfill({ status: 404, json: { error: 'No.', code: 'route_not_found', requestId: 'r' } }),
      ),
  });
  allow(/404/);
  await page.getByRole('button', { name: 'Try again' }).waitFor({ timeout: waitMs });
  await page.getByText('Ready', { exact: true }).first().waitFor({ timeout: waitMs });
  await page.locator('.status-streams tbody tr').nth(5).waitFor();
});
