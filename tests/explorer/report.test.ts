// A report and its proof, and the inspect page, used as a person does, in real Chromium on the real demo.
import { readFileSync } from 'node:fs';
import { decode, formatDecimal } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import vectors from '@sealpost/protocol/vectors/verification.json' with { type: 'json' };
import type { Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { fetchSigned } from '../support/real-program.ts';
import { type ExplorerWorld, openExplorerTimeoutMs, openExplorerWorld, testTimeoutMs as timeout } from './world.ts';

let world: ExplorerWorld;
beforeAll(async () => {
  world = await openExplorerWorld();
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

/** The body of the API's answer, read without the page. */
const read = async (query: string): Promise<string> =>
  (await fetchSigned(world.url, `/api/v1/reports${query}`, world)).text();
const reportOf = (body: string): ReportJson => (JSON.parse(body) as { readonly report: ReportJson }).report; // as the API documents
const latest = async (): Promise<ReportJson> => reportOf(await read(`/latest?feedID=${world.feedIds[0]}`));

const verdict = (page: Page, state: 'verified' | 'refused' | 'unknown') =>
  page.locator(`.verdict[data-state=${state}]`);

const pathOf = ({ feedID }: ReportJson, second: number): string => `/streams/${feedID}/at/${second}`;

/** The same report with the last bit of its price flipped: the seventh field of a body that begins at byte 256. */
const forge = (fullReport: string): string => {
  const at = 2 + 2 * (256 + 7 * 32) - 1;
  const digit = (Number.parseInt(fullReport.charAt(at), 16) ^ 1).toString(16);
  return `${fullReport.slice(0, at)}${digit}${fullReport.slice(at + 1)}`;
};

const expectInView = async (page: Page): Promise<void> => {
  const bottom = () => page.locator('.verdict-title').evaluate((title) => title.getBoundingClientRect().bottom);
  await expect.poll(bottom).toBeLessThan(page.viewportSize()?.height ?? 0);
  const [first] = await page
    .locator('.verdict, .price, .fields, .dump')
    .evaluateAll((cards) => cards.map((card) => card.className));
  expect(first).toContain('verdict');
};

test(
  'report: one that the server altered shows its verdict first, at any size, and no price that looks real',
  async () => {
    const { observationsTimestamp: at, ...report } = await latest();
    const { page, expectAccessible } = await world.openPage({
      path: `/streams/${report.feedID}/at/${at}`,
      viewport: 'phone',
      signedIn: true,
      prepare: (opened) =>
        opened.route('**/api/v1/reports?*', async (route: Route) => {
          const response = await route.fetch();
          const answer = reportOf(await response.text());
          await route.fulfill({ response, json: { report: { ...answer, fullReport: forge(answer.fullReport) } } });
        }),
    });
    await verdict(page, 'refused').getByText('Not verified: no valid signature').waitFor();
    await verdict(page, 'refused').getByText('This is the server’s own copy').waitFor();
    await expectInView(page);
    await page.setViewportSize({ width: 320, height: 568 });
    await expectInView(page);
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
    await page.locator('.price s').waitFor();
    await page.locator('.price').getByText('not verified').waitFor();
    expect(await page.title()).not.toMatch(/[0-9]\.[0-9]/);
    await expectAccessible();
  },
  timeout,
);

test(
  'report: links to the parts of the page have their names, and move the focus to them',
  async () => {
    const newest = await latest();
    const { page } = await world.openPage({ path: pathOf(newest, newest.observationsTimestamp), signedIn: true });
    const links = page.getByRole('navigation', { name: 'Parts of this page' }).getByRole('link');
    await links.first().waitFor();
    const names = await links.allTextContents();
    expect(names).toHaveLength(6);
    for (const name of names) {
      await links.filter({ hasText: name }).press('Enter');
      await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe(name);
    }
  },
  timeout,
);

/** Decimals of a price without zeros at its end. */
const decimalsOf = (price: bigint | undefined): number => formatDecimal(price ?? 0n).split('.')[1]?.length ?? 0;

test(
  'report: all prices of its field table have as many decimals as the price above it, also those that end in zeros',
  async () => {
    const newest = await latest();
    // Of the last two minutes, which the demo begins with, and none at their ends: the page asks for its neighbors.
    const { reports } = JSON.parse(
      await read(`/page?feedID=${newest.feedID}&startTimestamp=${newest.observationsTimestamp - 100}&limit=90`),
    ) as { readonly reports: readonly ReportJson[] }; // as the API documents
    const uneven = reports.find((report) => {
      const { price, bid, ask } = decode(report);
      return new Set([price, bid, ask].map(decimalsOf)).size > 1;
    });
    const { page } = await world.openPage({
      path: pathOf(newest, uneven?.observationsTimestamp ?? 0),
      signedIn: true,
    });
    await verdict(page, 'verified').waitFor();
    const texts = await page.locator('.price .exact, .fields tr:has-text("USD ×") .exact').allTextContents();
    expect([texts.length, new Set(texts.map((text) => text.split('.')[1]?.length)).size]).toEqual([6, 1]);
  },
  timeout,
);

test(
  'report: keys and buttons step to the neighbors, not while typing, and the newest report gets a next one when it arrives',
  async () => {
    const newest = await latest();
    const second = newest.observationsTimestamp - 5;
    const { page } = await world.openPage({ path: pathOf(newest, second), signedIn: true });
    await verdict(page, 'verified').waitFor();
    const button = (name: RegExp) => page.getByRole('button', { name }).and(page.locator(':not([aria-disabled])'));
    await button(/Previous/).waitFor();
    await page.keyboard.press('ArrowLeft');
    await page.waitForURL(`**/at/${second - 1}`);
    await verdict(page, 'verified').waitFor();
    await button(/Next/).click();
    await page.waitForURL(`**/at/${second}`);
    await page.waitForFunction(() => document.activeElement?.textContent === 'Next →');
    await page.getByRole('combobox').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Alt+ArrowUp');
    expect(page.url()).toContain(`/at/${second}`);
    const { observationsTimestamp: last } = await latest();
    await page.goto(`${world.url}${pathOf(newest, last)}`);
    await button(/Next/).waitFor();
    await page.keyboard.press('ArrowRight');
    await page.waitForURL(`**/at/${last + 1}`);
    await page.goBack();
    await page.waitForURL(`**/at/${last}`);
  },
  timeout,
);

test(
  'report: raw JSON is the answer of the API, to copy and to download',
  async () => {
    const { feedID, observationsTimestamp } = await latest();
    const answer = await read(`?feedID=${feedID}&timestamp=${observationsTimestamp}`);
    const { page } = await world.openPage({ path: `/streams/${feedID}/at/${observationsTimestamp}`, signedIn: true });
    await page.getByRole('link', { name: 'Raw JSON' }).click();
    await expect.poll(() => page.locator('.raw-json code').textContent()).toBe(answer);
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Raw JSON');
    await page.getByRole('button', { name: 'Copy JSON' }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(answer);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ]);
    expect(readFileSync(await download.path(), 'utf8')).toBe(answer);
    expect(download.suggestedFilename()).toBe(`report-${feedID.slice(0, 10)}-${observationsTimestamp}.json`);
  },
  timeout,
);

test(
  'inspect: without an account the example is labeled and verified; one altered bit is found, with the signed value',
  async () => {
    const { page, expectAccessible } = await world.openPage({
      path: '/inspect',
      viewport: 'phone',
      theme: 'dark',
    });
    await page.getByRole('button', { name: 'Load an example' }).click();
    await verdict(page, 'verified').getByText('example', { exact: true }).waitFor();
    await page.getByText('Its stream does not exist').waitFor();
    await expectInView(page);
    await expectAccessible();
    await page.getByRole('button', { name: 'Alter one bit' }).click();
    await verdict(page, 'refused').getByText('Not verified: altered').waitFor();
    await verdict(page, 'refused').getByText('ask was altered').waitFor();
    await expect
      .poll(() => page.locator('tr.altered .altered-text').textContent())
      .toMatch(/^Altered, signed:[0-9.,]+here:[0-9.,]+$/);
    await expect.poll(() => page.locator('.dump-words mark').count()).toBe(1);
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Restore the bit');
    await expectAccessible();
    await page.getByRole('button', { name: 'Clear' }).click();
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('TEXTAREA');
  },
  timeout,
);

test(
  'inspect: signed in, a forged report is compared with the one that the server has',
  async () => {
    const { fullReport } = await latest();
    const { page } = await world.openPage({ path: '/inspect', signedIn: true });
    await page.getByRole('textbox').fill(fullReport);
    await verdict(page, 'verified').waitFor();
    await page.getByRole('textbox').fill(forge(fullReport));
    await verdict(page, 'refused').getByText('price was altered').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByRole('button', { name: 'Load an example' }).click();
    await page.getByText(/^Example: the newest report of .+ on this server\.$/).waitFor();
    await verdict(page, 'verified').waitFor();
  },
  timeout,
);

test(
  'inspect: an unknown signer set and missing signers are no forgeries, but the price stays gray',
  async () => {
    let isDown = true;
    const { page, allow } = await world.openPage({
      path: '/inspect',
      prepare: (opened) => opened.route('**/signers.json', (route) => (isDown ? route.abort() : route.continue())),
    });
    allow(/Failed to load resource/);
    const { fullReport } = await latest();
    await page.getByRole('textbox').fill(fullReport);
    await verdict(page, 'unknown').getByText('Cannot be verified: signers unavailable').waitFor();
    await page.locator('.price').getByText('not verified').waitFor();
    isDown = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('SECTION');
    await verdict(page, 'verified').waitFor();
    await page.getByRole('textbox').fill(vectors.cases[0]?.fullReport ?? '');
    await verdict(page, 'unknown').getByText('Cannot be verified: unknown signer set').waitFor();
    await page.route(/\/assets\/example-/, (route) => route.abort());
    await page.getByRole('button', { name: 'Load an example' }).click();
    await page.getByText('The example did not load: A part of this page did not load.').waitFor();
    await page.getByText('Below is still what you gave before, not the example.').waitFor();
  },
  timeout,
);

test(
  'inspect: a dropped file of bytes is inspected, and of a file with several reports one is chosen by keyboard',
  async () => {
    const { feedID, observationsTimestamp: at, fullReport } = await latest();
    const other = reportOf(await read(`?feedID=${feedID}&timestamp=${at - 3}`));
    const { page } = await world.openPage({ path: '/inspect' });
    await page.getByRole('textbox').waitFor();
    const transfer = await page.evaluateHandle((digits) => {
      const bytes = Uint8Array.from(digits.match(/../g) ?? [], (two) => Number.parseInt(two, 16));
      const files = new DataTransfer();
      files.items.add(new File([bytes], 'report.bin'));
      return files;
    }, fullReport.slice(2));
    await page.locator('main').dispatchEvent('dragover', { dataTransfer: transfer });
    await page.getByText('Drop the file to inspect it').waitFor();
    await page.locator('main').dispatchEvent('drop', { dataTransfer: transfer });
    await verdict(page, 'verified').waitFor();
    expect(await page.getByText('Drop the file to inspect it').count()).toBe(0);
    await expect.poll(() => page.getByRole('textbox').inputValue()).toBe(fullReport);
    const lines = [fullReport, other.fullReport].map((text) => JSON.stringify({ fullReport: text })).join('\n');
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'two.ndjson', mimeType: 'application/x-ndjson', buffer: Buffer.from(lines) });
    await page.getByText('two.ndjson, ').waitFor();
    await page.getByLabel('2 reports').focus();
    await page.keyboard.press('ArrowDown');
    await page
      .locator(`.fields .raw:has-text("${at - 3}")`)
      .first()
      .waitFor();
    await verdict(page, 'verified').waitFor();
  },
  timeout,
);
