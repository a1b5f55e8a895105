// The explorer on a Saturday, when markets are closed, in real Chromium on a sandbox.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type ExplorerWorld, openExplorerTimeoutMs, openSandboxWorld, testTimeoutMs as timeout } from './world.ts';

let world: ExplorerWorld;
beforeAll(async () => {
  world = await openSandboxWorld(['--at', '2026-03-14T12:00:00Z', '--streams', 'EUR/USD,ETH/USD', '--past', '1m']);
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

test(
  'a closed market has its own mark in the list and on its page, which also says when it usually opens',
  async () => {
    const list = await world.openPage({ signedIn: true });
    const euro = list.page.locator('[data-row]', { hasText: 'EUR/USD' });
    await euro.locator('.state-mark', { hasText: 'Market closed' }).waitFor();
    await list.page.locator('[data-row]', { hasText: 'ETH/USD' }).locator('.exact').waitFor();
    expect(await list.page.getByText('Market closed').count()).toBe(1);
    await euro.locator('a').first().click();
    await list.page.locator('.state-mark', { hasText: 'Market closed' }).first().waitFor();
    await list.page.getByText(/^Usually opens 2026-03-15 2\d:00:00 UTC/).waitFor();
    await list.page.locator('.legend-value').nth(1).waitFor();
    await list.expectAccessible();
  },
  timeout,
);
