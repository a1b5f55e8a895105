// Takes the screenshots of docs/explorer.md from the real demo into a folder, then a person looks at them:
//
//   node --conditions=source --import tsx tests/explorer/screenshots.ts docs/images && pngquant --force --ext .png docs/images/*.png
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ReportJson } from '@sealpost/protocol';
import type { Page } from 'playwright-core';
import { fetchSigned } from '../support/real-program.ts';
import { type ExplorerWorld, openExplorerWorld, type PageOptions } from './world.ts';

type Shot = PageOptions & {
  readonly file: string;
  /** Brings the page to what is to be seen. */
  readonly until: (page: Page) => Promise<unknown>;
  /** Pixels from the top of the page. */
  readonly height: number;
};

/** Long enough for the chart to have something to draw. */
const hasLiveReports = (page: Page) => page.locator('.report-table tbody tr').nth(9).waitFor();

const shots = ({ feedId, report }: { readonly feedId: string; readonly report: ReportJson }): readonly Shot[] => {
  const stream = `/streams/${feedId}`;
  const at = report.observationsTimestamp;
  const hasPrices = (page: Page) => page.locator('[data-row] .exact').nth(4).waitFor();
  return [
    { file: 'catalog', signedIn: true, until: hasPrices, height: 800 },
    { file: 'stream', path: `${stream}?range=5m`, signedIn: true, until: hasLiveReports, height: 900 },
    {
      file: 'report',
      path: `${stream}/at/${at}`,
      signedIn: true,
      until: (page) => page.locator('.verdict[data-state=verified]').waitFor(),
      height: 1_100,
    },
    {
      file: 'inspect-tampered',
      path: '/inspect',
      until: async (page) => {
        await page.getByRole('textbox').fill(report.fullReport);
        await page.locator('.verdict[data-state=verified]').waitFor();
        await page.getByRole('button', { name: 'Alter one bit' }).click();
        await page.locator('.verdict[data-state=refused]').waitFor();
      },
      height: 1_000,
    },
    {
      file: 'price-at',
      path: `${stream}?at=${at + 86_400}`,
      signedIn: true,
      until: (page) => page.getByText('That time is in the future.').waitFor(),
      height: 900,
    },
    {
      file: 'status',
      path: '/status',
      signedIn: true,
      until: (page) => page.getByText('Ready', { exact: true }).first().waitFor(),
      height: 1_000,
    },
    {
      file: 'docs',
      path: '/docs',
      until: (page) => page.getByRole('heading', { name: 'Base URL' }).waitFor(),
      height: 900,
    },
    { file: 'catalog-phone', viewport: 'phone', theme: 'dark', signedIn: true, until: hasPrices, height: 844 },
    {
      file: 'stream-phone',
      path: `${stream}?range=5m`,
      viewport: 'phone',
      theme: 'dark',
      signedIn: true,
      until: hasLiveReports,
      height: 844,
    },
  ];
};

const take = async (world: ExplorerWorld, folder: string, { file, until, height, ...options }: Shot): Promise<void> => {
  const { page } = await world.openPage(options);
  await until(page);
  await page.waitForTimeout(1_500); // fonts, the chart's first frame, ages of a second
  const { width } = page.viewportSize() ?? { width: 0 };
  await page.setViewportSize({ width, height });
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(folder, `${file}.png`), scale: 'css' });
  await page.close();
};

/** The demo begins with its last minutes and fills in the hour before them, oldest first, while it runs. */
const pastIsThere = async (world: ExplorerWorld, feedId: string): Promise<void> => {
  const query = `feedID=${feedId}&timestamp=${Math.floor(Date.now() / 1_000) - 150}`;
  while ((await fetchSigned(world.url, `/api/v1/reports?${query}`, world)).status !== 200)
    await new Promise((resolve) => setTimeout(resolve, 1_000));
};

const [folder = 'docs/images', ...only] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const world = await openExplorerWorld();
try {
  const feedId = world.feedIds[2] ?? '';
  await pastIsThere(world, feedId);
  const response = await fetchSigned(world.url, `/api/v1/reports/latest?feedID=${feedId}`, world);
  const { report } = (await response.json()) as { readonly report: ReportJson }; // as the API documents
  for (const shot of shots({ feedId, report }))
    if (only.length === 0 || only.includes(shot.file)) await take(world, folder, shot);
} finally {
  await world.close();
}
