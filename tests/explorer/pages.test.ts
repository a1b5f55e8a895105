// The explorer's pages, used as a person does, in real Chromium on the real demo.
import { feeTokens, verifyBulkCalldata, verifyCalldata } from '@sealpost/client/onchain';
import type { ReportJson } from '@sealpost/protocol';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createSignInCode } from '../../server/src/access/sign-in-code.ts';
import { countOf } from '../support/full-count.ts';
import { fetchSigned } from '../support/real-program.ts';
import { type ExplorerWorld, openExplorerTimeoutMs, openExplorerWorld, testTimeoutMs as timeout } from './world.ts';

let world: ExplorerWorld;
beforeAll(async () => {
  world = await openExplorerWorld();
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

/** The newest report of the first stream, read without the page. */
const latest = async (): Promise<ReportJson> => {
  const response = await fetchSigned(world.url, `/api/v1/reports/latest?feedID=${world.feedIds[0]}`, world);
  return ((await response.json()) as { readonly report: ReportJson }).report; // as the API documents
};

const heading = (page: Page) => page.getByRole('heading', { level: 1 }).first();
const verdict = (page: Page, state: 'verified' | 'refused') => page.locator(`.verdict[data-state=${state}]`);

/** The path of each page, and what to wait for until it is complete. */
const pages: Readonly<
  Record<string, { readonly path: () => Promise<string>; readonly ready: (page: Page) => Promise<void> }>
> = {
  catalog: {
    path: async () => '/',
    ready: (page) =>
      page
        .getByText(/^[0-9,]+\.[0-9]/)
        .first()
        .waitFor(),
  },
  stream: {
    path: async () => `/streams/${world.feedIds[0]}`,
    ready: (page) => page.locator('canvas').first().waitFor(),
  },
  report: {
    path: async () => `/streams/${world.feedIds[0]}/at/${(await latest()).observationsTimestamp}`,
    ready: (page) => verdict(page, 'verified').waitFor(),
  },
  alerts: { path: async () => '/alerts', ready: (page) => page.getByRole('combobox').first().waitFor() },
  inspect: { path: async () => '/inspect', ready: (page) => page.getByRole('textbox').waitFor() },
  docs: { path: async () => '/docs', ready: (page) => page.locator('article#reportLatest').waitFor() },
  'not found': { path: async () => '/nothing', ready: (page) => heading(page).waitFor() },
  status: {
    path: async () => '/status',
    ready: (page) =>
      page
        .getByText(/^(Ready|Not ready)$/)
        .first()
        .waitFor(),
  },
};

const widthCount = countOf(2, 4);
/** Pixels; narrow ones are of touch screens. */
const widths = [1_280, 390, 1_440, 1_024, 768, 320].slice(0, widthCount);
/** Of narrow windows, which a desktop has too. */
const otherWidths = [1_440, 768, 320];
type Themes = readonly ('light' | 'dark')[];
/**
 * In `npm test` one theme at each width, because axe-core takes a second of CPU for each; none for the docs, which take it several and are
 * tested in parts.
 */
const themesAt = (width: number, name: string): Themes =>
  widthCount > 2 ? ['light', 'dark'] : name === 'docs' ? [] : width < 768 ? ['light'] : ['dark'];

test.each(Object.keys(pages).flatMap((name) => widths.map((width) => [name, width, themesAt(width, name)] as const)))(
  '%s at %i pixels, %j: breaks no rule of accessibility, and nothing runs out of the screen',
  async (name, width, themes) => {
    const { path, ready } = pages[name] as (typeof pages)[string]; // one of its keys
    const { page, allow, expectAccessible } = await world.openPage({
      path: await path(),
      viewport: width < 768 ? 'phone' : 'desktop',
      signedIn: true,
    });
    if (name === 'not found') allow(/404/);
    await page.setViewportSize({ width, height: 844 });
    await heading(page).waitFor();
    await ready(page);
    for (const theme of themes) {
      await page.emulateMedia({ colorScheme: theme });
      await expectAccessible();
    }
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    for (const narrower of [width, ...(width < 768 ? [] : otherWidths)]) {
      await page.setViewportSize({ width: narrower, height: 844 });
      await expect.poll(overflow, { message: `at ${narrower} pixels` }).toBeLessThanOrEqual(0);
    }
  },
  timeout,
);

test(
  'sign-in: the link signs in, and neither the address bar nor the history keeps its code',
  async () => {
    const { page } = await world.openPage({ path: '/?q=eth', signedIn: true });
    await page.getByText(world.userId.slice(0, 8)).first().waitFor();
    expect(page.url()).toBe(`${world.url}/?q=eth`);
    await page.getByRole('link', { name: 'Status' }).first().click();
    await page.goBack();
    expect(page.url()).not.toContain('#');
  },
  timeout,
);

test(
  'sign-in: a reload and a new tab are signed in too, until the user signs out in one of them',
  async () => {
    const { page } = await world.openPage({ path: '/inspect', signedIn: true });
    const account = page.getByText(world.userId.slice(0, 8)).first();
    await account.waitFor();
    await page.reload();
    await account.waitFor();
    const tab = await page.context().newPage();
    await tab.goto(`${world.url}/alerts`);
    await tab.getByText(world.userId.slice(0, 8)).first().click();
    await tab.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in', exact: true }).first().waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Sign in', exact: true }).first().waitFor();
  },
  timeout,
);

