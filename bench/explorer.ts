// The explorer's catalog page with 2,000 streams in Chromium, signed in, prices coming in: what the longest task of the page's main thread
// takes while one scrolls, searches, filters and sorts, and how much it does from one frame to the next. Both are CPU time, which other
// work on the machine does not lengthen; the longest frame in wall time is told beside them, and is the machine's as much as the page's.
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page, Route } from 'playwright-core';
import { openBrowser } from '../tests/support/browser.ts';
import type { Measurement } from './measure.ts';
import { startProgram } from './processes/target.ts';

type Target = {
  readonly child: ChildProcess;
  readonly url: string;
  readonly userId: string;
  readonly secret: string;
  /** Of the target's only stream. */
  readonly feedId?: string;
};

/** Seen from the bundle, whose folder is in the root. `npm run bench` has built the page. */
const projectFolder = fileURLToPath(new URL('..', import.meta.url));

/** Starts a server for a page, a program of its own. */
const startTarget = (): Promise<Target> => startProgram('explorer-target');

const rounds = 3;
const viewport = { width: 1_280, height: 800 };

const contentTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

/** The built page: a bundled server looks for it beside itself, where it is not. */
const servePage = (route: Route): Promise<void> => {
  const { pathname } = new URL(route.request().url());
  const file = pathname === '/' ? '/index.html' : pathname;
  const contentType = contentTypes[extname(file)] ?? 'text/html';
  return route.fulfill({ body: readFileSync(join(projectFolder, 'server/public', file)), contentType });
};

const nextFrame = (page: Page): Promise<unknown> => page.evaluate(() => new Promise(requestAnimationFrame));
const rows = (page: Page) => page.locator('[data-row]');
const hasPrices = (page: Page) => page.locator('[data-row] .exact').nth(5).waitFor();
const toTop = (page: Page) => page.evaluate(() => window.scrollTo(0, 0));

const wheelBy = async (page: Page, steps: number, pixels: number): Promise<void> => {
  await page.mouse.move(viewport.width / 2, viewport.height / 2);
  for (let i = 0; i < steps; i++) {
    await page.mouse.wheel(0, pixels);
    await nextFrame(page);
  }
};

const wheel = async (page: Page, steps: number, pixels: number): Promise<void> => {
  await wheelBy(page, steps, pixels);
  await hasPrices(page);
  await toTop(page);
};

const search = async (page: Page): Promise<void> => {
  const box = page.locator('#search');
  await box.pressSequentially('asset 1973', { delay: 60 });
  await page.locator('[data-row="1"]').waitFor({ state: 'detached' });
  for (let i = 0; i < 'asset 1973'.length; i++) await box.press('Backspace', { delay: 60 });
  await rows(page).nth(10).waitFor();
};

// Found by selectors: to find an element by its role, the driver computes the names of all elements, in the page's main thread.
const filter = async (page: Page): Promise<void> => {
  const button = page.locator('[aria-controls=filters]');
  await button.click();
  for (const value of ['Forex', 'NAV', 'testing']) {
    const box = page.locator('#filters label', { hasText: value }).locator('input').first();
    await box.check();
    await nextFrame(page);
    await box.uncheck();
    await nextFrame(page);
  }
  await button.click();
};

const sort = async (page: Page): Promise<void> => {
  for (const name of ['price', 'change', 'spread', 'age', 'status', 'pair']) {
    const head = page.locator(`th.col-${name} button`);
    await head.click();
    await nextFrame(page);
    await head.click();
    await nextFrame(page);
  }
};

const acts: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  'prices come in': (page) => page.waitForTimeout(4_000),
  'scroll by the wheel': (page) => wheel(page, 60, 120),
  'scroll fast': (page) => wheel(page, 40, 2_000),
  'search, key by key': search,
  'filters on and off': filter,
  'sort by six columns, either way': sort,
};

type TraceEvent = {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** µs, when it began; of wall time, and of CPU. */
  readonly ts: number;
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
};

