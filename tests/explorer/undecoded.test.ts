// Streams whose fields no release knows, in real Chromium on a sandbox that replays them: each page says so and gives the signed report (D246).
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FeedId, parseFeedId } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createSchemaReports, streamOfSchema } from '../support/exports/schema-reports.ts';
import { undecodedBody, undecodedStream } from '../support/exports/undecoded-bodies.ts';
import { testStream } from '../support/running-ingest.ts';
import { type ExplorerWorld, openExplorerTimeoutMs, openSandboxWorld, testTimeoutMs as timeout } from './world.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-undecoded-'));
const start = Date.parse('2026-03-14T12:00:00Z') / 1_000;
const pastSeconds = 120;
const futureSeconds = 30;

const layout = 'version 14 with contractMonth as text';
/** `changed` is decoded until the sandbox starts, and then has another layout; `fine` is in milliseconds. */
const streams = {
  text: undecodedStream(layout),
  changed: streamOfSchema(14),
  fine: parseFeedId(`0x1fff${'c'.repeat(60)}`),
  known: streamOfSchema(3),
} as const;

/** A report of each stream for every second, and of `fine` for every half. */
const recorded = async (): Promise<string> => {
  const { sign } = await createNetwork({ seed: 'undecoded' });
  const { report } = await createSchemaReports();
  const lines: string[] = [];
  const add = (fullReport: string): void => void lines.push(`${JSON.stringify({ fullReport })}\n`);
  const addKnown = (feedId: FeedId, version: 3 | 14, second: number): void => {
    const price = 64n * 10n ** 18n + BigInt(second % 60) * 10n ** 15n;
    const [bid, ask] = [price - 10n ** 16n, price + 10n ** 16n];
    const sides = { price, bid, ask, midPrice: price, bidPrice: bid, askPrice: ask, marketStatus: 2 };
    add(`0x${Buffer.from(report(feedId, version, second, 0, sides).fullReport).toString('hex')}`);
  };
  const addUnknown = (feedId: FeedId, at: number): void =>
    add(sign(undecodedBody(layout, { feedId, validFrom: at, observations: at }), 1));
  for (let second = start - pastSeconds; second < start + futureSeconds; second += 1) {
    addKnown(streams.known, 3, second);
    addUnknown(streams.text, second);
    addUnknown(streams.fine, second * 1_000);
    addUnknown(streams.fine, second * 1_000 + 500);
    if (second < start) addKnown(streams.changed, 14, second);
    else addUnknown(streams.changed, second);
  }
  return lines.join('');
};

