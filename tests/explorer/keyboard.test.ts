// The keyboard on every page, signed out, in real Chromium on the real demo: where Tab stops, and what Escape closes.
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type ExplorerWorld, openExplorerTimeoutMs, openExplorerWorld, testTimeoutMs as timeout } from './world.ts';

let world: ExplorerWorld;
beforeAll(async () => {
  world = await openExplorerWorld();
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

type Stop = {
  /** Empty where Tab has left the page. */
  readonly name: string;
  /** Why one does not see the focus. */
  readonly problem: string;
};

/** The focused element, as a person sees it. */
const stopAt = (page: Page): Promise<Stop> =>
  page.evaluate(() => {
    const { activeElement: element, body } = document;
    if (!(element instanceof HTMLElement) || element === body) return { name: '', problem: '' };
    const name = `${element.tagName} ${element.getAttribute('aria-label') ?? element.textContent?.trim().slice(0, 40)}`;
    const problemOf = (): string => {
      // The calendar button in a date has the browser's own ring.
      const isButtonOfDate = element.matches('input[type=date]:not(:focus-visible)');
      const styles = [getComputedStyle(element), getComputedStyle(element, '::after')];
      const ring = styles.find(({ outlineStyle }) => outlineStyle !== 'none');
      if (ring === undefined) return isButtonOfDate ? '' : 'no ring';
      const reach = Math.max(0, Number.parseFloat(ring.outlineOffset) + Number.parseFloat(ring.outlineWidth)) - 1;
      const { left, right, top, bottom } = element.getBoundingClientRect();
      const cuts = (around: Element): boolean => {
        const { overflowX, overflowY } = getComputedStyle(around);
        if (overflowX === 'visible' && overflowY === 'visible') return false;
        const edge = around.getBoundingClientRect();
        const isOver = left - reach < edge.left || right + reach > edge.right;
        return isOver || top - reach < edge.top || bottom + reach > edge.bottom;
      };
      for (let around = element.parentElement; around !== null && around !== body; around = around.parentElement)
        if (cuts(around)) return `cut off by ${around.tagName}.${around.className}`;
      const [x, y] = [
        left + Math.min(4, (right - left) / 2),
        (Math.max(0, top) + Math.min(bottom, window.innerHeight)) / 2,
      ];
      const shown = document.elementFromPoint(x, y);
      if (shown === null) return 'out of view';
      return element.contains(shown) || shown.contains(element) ? '' : `covered by ${shown.tagName}.${shown.className}`;
    };
    return { name, problem: problemOf() };
  });

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).first();
const stream = (): string => `/streams/${world.feedIds[0]}`;

type State = {
  readonly path: () => string;
  /** Waits until the page is complete. */
  readonly ready: (page: Page) => Promise<unknown>;
  /** A stop behind which there are as many of the same kind again. */
  readonly last?: RegExp;
};

const states: Readonly<Record<string, State>> = {
  'the list with its filters open': {
    path: () => '/?q=jpy&status=live', // one row: the next state has all of them
    ready: async (page) => {
      await page.locator('[data-row="0"]').waitFor();
      await page.getByRole('button', { name: /^Filters/ }).click();
      await page.locator('#filters').waitFor();
    },
  },
  'the list with its columns open': {
    path: () => '/',
    ready: async (page) => {
      await page.locator('[data-row="0"]').waitFor();
      await button(page, 'Columns').click();
      await page.locator('#columns').waitFor();
    },
  },
  'a stream with its programs': {
    path: stream,
    ready: async (page) => {
      await button(page, 'Use it').click();
      await page.locator('.code-sample-text').waitFor();
    },
  },
  'an unknown stream': {
    path: () => `/streams/0x0003${'f'.repeat(60)}`,
    ready: (page) => page.getByRole('heading', { name: 'Stream not found' }).waitFor(),
  },
  'a report': { path: () => `${stream()}/at/1`, ready: (page) => page.getByText('Sign in to read reports').waitFor() },
  'the inspected example': {
    path: () => '/inspect',
    ready: async (page) => {
      await button(page, 'Load an example').click();
      await page.locator('.verdict[data-state=verified]').waitFor();
    },
  },
  status: { path: () => '/status', ready: (page) => page.locator('.signer-set').first().waitFor() },
  alerts: { path: () => '/alerts', ready: (page) => page.getByRole('combobox').first().waitFor() },
  docs: {
    path: () => '/docs',
    ready: async (page) => {
      await page.locator('article#reportAt').waitFor();
      await page.getByRole('button', { name: /^Try it GET \/api\/v1\/reports$/ }).click();
    },
    last: /^BUTTON Copy the URL of GET \/api\/v1\/reports\/bulk$/,
  },
  'an address without a page': { path: () => '/nothing', ready: (page) => page.getByRole('heading').first().waitFor() },
};

/** More stops than any page has. */
const stopsMax = 200;

test.each(Object.keys(states))(
  'keyboard: Tab walks through %s, and the focus is visible at every stop',
  async (name) => {
    const { path, ready, last = /^A TradingView Lightweight Charts$/ } = states[name] as State; // one of its keys
    const { page, allow } = await world.openPage({ path: path() });
    allow(/404/);
    await page.setViewportSize({ width: 1_440, height: 900 });
    await ready(page);
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur()); // what was clicked
    await page.getByRole('link', { name: 'Skip to content' }).focus();
    const stops: Stop[] = [];
    while (stops.length < stopsMax && !last.test(stops.at(-1)?.name ?? '')) {
      await page.keyboard.press('Tab');
      stops.push(await stopAt(page));
    }
    expect(stops.filter(({ name: stop, problem }) => stop === '' || problem !== '')).toEqual([]);
    expect(stops.length).toBeLessThan(stopsMax);
  },
  timeout,
);

