// The chart of a stream with a day of one-second reports, in Chromium: how long it takes to draw the day, what a frame costs while one pans
// and zooms, and whether heap and listeners grow while the page is open (`--minutes`, 10 by default).
import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Browser, CDPSession, Page, Route } from 'playwright-core';
import { openBrowser } from '../tests/support/browser.ts';
import { measurePage, projectFolder, startTarget } from './explorer.ts';
import type { Measurement } from './measure.ts';

const viewport = { width: 1_280, height: 800 };
const rounds = 5;

const contentTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

/** The built page at every address that is not the API's. */
const serveExplorer = (route: Route): Promise<void> => {
  const { pathname } = new URL(route.request().url());
  const type = contentTypes[extname(pathname)];
  const file = type === undefined ? '/index.html' : pathname;
  return route.fulfill({
    body: readFileSync(join(projectFolder, 'server/public', file)),
    contentType: type ?? 'text/html',
  });
};

/** Milliseconds from the click on a range to the frame after its bars are drawn. */
const drawRange = (page: Page, label: string): Promise<number> =>
  page.evaluate(async (text) => {
    const button = [...document.querySelectorAll<HTMLElement>('.chart-ranges button')].find(
      (one) => one.textContent === text,
    );
    const start = performance.now();
    button?.click();
    const frame = (): Promise<number> => new Promise(requestAnimationFrame);
    const isDrawn = (): boolean =>
      button?.getAttribute('aria-pressed') === 'true' &&
      document.querySelector('.chart-note, .chart-corner') === null &&
      document.querySelector('.legend')?.textContent?.includes('Open') === true;
    do await frame();
    while (!isDrawn() && performance.now() - start < 30_000);
    await frame();
    return performance.now() - start;
  }, label);

/** A place in the chart by its share of the width, without the price axis. */
const placeOf = async (page: Page) => {
  const { x, y, width, height } = (await page.locator('.chart-canvas').boundingBox()) ?? { x: 0, y: 0, ...viewport };
  return (share: number) => [x + (width - 60) * share, y + height / 2] as const;
};

/** Back and forth by most of the width, a step per frame. */
const pan = async (page: Page): Promise<void> => {
  const place = await placeOf(page);
  for (let i = 0; i < 4; i++) {
    await page.mouse.move(...place(0.2));
    await page.mouse.down();
    await page.mouse.move(...place(0.9), { steps: 40 });
    await page.mouse.up();
  }
  await page.getByRole('button', { name: 'Now' }).click();
};

const zoom = async (page: Page): Promise<void> => {
  const place = await placeOf(page);
  await page.mouse.move(...place(0.5));
  await page.keyboard.down('Control');
  for (let i = 0; i < 30; i++) await page.mouse.wheel(0, -60);
  for (let i = 0; i < 30; i++) await page.mouse.wheel(0, 60);
  await page.keyboard.up('Control');
  await page.getByRole('button', { name: '1d', exact: true }).click();
};

const metricsOf = async (debug: CDPSession): Promise<{ readonly heap: number; readonly listeners: number }> => {
  await debug.send('HeapProfiler.collectGarbage');
  const { metrics } = await debug.send('Performance.getMetrics');
  const metricOf = (name: string): number => metrics.find((metric) => metric.name === name)?.value ?? 0;
  return { heap: metricOf('JSHeapUsedSize') / 1e6, listeners: metricOf('JSEventListeners') };
};

/** Heap and listeners after the first minute and after the last, with the page open and live. */
const measureGrowth = async (page: Page, minutes: number): Promise<readonly Measurement[]> => {
  const debug = await page.context().newCDPSession(page);
  await debug.send('Performance.enable');
  const seen: Awaited<ReturnType<typeof metricsOf>>[] = [];
  for (let minute = 0; minute < minutes; minute++) {
    await page.waitForTimeout(60_000);
    seen.push(await metricsOf(debug));
    process.stderr.write(`minute ${minute + 1}: ${JSON.stringify(seen.at(-1))}\n`);
  }
  const [first, last] = [seen[0], seen.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [
    {
      name: `listeners after ${minutes} minutes`,
      value: last.listeners,
      unit: '',
      note: `${first.listeners} after one`,
    },
    { name: `heap after ${minutes} minutes`, value: last.heap, unit: 'MB', note: `${first.heap.toFixed(1)} after one` },
  ];
};

const measureActs = async (browser: Browser, page: Page): Promise<readonly Measurement[]> => {
  const figures: Measurement[] = [];
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await page.reload(); // nothing is cached
    await page.locator('.chart-canvas canvas').first().waitFor();
    await page.locator('.legend-value').nth(1).waitFor();
    times.push(await drawRange(page, '1d'));
  }
  const sorted = times.toSorted((a, b) => a - b);
  figures.push({
    name: 'a day of one-second reports: click to drawn',
    value: sorted[Math.floor(rounds / 2)] ?? 0,
    unit: 'ms, median',
    note: `${sorted.map((ms) => ms.toFixed(0)).join(', ')}`,
  });
  for (const [name, act] of Object.entries({ pan, zoom })) {
    await act(page); // warm
    const { taskMs, workMs, frameMs, framesPerSecond } = await measurePage(browser, page, () => act(page));
    figures.push({
      name: `a day of one-second reports: ${name}`,
      value: workMs,
      unit: 'ms CPU, most in a frame',
      note: `longest task ${taskMs.toFixed(1)} ms CPU; ${framesPerSecond.toFixed(0)} frames per second, the longest ${frameMs.toFixed(0)} ms of wall time`,
    });
  }
  return figures;
};

export const benchChart = async (args: readonly string[] = []): Promise<readonly Measurement[]> => {
  const minutes = args.includes('--minutes') ? Number(args[args.indexOf('--minutes') + 1]) : 10;
  const target = await startTarget('chart-target');
  const { browser, close } = await openBrowser();
  try {
    const page = await browser.newPage({ viewport });
    await page.route(
      ({ pathname }) => !pathname.startsWith('/api/') && !/\.json$|^\/(time|health)/.test(pathname),
      serveExplorer,
    );
    const { userId, secret, feedId } = target;
    await page.addInitScript(
      (kept) => sessionStorage.setItem('sealpost-session', kept),
      JSON.stringify({ userId, secret }),
    );
    await page.goto(`${target.url}/streams/${feedId}`);
    const figures = await measureActs(browser, page);
    return [...figures, ...(await measureGrowth(page, minutes))];
  } finally {
    await close();
    target.child.kill('SIGTERM');
  }
};
