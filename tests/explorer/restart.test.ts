// Pages while the server is away and when it is back, in real Chromium on a demo of their own, which has the default rate limits.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { fetchSigned } from '../support/real-program.ts';
import { listed } from './stream-page.ts';
import {
  openExplorerTimeoutMs,
  openRestartableWorld,
  patienceMs,
  type RestartableWorld,
  testTimeoutMs as timeout,
} from './world.ts';

let world: RestartableWorld;
beforeAll(async () => {
  world = await openRestartableWorld();
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

test(
  'pages show that the server is down, and recover when it is back',
  async () => {
    const catalog = await world.openPage({ path: '/?q=btc', signedIn: true });
    const stream = await world.openPage({ path: `/streams/${world.feedIds[0]}`, signedIn: true });
    const status = await world.openPage({ path: '/status', signedIn: true });
    for (const { allow } of [catalog, stream, status]) allow(/ERR_|50[0-9]/);
    await catalog.page.locator('[data-row="0"] .exact').waitFor();
    await catalog.page.locator('[data-row="0"] .trend').waitFor();
    await stream.page.locator('.report-table tbody tr').nth(3).waitFor();
    await status.page.getByText('Ready', { exact: true }).first().waitFor();
    const before = (await listed(stream.page)).at(-1) ?? 0;
    await world.stopServer();
    await stream.page.getByText('Reconnecting…').waitFor();
    await stream.page.getByText(/^Disconnected, last price \d+ s old$/).waitFor();
    await stream.page.locator('.stream-price-figure.is-old').waitFor();
    const old = stream.page.locator('.stream-figures div:has(> .is-old) dt');
    await expect.poll(() => old.allTextContents()).toEqual(['Bid', 'Ask', 'Spread']);
    await stream.page.locator('.stream-head .pill.neutral', { hasText: 'live' }).waitFor();
    await catalog.page.locator('.catalog-head .pill', { hasText: 'Reconnecting…' }).waitFor();
    await catalog.page.locator('[data-row="0"] .price-now.is-old').waitFor();
    await catalog.page.locator('[data-row="0"] .change-lines > .muted:first-child').waitFor();
    await catalog.page.locator('[data-row="0"] .spread.is-old').waitFor();
    const colored = catalog.page
      .locator('[data-row="0"]')
      .locator('.rose, .fell, .change-lines .ok, .change-lines .bad');
    await expect.poll(() => colored.count()).toBe(0);
    await catalog.page.locator('.is-disconnected [data-row="0"] .pill').waitFor();
    await status.page.getByText('Unreachable', { exact: true }).waitFor();
    await status.page.getByText(/Last known: (not )?ready/).waitFor();
    for (const { expectAccessible } of [stream, catalog, status]) await expectAccessible();
    await world.startServer();
    const kept = await fetchSigned(world.url, `/api/v1/reports?feedID=${world.feedIds[0]}&timestamp=${before}`, world);
    expect(kept.status).toBe(200);
    await stream.page.getByText('Connected', { exact: true }).waitFor();
    await stream.page.locator('.stream-price-figure:not(.is-old)').waitFor();
    await catalog.page.locator('.catalog-head .pill', { hasText: 'Connected' }).waitFor();
    await status.page.locator('.status-head', { hasText: /Ready|Not ready/ }).waitFor();
    const newest = async () => (await listed(stream.page)).at(-1);
    await expect.poll(newest, { timeout: patienceMs }).toBeGreaterThan(before);
  },
  timeout,
);
