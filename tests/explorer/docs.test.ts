// The API docs in real Chromium on the real demo: contents, search, requests that are sent from the page.
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type ExplorerWorld, openExplorerTimeoutMs, openExplorerWorld, testTimeoutMs as timeout } from './world.ts';

let world: ExplorerWorld;
beforeAll(async () => {
  world = await openExplorerWorld();
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

const operation = (page: Page, id: string) => page.locator(`article#${id}`);

/** Opens the form of an operation, once the streams that it is filled with are known. */
const openForm = async (page: Page, id: string) => {
  await operation(page, id).getByText('Example: 0x').first().waitFor();
  await operation(page, id).getByRole('button', { name: 'Try it' }).click();
  return page.locator(`#${id}-try`);
};

/** Waits until the top of an element is near the top of the view. */
const waitForTop = (page: Page, id: string) =>
  page.waitForFunction((name) => {
    const { top = -1 } = document.getElementById(name)?.getBoundingClientRect() ?? {};
    return top >= 0 && top < 120;
  }, id);

/** Removes the other operations: axe-core walks the whole page, whatever it is asked to check. */
const keepOperations = (page: Page, ...ids: readonly string[]) =>
  page.evaluate((kept) => {
    for (const article of document.querySelectorAll('article, #error-codes'))
      if (!kept.includes(article.id)) article.remove();
  }, ids);

const screenWidths = (page: Page) =>
  page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);

test(
  'docs: an address of an operation opens at it; search by keyboard leads to an error code; Back returns, also from another page',
  async () => {
    const { page } = await world.openPage({ path: '/docs#reportBulk' });
    await waitForTop(page, 'reportBulk');
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Status' }).focus();
    await page.evaluate(() => document.getElementById('reportBulk')?.scrollIntoView());
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/status$/);
    await page.goBack();
    await page.waitForURL(/\/docs#reportBulk$/);
    await waitForTop(page, 'reportBulk');
    await page.keyboard.press('/');
    await page.keyboard.type('no such thing at all');
    await page.getByText('Nothing matches “no such thing at all”.').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.type('timestamp');
    await page.keyboard.press('ArrowUp');
    const last = page.getByRole('option', { selected: true }).and(page.getByRole('option').last());
    await last.waitFor();
    const box = page.getByRole('combobox', { name: 'Search the API docs' });
    const list = page.getByRole('listbox', { name: 'Search results' });
    const bottomOf = (one: Locator) => one.evaluate((element) => element.getBoundingClientRect().bottom);
    await expect.poll(async () => (await bottomOf(last)) - (await bottomOf(list))).toBeLessThanOrEqual(0);
    await page.keyboard.press('Tab');
    await list.waitFor({ state: 'hidden' });
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.closest('.docs-contents')?.id))
      .toBe('docs-contents');
    await box.click();
    await list.waitFor();
    await page.getByRole('heading', { name: 'API docs', level: 1 }).click();
    await list.waitFor({ state: 'hidden' });
    await box.fill('clock_sk');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#error-clock_skew$/);
    await page.waitForFunction(() => document.activeElement?.id === 'error-clock_skew');
    const contents = page.getByRole('navigation', { name: 'API docs' });
    await contents.getByRole('link', { name: 'Error codes' }).and(page.locator('[aria-current]')).waitFor();
    await contents.getByRole('link', { name: 'reports/page' }).focus();
    await page.keyboard.press('Enter');
    await waitForTop(page, 'reportPage');
    await contents.getByRole('link', { name: 'reports/page' }).and(page.locator('[aria-current]')).waitFor();
    await page.goBack();
    await page.waitForURL(/#error-clock_skew$/);
    await page.waitForFunction(() => document.activeElement?.id === 'error-clock_skew');
  },
  timeout,
);

test(
  'docs: a signed request is sent from the page with a feed ID of the server; the secret is nowhere on it',
  async () => {
    const { page, allow, expectAccessible } = await world.openPage({
      path: '/docs',
      theme: 'dark',
      signedIn: true,
    });
    allow(/status of 400/);
    const form = await openForm(page, 'reportLatest');
    const feedId = await form.getByLabel('feedID', { exact: true }).inputValue();
    expect(world.feedIds).toContain(feedId);
    await form.getByRole('button', { name: 'Send' }).click();
    await form.getByText('Answered with 200').waitFor();
    const shown = await form.innerText();
    expect(shown).toContain(`GET ${world.url}/api/v1/reports/latest?feedID=${feedId}`);
    expect(shown).toMatch(/X-Authorization-Signature-SHA256: [0-9a-f]{64}/);
    expect(shown).toMatch(/RateLimit-Remaining: [0-9]/);
    expect(shown).toContain(`"feedID": "${feedId}"`);
    expect(await page.content()).not.toContain(world.secret);
    await form.getByLabel('feedID', { exact: true }).fill('0x12');
    await page.keyboard.press('Enter');
    await form.getByText('Answered with 400').waitFor();
    await form.getByText('Change the request before you retry.').waitFor();
    await expect
      .poll(() => form.getByRole('link', { name: 'malformed_argument' }).getAttribute('href'))
      .toBe('#error-malformed_argument');
    await form.getByLabel('If-None-Match').fill('“x”');
    await page.keyboard.press('Enter');
    await form.getByRole('alert').getByText('If-None-Match cannot be sent').waitFor();
    await page.getByRole('combobox', { name: 'Search the API docs' }).fill('timestamp');
    await page.getByRole('option').nth(1).waitFor();
    await keepOperations(page, 'reportLatest');
    await expectAccessible('.docs-sidebar, #authentication, #reportLatest');
  },
  timeout,
);

