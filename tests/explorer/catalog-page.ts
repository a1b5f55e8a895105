// Locators and actions of the catalog page for its tests.
import type { CatalogEntry } from '@sealpost/protocol';
import type { Page, Request } from 'playwright-core';
import { expect } from 'vitest';
import { patienceMs } from './world.ts';

export const poll = { timeout: patienceMs };

export const pairs = (page: Page): Promise<readonly string[]> => page.locator('[data-row] .pair').allTextContents();
export const count = (page: Page) => page.locator('.catalog-head [role=status]');
export const search = (page: Page): string => new URL(page.url()).search;
export const ready = (page: Page) => page.locator('[data-row="0"]').waitFor();
export const link = (page: Page, row: number) => page.locator(`[data-row="${row}"] a`);
export const head = (page: Page, name: string) => page.getByRole('columnheader', { name, exact: true });
export const expectPairs = (page: Page, expected: readonly string[]) =>
  expect.poll(() => pairs(page), poll).toEqual(expected);
export const expectSearch = (page: Page, expected: string) => expect.poll(() => search(page), poll).toBe(expected);

export const tick =
  (legend: string, value: string) =>
  (page: Page): Promise<unknown> =>
    page
      .getByRole('group', { name: legend, exact: true })
      .getByRole('checkbox', { name: new RegExp(`^${value}\\b(?!-)`) })
      .check();
export const fill =
  (label: string, text: string) =>
  (page: Page): Promise<unknown> =>
    page.getByLabel(label, { exact: true }).fill(text);

/** Texts of a column's cells, top to bottom. */
export const cellsOf = (page: Page, column: string): Promise<readonly string[]> =>
  page.locator(`[data-row] .col-${column}`).allTextContents();

/** The printed prices, top to bottom; empty texts where there is none. */
export const pricesOf = (page: Page): Promise<readonly string[]> =>
  page
    .locator('[data-row] .col-price')
    .evaluateAll((found) => found.map((cell) => cell.querySelector('.exact')?.textContent ?? ''));

/** A printed price as an integer; undefined without one. */
export const exact = (text: string): bigint | undefined => {
  const [whole = '', fraction = ''] = text.replaceAll(',', '').split('.');
  return /^[0-9]+$/.test(whole) ? BigInt(`${whole}${fraction.padEnd(18, '0')}`) : undefined;
};

/** Records the paths that a page requests, and counts its open live connections. */
export const watchRequests = (page: Page) => {
  const paths: string[] = [];
  const open = new Set<Request>();
  const opened: number[] = [];
  const isStream = (request: Request): boolean => new URL(request.url()).pathname === '/api/v1/reports/stream';
  page.on('request', (request) => {
    paths.push(new URL(request.url()).pathname);
    if (isStream(request)) opened.push(open.add(request).size);
  });
  const forget = (request: Request): void => void open.delete(request);
  page.on('requestfinished', forget).on('requestfailed', forget);
  return { paths, open: () => open.size, openedWith: () => opened };
};

const many = 2_000;

/** The demo's streams, and others up to 2,000 that come after them by name. */
export const manyStreams = (demo: readonly CatalogEntry[]): readonly CatalogEntry[] => {
  const others = Array.from({ length: many - demo.length }, (_, i): CatalogEntry => {
    const like = demo[i % demo.length] as CatalogEntry; // the demo has some
    const baseAsset = `Z${String(i).padStart(4, '0')}`;
    return {
      ...like,
      feedId: `${like.feedId.slice(0, 6)}${i.toString(16).padStart(60, '0')}`,
      name: `${baseAsset}/USD-Streams-${like.attributeType}`,
      assetName: `Asset ${i}`,
      baseAsset,
      quoteAsset: 'USD',
    };
  });
  return [...demo, ...others];
};

/** Presses a key several times within one frame, before the focus moves. */
export const pressWithinFrame = (page: Page, key: string, times: number): Promise<void> =>
  page.evaluate(
    ([name, count]) => {
      for (let i = 0; i < count; i += 1)
        document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
    },
    [key, times] as const,
  );