let world: ExplorerWorld;
beforeAll(async () => {
  const [file, catalog] = [join(folder, 'reports.ndjson'), join(folder, 'catalog.json')];
  writeFileSync(file, await recorded());
  const entries = Object.entries(streams).map(([name, feedId]) =>
    testStream(feedId, { name: `${name}/USD`, baseAsset: name.toUpperCase(), assetName: `The ${name} stream` }),
  );
  writeFileSync(catalog, JSON.stringify(entries));
  const at = new Date((start - pastSeconds) * 1_000).toISOString();
  // Its time stands still, so that all that it has to replay is what the tests look at.
  const sandbox = await openSandboxWorld(['--at', at, '--paused', '--replay', file, '--catalog', catalog]);
  world = sandbox;
  const stepped = await fetch(`${sandbox.opsUrl}/sandbox/events`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ type: 'step', by: `${pastSeconds + 20}s` }),
  });
  expect([stepped.status, await stepped.json()]).toEqual([200, expect.anything()]);
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(async () => {
  await world?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Nothing on the page waits, failed, or is a number that is none. */
const expectPlain = async (page: Page): Promise<void> => {
  await expect.poll(() => page.locator('main .skeleton').count()).toBe(0);
  expect(await page.locator('main').innerText()).not.toMatch(/NaN|undefined|Infinity|Try again/);
};

const unknown = 'it has schema version 4095, which this page does not know.';
const otherLayout = 'it has another layout of schema version 14 than the one that this page knows.';

test.each(['desktop'] as const)(
  'the list marks streams whose fields are not known, with their age; %s',
  async (viewport) => {
    const { page, expectAccessible } = await world.openPage({ viewport, signedIn: true });
    await page.locator('[data-row]', { hasText: 'KNOWN/USD' }).locator('.exact').first().waitFor();
    for (const name of ['TEXT/USD', 'FINE/USD', 'CHANGED/USD']) {
      const row = page.locator('[data-row]', { hasText: name });
      await row.locator('.state-mark', { hasText: 'Fields not known' }).waitFor();
      await row.locator('.freshness').waitFor();
    }
    expect(await page.getByText('Fields not known').count()).toBe(3);
    await expectPlain(page);
    await expectAccessible();
  },
  timeout,
);

test.each([
  ['desktop', 'text', otherLayout],
  ['desktop', 'fine', unknown],
  ['phone', 'changed', otherLayout],
] as const)(
  'the page on %s of the stream “%s” says that there is no price and why, lists its reports, and opens the newest',
  async (viewport, name, why) => {
    const path = `/streams/${streams[name]}`;
    const { page, expectAccessible } = await world.openPage({ path, viewport, signedIn: true });
    await page.getByText(`The fields of the newest report are not known, and so not its price: ${why}`).waitFor();
    expect(await page.locator('.stream-price .exact').count()).toBe(0);
    await page.locator('.report-table').getByText('not known').nth(5).waitFor();
    await page.locator('[aria-labelledby=completeness-title]').getByText('100 %').first().waitFor();
    const note = page.getByText('No price to draw: the fields of the reports are not known.');
    if (name === 'changed')
      await page.locator('.legend-value').first().waitFor(); // of before
    else await note.waitFor();
    await expectPlain(page);
    if (name !== 'fine') await expectAccessible(); // it looks like `text`
    await page.getByRole('link', { name: 'Open the signed report' }).click();
    await page.getByRole('heading', { name: 'Verified, but not decoded' }).waitFor();
  },
  timeout,
);

test.each(['phone'] as const)(
  'a report whose fields are not known is verified, with its window, the fields of its head and its bytes; %s',
  async (viewport) => {
    const path = `/streams/${streams.text}/at/${start - 5}`;
    const { page, expectAccessible } = await world.openPage({ path, viewport, signedIn: true });
    await page.getByRole('heading', { name: 'Verified, but not decoded' }).waitFor();
    await page.getByText(`The fields of the report are not known: ${otherLayout}`).first().waitFor();
    await page.locator('.price').getByText('Valid from').waitFor();
    await page.getByRole('button', { name: 'expiresAt: highlight its bytes' }).waitFor();
    await page.getByText('word 7', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Copy the signed report' }).click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^0x[0-9a-f]+$/);
    await expectPlain(page);
    await expectAccessible();
  },
  timeout,
);

test(
  'one of a stream in milliseconds has the neighbors within its second',
  async () => {
    const { page } = await world.openPage({ path: `/streams/${streams.fine}/at/${start - 5}`, signedIn: true });
    await page.getByRole('heading', { name: 'Verified, but not decoded' }).waitFor();
    await page.getByRole('button', { name: 'Next' }).and(page.locator(':not([aria-disabled])')).click();
    await page.waitForURL(/\?ms=\d{10}[05]00$/);
    await page.getByRole('heading', { name: 'Verified, but not decoded' }).waitFor();
    await expectPlain(page);
  },
  timeout,
);

test(
  'the price at a time, the reports of a day, and a download say that the fields are not known',
  async () => {
    const path = `/streams/${streams.text}?at=2026-03-14T11:59:50Z&day=2026-03-14`;
    const { page } = await world.openPage({ path, signedIn: true });
    await page.getByText(`The fields of the report for that time are not known: ${otherLayout}`).waitFor();
    await page.getByRole('heading', { name: 'Reports by date' }).waitFor();
    await page.locator('.report-table').getByText('not known').nth(20).waitFor();
    await page.getByRole('button', { name: 'Download' }).click();
    await page.getByText('The fields of the reports of this range are not known.').waitFor();
    await expectPlain(page);
    await page.getByRole('link', { name: 'Open report and proof' }).click();
    await page.getByRole('heading', { name: 'Verified, but not decoded' }).waitFor();
  },
  timeout,
);