test(
  'docs: samples are in the chosen language everywhere, also after a reload, and copied whole',
  async () => {
    const { page } = await world.openPage({ path: '/docs', signedIn: true });
    const sample = operation(page, 'reportLatest');
    await sample.getByText('Sample answer').scrollIntoViewIfNeeded();
    await sample.getByText('from this server, shortened').waitFor();
    await sample.getByRole('button', { name: 'Python', exact: true }).click();
    await page.reload();
    await operation(page, 'reportPage').getByText('urlopen').first().waitFor();
    await operation(page, 'reportPage').getByRole('button', { name: 'Copy reportPage in Python' }).click();
    await operation(page, 'reportPage').getByText('Copied').waitFor();
    await expect
      .poll(() => page.evaluate(() => navigator.clipboard.readText()))
      .toMatch(/target = "\/api\/v1\/reports\/page\?feedID=0x[0-9a-f]{64}&startTimestamp=[0-9]+/);
  },
  timeout,
);

test(
  'docs: the messages of a WebSocket are shown as they arrive, until it is disconnected',
  async () => {
    const { page } = await world.openPage({ path: '/docs', signedIn: true });
    const form = await openForm(page, 'socketMs');
    await form.getByLabel('feedIDs').fill(world.feedIds.slice(0, 2).join(','));
    await form.getByRole('button', { name: 'Connect', exact: true }).click();
    await form.getByRole('listitem').nth(2).waitFor();
    await expect
      .poll(() => form.getByRole('listitem').first().innerText())
      .toMatch(/^\{"report":\{"feedID":"0x[0-9a-f]{64}","validFromTimestampMs":[0-9]{13},/);
    await form.getByRole('button', { name: 'Disconnect' }).click();
    await form.getByText('Disconnected').waitFor();
    const count = await form.getByRole('listitem').count();
    await form.getByRole('button', { name: 'Connect', exact: true }).click();
    await form.getByRole('listitem').nth(1).waitFor();
    expect(count).toBeGreaterThan(2);
    const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/reports/stream'));
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Status' }).click();
    await ended;
  },
  timeout,
);

test(
  'docs: signed out on a phone, public requests work, others offer to sign in, and nothing runs out of the screen',
  async () => {
    const { page, expectAccessible } = await world.openPage({ path: '/docs', viewport: 'phone' });
    const button = page.getByRole('button', { name: 'Contents' });
    await button.press('Enter');
    const contents = page.getByRole('navigation', { name: 'API docs' });
    await contents.getByRole('link', { name: 'Errors' }).press('Escape');
    await contents.waitFor({ state: 'hidden' });
    await expect.poll(() => button.evaluate((one) => one === document.activeElement)).toBe(true);
    expect(await button.getAttribute('aria-expanded')).toBe('false');
    await button.click();
    await contents.getByRole('link', { name: '/time' }).click();
    await contents.waitFor({ state: 'hidden' });
    await waitForTop(page, 'time');
    await operation(page, 'time').getByRole('button', { name: 'Try it' }).click();
    await page.locator('#time-try').getByRole('button', { name: 'Send' }).click();
    await page.locator('#time-try').getByText('Answered with 200').waitFor();
    const latest = await openForm(page, 'reportLatest');
    await latest.getByText('Sign in to send this request').waitFor();
    const [content, screen] = await screenWidths(page);
    expect(content).toBe(screen);
    await keepOperations(page, 'reportLatest', 'time');
    await expectAccessible('.docs-sidebar, #base-url, #reportLatest, #time');
  },
  timeout,
);

test(
  'docs: a document that does not load says so, and is loaded again',
  async () => {
    const { page, allow } = await world.openPage({
      path: '/docs',
      prepare: (opened) => opened.route('**/openapi.json', (route) => route.fulfill({ status: 503 })),
    });
    allow(/status of 503/);
    await page.getByText('The API docs could not be loaded.').waitFor();
    await page.unroute('**/openapi.json');
    await page.getByRole('button', { name: 'Try again' }).click();
    await operation(page, 'reportAt').waitFor();
  },
  timeout,
);
