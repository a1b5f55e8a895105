// The frame around the explorer's pages, in real Chromium on the real demo: files that do not arrive, times, shortcuts, and the focus.
import { decode, formatDecimal } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import type { Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { isFull } from '../support/full-count.ts';
import { fetchSigned } from '../support/real-program.ts';
import { type ExplorerWorld, openExplorerTimeoutMs, openExplorerWorld, testTimeoutMs as timeout } from './world.ts';

let world: ExplorerWorld;
beforeAll(async () => {
  world = await openExplorerWorld();
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

const heading = (page: Page, name: RegExp) => page.getByRole('heading', { level: 1, name });
const focused = (page: Page): Promise<string> => page.evaluate(() => document.activeElement?.tagName ?? '');
/** What a browser logs about files that do not arrive. */
const lost = /Failed to load|ERR_FAILED|MIME type|Failed to fetch dynamically/;

const abort = (route: Route) => route.abort();
/** As a network that wants a sign-in first. */
const wrongType = (route: Route) => route.fulfill({ contentType: 'text/html', body: '<p>Sign in to the network' });

test(
  'history: every page says how much of it a demo has loaded, and when it is whole offers to update, and keeps what was typed',
  async () => {
    let historyLoaded: number | undefined = 0.4;
    const { page, expectAccessible } = await world.openPage({
      path: '/inspect',
      prepare: (opened) =>
        opened.route('**/status.json', async (route) => {
          const response = await route.fetch();
          await route.fulfill({ response, json: { ...(await response.json()), historyLoaded } });
        }),
    });
    const banner = page.getByRole('complementary', { name: 'History' });
    await banner.getByText('Loading history, 40 %').waitFor();
    const input = page.getByRole('textbox').first();
    await input.fill('0x1234');
    historyLoaded = undefined;
    await banner.getByText('All history is loaded.').waitFor();
    expect(await input.inputValue()).toBe('0x1234');
    await expectAccessible();
    await banner.getByRole('button', { name: 'Update the page' }).click();
    await banner.waitFor({ state: 'detached' });
    expect(await input.inputValue()).toBe('');
  },
  timeout,
);

test(
  'start: a script that has the wrong type is retried, then the page says so and offers to reload',
  async () => {
    let requests = 0;
    const { page, allow } = await world.openPage({
      prepare: (opened) =>
        opened.route(/\/assets\/index-/, (route) => {
          requests += 1;
          return requests > 3 ? route.continue() : wrongType(route);
        }),
    });
    allow(lost);
    await page.getByText('Sealpost did not load.').waitFor();
    await page.getByRole('button', { name: 'Reload' }).click();
    await heading(page, /Streams/).waitFor();
  },
  timeout,
);

test(
  'start: a stylesheet that is aborted is retried, then reported above the page, which works without it',
  async () => {
    const { page, allow } = await world.openPage({ prepare: (opened) => opened.route(/\.css/, abort) });
    allow(lost);
    await page.getByText('The styles of this page did not load.').waitFor();
    await heading(page, /Streams/).waitFor();
  },
  timeout,
);

test(
  'start: a stylesheet that never arrives does not hold up the page, and the next attempt styles it',
  async () => {
    let requests = 0;
    const { page, allow } = await world.openPage({
      prepare: (opened) =>
        opened.route(/\.css/, async (route) => {
          requests += 1;
          if (requests > 1) return route.continue();
          await heading(opened, /Streams/).waitFor(); // the page does not wait for it
          return route.abort();
        }),
    });
    allow(lost);
    await page.waitForFunction(() => document.styleSheets.length === 1);
    expect(await page.locator('#start-problem').count()).toBe(0);
  },
  timeout,
);

test(
  'start: without the first script the page still starts, with the theme that the user chose',
  async () => {
    const { page, allow } = await world.openPage({
      prepare: async (opened) => {
        await opened.route(/\/start\.js/, (route) => route.abort());
        await opened.addInitScript(() => localStorage.setItem('sealpost-theme', 'dark'));
      },
    });
    allow(lost);
    await heading(page, /Streams/).waitFor();
    await expect.poll(() => page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark');
  },
  timeout,
);

test(
  'upgrade: a page whose files are gone reloads once for the new release',
  async () => {
    let loads = 0;
    const { page, allow } = await world.openPage({
      prepare: (opened) =>
        opened.route(
          (url) => url.pathname === '/',
          async (route) => {
            loads += 1;
            if (loads > 1) return route.continue();
            const response = await route.fetch();
            return route.fulfill({
              response,
              body: (await response.text()).replace(/index-[^"]+\.js/, 'index-gone.js'),
            });
          },
        ),
    });
    allow(/status of 404/);
    await heading(page, /Streams/).waitFor();
  },
  timeout,
);

test.each([['/docs', /API docs/]])(
  'address: a doubled slash before %s is one: its page is shown, signed in, and links work',
  async (path, name) => {
    const { page, allow } = await world.openPage({ path: `/${path}?q=1`, signedIn: true });
    allow(/status of 404/);
    await heading(page, name).waitFor();
    await page.getByRole('link', { name: 'Inspect' }).click();
    await heading(page, /Inspect/).waitFor();
    expect(new URL(page.url()).pathname).toBe('/inspect');
    await page.goBack();
    await heading(page, name).waitFor();
    expect(page.url()).toBe(`${world.url}${path}?q=1`);
    await page.locator('.account > summary').waitFor();
  },
  timeout,
);

test.each(isFull ? ['{"toString":1}', '[[]]', '1e999', 'null', '{'] : ['[[]]', '{'])(
  'storage: the page starts with %s under each of its keys',
  async (text) => {
    const { page } = await world.openPage();
    await heading(page, /Streams/).waitFor();
    await page.evaluate((stored) => {
      const names = ['sample-language', 'shortcuts', 'times', 'theme', 'watchlist', 'columns', 'alerts'];
      for (const name of [...names, 'session']) localStorage.setItem(`sealpost-${name}`, stored);
    }, text);
    await page.reload();
    await heading(page, /Streams/).waitFor();
  },
  timeout,
);

test(
  'address: the page is looked for on this server when its script is lost, also after a doubled slash',
  async () => {
    const { page, allow } = await world.openPage({
      path: '//other.example/docs',
      prepare: (opened) => opened.route(/\/assets\/index-/, abort),
    });
    allow(/status of 404|ERR_FAILED/);
    await page.getByText('Sealpost did not load.').waitFor();
  },
  timeout,
);

test(
  'pages: one whose code does not arrive says so; "Try again" shows it and keeps the focus in the page',
  async () => {
    let isLost = true;
    const { page, allow } = await world.openPage({
      path: '/status',
      prepare: (opened) =>
        opened.route(/\/assets\/status-page-/, (route) => (isLost ? route.fulfill({ status: 503 }) : route.continue())),
    });
    allow(/status of 503/);
    await page.getByText('A part of this page did not load.').waitFor();
    isLost = false;
    await page.getByRole('button', { name: 'Try again' }).press('Enter');
    await heading(page, /Status/).waitFor();
    expect(await focused(page)).not.toBe('BODY');
  },
  timeout,
);

test(
  'errors: one that nothing handles is reported; dismissed, the focus stays in the page',
  async () => {
    const { page, allow } = await world.openPage();
    allow(/on purpose/);
    await heading(page, /Streams/).waitFor();
    await page.evaluate(() => void Promise.reject(new Error('on purpose')));
    await page.getByText('Something went wrong on this page.').waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).press('Enter');
    await page.getByText('Something went wrong on this page.').waitFor({ state: 'hidden' });
    await expect.poll(() => focused(page)).toBe('MAIN');
  },
  timeout,
);

test(
  'errors: a part that cannot be shown says so with "Reload", in the frame if it is a page and alone if it is the frame',
  async () => {
    let broken: object = { serverTimeMs: 1e300 }; // no date
    const { page, allow } = await world.openPage({
      path: '/status',
      prepare: (opened) =>
        opened.route('**/status.json', async (route) => {
          const response = await route.fetch();
          await route.fulfill({ response, json: { ...(await response.json()), ...broken } });
        }),
    });
    const notice = page.getByRole('alert').filter({ hasText: 'This page could not be shown.' });
    await notice.getByRole('button', { name: 'Reload' }).waitFor();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
    broken = { sandbox: { timeMs: Date.now(), speed: 1, paused: false, faults: 7 } }; // no list
    await notice.getByRole('button', { name: 'Reload' }).click();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor({ state: 'detached' });
    await notice.getByRole('button', { name: 'Reload' }).waitFor();
    allow(/./); // the errors that the boundary caught
  },
  timeout,
);

test(
  'storage: what the browser does not keep is said once; the page works meanwhile',
  async () => {
    const { page, expectAccessible } = await world.openPage({
      prepare: (opened) =>
        opened.addInitScript(() => {
          Storage.prototype.setItem = () => {
            throw new DOMException('Full.', 'QuotaExceededError');
          };
        }),
    });
    await heading(page, /Streams/).waitFor();
    const zone = page.getByRole('button', { name: /^Times are/ });
    await zone.click();
    const notice = page.getByRole('alert').filter({ hasText: 'Your browser does not keep this: its storage' });
    await notice.waitFor();
    await expectAccessible('.announcements');
    await notice.getByRole('button', { name: 'Dismiss' }).click();
    await zone.click();
    await expect.poll(async () => [await zone.textContent(), await notice.count()]).toEqual(['UTC', 0]);
  },
  timeout,
);

test(
  'shortcuts: ? lists those of the page first; typing is not a shortcut; letters can be turned off',
  async () => {
    const { page, expectAccessible } = await world.openPage();
    const zone = page.getByRole('button', { name: /^Times are/ });
    await heading(page, /Streams/).waitFor();
    await page.keyboard.press('?');
    const dialog = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await expect
      .poll(() => dialog.getByRole('heading', { level: 3 }).allTextContents())
      .toEqual(['In the list of streams', 'On all pages']);
    const ofAllPages = dialog.getByRole('region', { name: 'On all pages' }).locator('kbd');
    expect(await ofAllPages.allTextContents()).toEqual(['?', 't', 'Esc']);
    await expectAccessible();
    await page.keyboard.press('t'); // a dialog is open
    await dialog.getByRole('checkbox').uncheck();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.keyboard.press('t');
    await expect.poll(() => zone.textContent()).toBe('UTC');
    await expect.poll(() => page.locator('.search-box .key').count()).toBe(0); // no hint of a key that does nothing
    await page.getByRole('button', { name: /^Keyboard shortcuts/ }).click();
    await dialog.getByRole('checkbox').check();
    await page.keyboard.press('Escape');
    await expect.poll(() => focused(page)).toBe('BUTTON');
    await page.keyboard.press('t');
    await expect.poll(() => zone.textContent()).toBe('Local');
    await page.getByRole('searchbox').fill('');
    await page.getByRole('searchbox').pressSequentially('t?');
    expect([await page.getByRole('searchbox').inputValue(), await dialog.isVisible()]).toEqual(['t?', false]);
    await expect.poll(() => zone.textContent()).toBe('Local');
  },
  timeout,
);

test(
  'times: local time has the offset of that day, summer or winter, and the other zone on hover; other tabs follow',
  async () => {
    const [summer, winter] = [Date.UTC(2026, 6, 1, 12) / 1_000, Date.UTC(2026, 0, 1, 12) / 1_000];
    const path = `/streams/${world.feedIds[0]}/at/${summer}`;
    const { page } = await world.openPage({ path });
    const title = page.getByRole('heading', { level: 1 }).getByRole('time');
    await expect.poll(() => title.textContent()).toBe('2026-07-01 12:00:00 UTC');
    const tab = await page.context().newPage();
    await tab.goto(`${world.url}/streams/${world.feedIds[0]}/at/${winter}`);
    const other = tab.getByRole('heading', { level: 1 }).getByRole('time');
    await other.waitFor();
    await page.getByRole('button', { name: /^Times are/ }).click();
    await expect.poll(() => title.textContent()).toBe('2026-07-01 14:00:00 +02:00'); // Berlin
    await expect.poll(() => title.getAttribute('title')).toBe('2026-07-01 12:00:00 UTC');
    await tab.getByText('2026-01-01 13:00:00 +01:00').first().waitFor();
    await page.reload();
    await expect.poll(() => title.textContent()).toBe('2026-07-01 14:00:00 +02:00');
  },
  timeout,
);

test(
  'focus: it stays in the page when dialogs close, menus go, and the user signs out',
  async () => {
    const { page } = await world.openPage({ signedIn: true });
    await page.getByText(world.userId.slice(0, 8)).first().waitFor();
    await page.locator('.account > summary').press('Enter');
    await page.getByRole('button', { name: 'Copy user ID' }).press('Enter');
    await expect.poll(() => focused(page)).toBe('BUTTON');
    await page.keyboard.press('Escape');
    await expect.poll(() => focused(page)).toBe('SUMMARY');
    for (const name of ['Inspect a report', 'Status', 'Streams']) {
      await page.getByRole('navigation').getByRole('link', { name }).press('Enter');
      await expect.poll(() => focused(page)).toBe('MAIN');
    }
    await page.locator('.account > summary').press('Enter');
    await page.getByRole('button', { name: 'Sign out' }).press('Enter');
    const signIn = page.getByRole('button', { name: 'Sign in', exact: true }).first();
    await signIn.waitFor();
    await expect.poll(() => focused(page)).toBe('BUTTON');
    await signIn.press('Enter');
    await page.getByLabel('User ID').fill(world.userId);
    await page.getByLabel('Secret').fill(world.secret);
    await page.getByLabel('Secret').press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.getByText(world.userId.slice(0, 8)).first().waitFor();
    await expect.poll(() => focused(page)).toBe('MAIN');
  },
  timeout,
);

test(
  'alerts: "Edit" moves the focus to the form each time, and back when the alert is saved, which is announced',
  async () => {
    const { page } = await world.openPage({ path: `/alerts?feed=${world.feedIds[0]}` });
    const offered = async () =>
      (await page.getByRole('combobox', { name: 'Stream' }).getByRole('option').allTextContents()).join();
    await expect.poll(offered).toContain('ETH/USD');
    expect(await offered()).not.toContain('FTM/'); // it has ended
    await page.getByRole('combobox', { name: 'When' }).selectOption('stale');
    await page.getByRole('button', { name: 'Add alert' }).press('Enter');
    await page.getByRole('status').filter({ hasText: 'Alert added.' }).waitFor();
    await page.getByRole('button', { name: 'Edit: No report for 5 intervals' }).press('Enter');
    const field = () => page.evaluate(() => document.activeElement?.closest('label')?.textContent);
    await expect.poll(field).toMatch(/^When/);
    await page.getByRole('textbox', { name: 'Intervals' }).fill('7');
    await page.getByRole('button', { name: 'Edit: No report for 5 intervals' }).press('Enter');
    await expect.poll(field).toMatch(/^When/);
    await page.getByRole('button', { name: 'Save', exact: true }).press('Enter');
    await page.getByRole('status').filter({ hasText: 'Alert saved.' }).waitFor();
    const focusedLabel = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
    await expect.poll(focusedLabel).toBe('Edit: No report for 7 intervals');
  },
  timeout,
);

test(
  'alerts: the level of an interest rate is in percent; the address has it as a ratio, as reports do',
  async () => {
    const { feeds } = await (await fetch(`${world.url}/api/v1/discovery?base_asset=SOFR`)).json();
    const { page } = await world.openPage({ path: `/alerts?feed=${feeds[0].feedId}&level=0.041814` });
    const level = page.getByRole('textbox', { name: 'Level (%)' });
    await expect.poll(() => level.inputValue()).toBe('4.1814');
    await level.fill('4,25');
    await page.getByRole('button', { name: 'Add alert' }).press('Enter');
    await page.getByText('Enter a rate in percent, such as 4.25, with at most 16 decimals.').waitFor();
    await level.fill('4.25');
    await page.getByRole('button', { name: 'Add alert' }).press('Enter');
    await page.getByRole('button', { name: 'Edit: Rate rises to 4.25 % or above, once' }).press('Enter');
    await page.getByRole('button', { name: 'Save', exact: true }).waitFor();
    await expect.poll(() => level.inputValue()).toBe('4.25');
  },
  timeout,
);

test(
  'alerts: a crossing is shown in every tab, kept in the history, and notified by one tab only',
  async () => {
    const path = `/alerts?feed=${world.feedIds[0]}`;
    const prepare = (opened: Page) =>
      opened.addInitScript(() => {
        const told: string[] = [];
        class Notification extends EventTarget {
          static permission = 'granted';
          static requestPermission = async () => 'granted';
          constructor(title: string) {
            super();
            told.push(title);
          }
        }
        Object.assign(window, { Notification, told });
      });
    const { page, expectAccessible } = await world.openPage({ path, signedIn: true, prepare });
    await page.getByRole('combobox', { name: 'When' }).waitFor();
    const tab = await page.context().newPage();
    await prepare(tab);
    await tab.goto(`${world.url}/alerts`);
    await tab.getByText(world.userId.slice(0, 8)).first().waitFor();
    // A level on either side of the price: the first report beyond one of them triggers. If the price left before they were there, again.
    const isShown = async (): Promise<boolean> => {
      const price = await fetchLatestPrice();
      for (const [direction, share] of [
        ['above', 10_002n],
        ['below', 9_998n],
      ] as const) {
        await page.getByRole('combobox', { name: 'When' }).selectOption(direction);
        await page.getByRole('textbox', { name: 'Level' }).fill(formatDecimal((price * share) / 10_000n));
        await page.getByRole('button', { name: 'Add alert' }).click();
      }
      const first = page.locator('.toast').first();
      return first.waitFor({ timeout: 15_000 }).then(
        () => true,
        () => false,
      );
    };
    for (let attempt = 1; !(await isShown()); attempt++) expect(attempt).toBeLessThan(12);
    await tab.locator('.toast').first().waitFor();
    await expectAccessible();
    const events = async (one: Page) => one.locator('.alert-event').count();
    const told = (one: Page) => one.evaluate(() => (window as unknown as { told: string[] }).told.length); // as prepared
    await expect.poll(async () => (await told(page)) + (await told(tab))).toBeGreaterThan(0);
    expect(Math.min(await told(page), await told(tab))).toBe(0);
    await expect.poll(async () => (await events(tab)) - (await events(page))).toBe(0);
    await page.locator('.toast button').first().press('Enter');
    expect(await focused(page)).not.toBe('BODY');
  },
  timeout,
);

const fetchLatestPrice = async (): Promise<bigint> => {
  const response = await fetchSigned(world.url, `/api/v1/reports/latest?feedID=${world.feedIds[0]}`, world);
  const { report } = (await response.json()) as { readonly report: ReportJson }; // as the API documents
  return decode(report).price;
};