/** What the page's main thread did, in ms of CPU: its longest task, and the most that it did from one frame to the next. */
const readTrace = (trace: Buffer): { readonly taskMs: number; readonly workMs: number } => {
  const { traceEvents } = JSON.parse(trace.toString()) as { readonly traceEvents: readonly TraceEvent[] }; // as Chromium writes it
  const isMain = new Set(
    traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const ofMain = traceEvents
    .filter(({ ph, pid, tid }) => ph === 'X' && isMain.has(`${pid} ${tid}`))
    .sort((a, b) => a.ts - b.ts);
  const tasks = ofMain.filter(({ name }) => name === 'RunTask'); // each has another in it, ThreadControllerImpl::RunTask
  const frames = ofMain.filter(({ name }) => name === 'FireAnimationFrame').map(({ ts }) => ts);
  if (tasks.length === 0 || frames.length === 0)
    throw new Error('The trace has no task or no frame of the main thread: Chromium names them otherwise.');
  const perFrame = new Map<number, number>();
  let frame = 0;
  for (const { ts, dur = 0, tdur = 0 } of tasks) {
    // The task that fires a frame belongs to it, with all that came since the one before.
    while (frame < frames.length && (frames[frame] ?? 0) < ts) frame++;
    perFrame.set(frame, (perFrame.get(frame) ?? 0) + tdur);
    if ((frames[frame] ?? 0) < ts + dur) frame++;
  }
  return {
    taskMs: Math.max(...tasks.map(({ tdur }) => tdur ?? 0)) / 1_000,
    workMs: Math.max(...perFrame.values()) / 1_000,
  };
};

/** The longest time from one frame to the next while `act` lasts, in ms, and the frames per second. */
const measureFrames = async (page: Page, act: () => Promise<unknown>) => {
  await page.evaluate(() => {
    const start = performance.now();
    const frames = { longest: 0, count: 0, start, last: start, isOver: false };
    Object.assign(globalThis, { frames });
    const step = (now: number): void => {
      frames.longest = Math.max(frames.longest, now - frames.last);
      frames.last = now;
      frames.count += 1;
      if (!frames.isOver) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  await act();
  return page.evaluate(() => {
    const { frames } = globalThis as unknown as {
      frames: Record<'longest' | 'count' | 'start', number> & { isOver: boolean };
    }; // set above
    frames.isOver = true;
    return { frameMs: frames.longest, framesPerSecond: (frames.count * 1_000) / (performance.now() - frames.start) };
  });
};

/** What an act costs the page. */
const measurePage = async (browser: Browser, page: Page, act: () => Promise<unknown>) => {
  const categories = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'];
  await browser.startTracing(page, { categories });
  const frames = await measureFrames(page, act);
  return { ...readTrace(await browser.stopTracing()), ...frames };
};

/**
 * The same scroll over a plain table of the same size, with the server as busy: nothing of it is the page's, so its longest frame is what browser and
 * machine take.
 */
const openPlainTable = async (browser: Browser): Promise<Page> => {
  const page = await browser.newPage({ viewport });
  const cell = (text: string): string => `<td style="height:52px;padding:0 12px">${text}</td>`;
  const row = (_: unknown, i: number): string =>
    `<tr>${['A', 'USD', '1234.5678', '+0.12 %', '0.4', '1 s', 'live', '0x0003…'].map((text) => cell(`${text} ${i}`)).join('')}</tr>`;
  const body = Array.from({ length: 2_000 }, row).join('');
  await page.setContent(`<table style="width:100%;table-layout:fixed;border-spacing:0">${body}</table>`);
  return page;
};

const scrollPlainTable = async (page: Page): Promise<void> => {
  await wheelBy(page, 40, 2_000);
  await toTop(page);
};

const measureRounds = async (
  browser: Browser,
  page: Page,
  name: string,
  act: (page: Page) => Promise<unknown>,
): Promise<Measurement> => {
  await act(page); // warm
  const runs: { readonly taskMs: number; readonly workMs: number; readonly frameMs: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const { frameMs } = await measureFrames(page, () => act(page)); // in a round of its own: a trace lengthens frames
    const { taskMs, workMs } = await measurePage(browser, page, () => act(page));
    runs.push({ taskMs, workMs, frameMs });
  }
  const most = (pick: (run: (typeof runs)[number]) => number): number => Math.max(...runs.map(pick));
  return {
    name: `2,000 streams: ${name}`,
    value: most(({ taskMs }) => taskMs),
    unit: 'ms CPU, longest task',
    note: `most in a frame ${most(({ workMs }) => workMs).toFixed(1)} ms CPU; longest frame ${most(({ frameMs }) => frameMs).toFixed(0)} ms of wall time`,
  };
};

export const benchExplorer = async (): Promise<readonly Measurement[]> => {
  const target = await startTarget();
  const { browser, close } = await openBrowser();
  try {
    const page = await browser.newPage({ viewport });
    await page.route(({ pathname }) => pathname === '/' || /\.(js|css|svg)$/.test(pathname), servePage);
    const { userId, secret } = target;
    await page.addInitScript(
      (kept) => sessionStorage.setItem('sealpost-session', kept),
      JSON.stringify({ userId, secret }),
    );
    await page.goto(`${target.url}/`);
    await hasPrices(page);
    const figures: Measurement[] = [];
    for (const [name, act] of Object.entries(acts)) figures.push(await measureRounds(browser, page, name, act));
    await page.close();
    const plain = await openPlainTable(browser);
    figures.push(
      await measureRounds(browser, plain, 'scroll fast, a plain table instead of the page', scrollPlainTable),
    );
    return figures;
  } finally {
    await close();
    target.child.kill('SIGTERM');
  }
};