test(
  'sign-in: a used link says so',
  async () => {
    const code = createSignInCode(world.secret, Date.now());
    const headers = { 'X-Sign-In-Code': code };
    const exchanged = await fetch(`${world.url}/sign-in`, { method: 'POST', headers });
    expect(await exchanged.json()).toEqual({ userId: world.userId, secret: world.secret });
    const { page, allow } = await world.openPage({
      prepare: (opened) =>
        opened.addInitScript((text) => {
          if (location.pathname === '/') location.hash = `#sign-in=${text}`;
        }, code),
    });
    allow(/status of 401/);
    await page.getByText('You are not signed in: The link was already used or has expired.').waitFor();
  },
  timeout,
);

test(
  'sign-in: a link opened while signed in asks before it switches accounts',
  async () => {
    const { page } = await world.openPage({ path: '/inspect', signedIn: true });
    await page.getByText(world.userId.slice(0, 8)).first().waitFor();
    const code = createSignInCode(world.secret, Date.now());
    await page.evaluate((text) => {
      location.hash = `#sign-in=${text}`;
    }, code);
    await page.getByText('Switch to the link’s account?').waitFor();
    expect(page.url()).not.toContain('#');
    await page.getByRole('button', { name: 'Switch account' }).click();
    await page.getByText('Switch to the link’s account?').waitFor({ state: 'hidden' });
    await page.getByText(world.userId.slice(0, 8)).first().waitFor();
  },
  timeout,
);

test(
  'sign-in: Escape cancels it; a wrong secret explains itself, and the right one then signs in',
  async () => {
    const { page, allow } = await world.openPage();
    allow(/status of 401/);
    const dialog = page.getByRole('dialog');
    let held: () => void = () => {};
    await page.route('**/api/v1/feeds', async (route) => {
      await new Promise<void>((resolve) => {
        held = resolve;
      });
      await route.continue().catch(() => {}); // canceled
    });
    await page.getByRole('button', { name: 'Sign in' }).first().click();
    await dialog.getByLabel('User ID').fill(world.userId);
    await dialog.getByLabel('Secret').fill(world.secret);
    const canceled = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/api/v1/feeds'));
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await dialog.getByRole('button', { name: 'Signing in…' }).waitFor();
    await page.keyboard.press('Escape');
    await canceled;
    held();
    await page.unroute('**/api/v1/feeds');
    await page.getByRole('button', { name: 'Sign in' }).first().click();
    await dialog.getByLabel('User ID').fill(world.userId);
    await dialog.getByLabel('Secret').fill('not-the-secret');
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await dialog
      .getByRole('alert')
      .getByText(/secret/i)
      .first()
      .waitFor();
    await dialog.getByLabel('Secret').fill(world.secret);
    await dialog.getByLabel('Remember on this device').check();
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByText(world.userId.slice(0, 8)).first().waitFor();
  },
  timeout,
);

test(
  'on-chain: the call of a verifier contract is chosen by keyboard, for a fee token, and a wrong token is explained',
  async () => {
    const { fullReport } = await latest();
    const { page, expectAccessible } = await world.openPage({ path: '/inspect', viewport: 'phone' });
    await page.getByRole('textbox').fill(fullReport);
    const card = page.locator('.payload');
    await card
      .getByText(`cast call "$SEALPOST_VERIFIER" 'verify(bytes,bytes)(bytes)' ${fullReport} 0x --rpc-url`)
      .waitFor();
    await card.getByText(verifyCalldata(fullReport), { exact: true }).waitFor();
    await card.getByRole('radio').first().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Tab');
    await page.keyboard.type('Base: L');
    await card.getByText(verifyBulkCalldata([fullReport], feeTokens[8453].link), { exact: true }).waitFor();
    await card.getByRole('combobox').selectOption('Another token…');
    await card.getByLabel('Address of the fee token').fill('0x12');
    await card.getByText('Enter the address of the token’s contract: 0x and 40 hex digits.').waitFor();
    expect(await card.getByText('cast call').count()).toBe(0);
    await expectAccessible();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  },
  timeout,
);