test(
  'keyboard: while the focus is in the contents of the docs, they do not follow the page, so that it stays visible',
  async () => {
    const { page } = await world.openPage({ path: '/docs' });
    await page.setViewportSize({ width: 1_440, height: 500 });
    const contents = page.getByRole('navigation', { name: 'API docs' });
    const isCurrent = (name: string) =>
      contents.getByRole('link', { name, exact: true }).and(page.locator('[aria-current]')).waitFor();
    await isCurrent('Base URL');
    const last = contents.getByRole('link', { name: 'Error codes' });
    await last.press('Shift'); // focuses it as the keyboard does
    await page.evaluate(() => document.querySelector('#errors')?.scrollIntoView());
    await isCurrent('Errors');
    expect(await stopAt(page)).toEqual({ name: 'A Error codes', problem: '' });
    await last.blur();
    await page.evaluate(() => document.querySelector('#base-url')?.scrollIntoView());
    await isCurrent('Base URL');
    await expect.poll(() => contents.evaluate(({ scrollTop }) => scrollTop)).toBeLessThan(100);
  },
  timeout,
);

test(
  'keyboard: Escape closes the programs of a stream and the form of a request, and the focus returns to their buttons',
  async () => {
    const { page } = await world.openPage({ path: stream() });
    const isFocused = (name: string) =>
      page
        .getByRole('button', { name })
        .first()
        .evaluate((one) => one === document.activeElement);
    await button(page, 'Use it').press('Enter');
    await button(page, 'Live reports').press('Escape');
    await expect.poll(() => isFocused('Use it')).toBe(true);
    await expect.poll(() => page.locator('.code-sample-text').count()).toBe(0);
    await page.getByRole('link', { name: 'API docs' }).first().click();
    const form = page.locator('#discovery-try');
    await page.getByRole('button', { name: 'Try it GET /api/v1/discovery' }).press('Enter');
    await form.getByRole('button', { name: 'Send' }).press('Escape');
    await form.waitFor({ state: 'hidden' });
    await expect.poll(() => isFocused('Try it GET /api/v1/discovery')).toBe(true);
  },
  timeout,
);
