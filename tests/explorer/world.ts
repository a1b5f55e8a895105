// The explorer as a user has it: the real demo in a folder of its own, and pages of real Chromium on it. In a test file:
//
//   let world: ExplorerWorld;
//   beforeAll(async () => { world = await openExplorerWorld(); }, openExplorerTimeoutMs);
//   afterEach(() => world.closePages());   // fails the test on console errors, page errors and requests to other origins
//   afterAll(() => world?.close());
//
//   test('…', async () => {
//     const { page, screenshot, expectAccessible } = await world.openPage({ path: '/inspect', viewport: 'phone', theme: 'dark' });
//     await page.getByRole('heading', { level: 1 }).waitFor();
//   });
//
// A browser logs every answer of 400 and more as an error: where a test causes one, it says so with `allow(/401/)` beforehand. Times are
// shown as in Berlin, so that local and UTC differ. With SEALPOST_SCREENSHOTS=FOLDER, `screenshot('name')` writes FOLDER/name-VIEWPORT-THEME.png.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { createSignInCode } from '../../server/src/access/sign-in-code.ts';
import { openBrowser, openBrowserTimeoutMs } from '../support/browser.ts';
import { freePort } from '../support/free-port.ts';
import { startCommand } from '../support/real-program.ts';
import { buildExplorer } from './build.ts';

export type PageOptions = {
  /** With its query; `/` when absent. */
  readonly path?: string;
  readonly viewport?: keyof typeof viewports;
  readonly theme?: 'light' | 'dark';
  /** As the link that the demo prints does it, at whatever path. */
  readonly signedIn?: boolean;
  /** Sees the page before it loads anything: to answer requests in the server's place, or to listen. */
  readonly prepare?: (page: Page) => Promise<unknown>;
};

export type OpenPage = {
  readonly page: Page;
  /** A problem that the test causes on purpose, by its text. */
  readonly allow: (pattern: RegExp) => void;
  /** Of the whole page, for a person to look at; `screen` is of what is in view alone. */
  readonly screenshot: (name: string, of?: 'page' | 'screen') => Promise<void>;
  /** Throws with every rule of axe-core that the page breaks as it is now. */
  readonly expectAccessible: () => Promise<void>;
};

export type ExplorerWorld = {
  readonly url: string;
  readonly userId: string;
  readonly secret: string;
  /** Readable ones with a latest report, those of every second first. */
  readonly feedIds: readonly string[];
  readonly openPage: (options?: PageOptions) => Promise<OpenPage>;
  /** Closes every open page; throws with the problems that they had. */
  readonly closePages: () => Promise<void>;
  /** Stops the server, as an operator does; open pages stay. */
  readonly stopServer: () => Promise<void>;
  /** Starts it again where it was, with all that it knew. */
  readonly startServer: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** For the hook that opens the world: the build, a browser that may have to be installed, and the demo's history come first. */
export const openExplorerTimeoutMs = openBrowserTimeoutMs + 60_000;

const viewports = {
  desktop: { viewport: { width: 1_280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
} as const;

export const openExplorerWorld = async (): Promise<ExplorerWorld> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-explorer-'));
  const [{ browser, close: closeBrowser }] = await Promise.all([openBrowser(), buildExplorer()]);
  const first = await startDemo(folder, await freePort());
  let running = first;
  const { url, userId, secret, feedIds } = first;
  const opened = new Set<WatchedPage>();
  const closePages = async (): Promise<void> => {
    const pages = [...opened];
    opened.clear();
    const problems = pages.flatMap((open) => open.problems());
    await Promise.all(pages.map((open) => open.close()));
    if (problems.length > 0) throw new Error(`The page had problems:\n${problems.join('\n')}`);
  };
  return {
    url,
    userId,
    secret,
    feedIds,
    openPage: async ({ path = '/', viewport = 'desktop', theme = 'light', signedIn = false, prepare } = {}) => {
      const open = await openWatchedPage(browser, url, viewport, theme);
      opened.add(open);
      await prepare?.(open.page);
      const fragment = signedIn ? `#sign-in=${createSignInCode(secret, Date.now())}` : '';
      await open.page.goto(`${url}${path}${fragment}`);
      return open;
    },
    closePages,
    stopServer: () => running.stop(),
    startServer: async () => {
      running = await startDemo(folder, Number(new URL(url).port));
    },
    close: async () => {
      await closeBrowser();
      await running.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

type RunningDemo = Pick<ExplorerWorld, 'url' | 'userId' | 'secret' | 'feedIds'> & {
  readonly stop: () => Promise<void>;
};

// With the limits that an account has by default: the page has to do with them. Only a machine that is busy with other tests must not
// shed what a page asks for.
const startDemo = async (folder: string, port: number): Promise<RunningDemo> => {
  const program = startCommand(['demo', '--json', '--port', String(port), '--dir', folder, '--past', '6'], folder, {
    SEALPOST_EVENT_LOOP_LAG_MAX_MS: '60000',
  });
  const [line] = await program.printed(/^\{"url":.*\}$/m);
  return {
    ...JSON.parse(line),
    stop: async () => {
      program.child.kill('SIGTERM');
      await program.finished;
    },
  };
};

type WatchedPage = OpenPage & { readonly problems: () => readonly string[]; readonly close: () => Promise<void> };

const openWatchedPage = async (
  browser: Browser,
  origin: string,
  viewport: keyof typeof viewports,
  theme: 'light' | 'dark',
): Promise<WatchedPage> => {
  const context = await browser.newContext({
    ...viewports[viewport],
    colorScheme: theme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
  });
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
  const page = await context.newPage();
  const problems: string[] = [];
  const allowed: RegExp[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => problems.push(`page: ${error.stack ?? error.message}`));
  page.on('request', (request) => {
    const { origin: asked, protocol } = new URL(request.url());
    if (asked !== origin && protocol !== 'data:') problems.push(`request outside of the origin: ${request.url()}`);
  });
  return {
    page,
    allow: (pattern) => void allowed.push(pattern),
    screenshot: async (name, of = 'page') => {
      const target = process.env.SEALPOST_SCREENSHOTS;
      if (target === undefined) return;
      mkdirSync(target, { recursive: true });
      await page.screenshot({ path: join(target, `${name}-${viewport}-${theme}.png`), fullPage: of === 'page' });
    },
    expectAccessible: () => expectAccessible(page),
    problems: () => problems.filter((problem) => !allowed.some((pattern) => pattern.test(problem))),
    close: () => context.close(),
  };
};

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Violation = { readonly id: string; readonly help: string; readonly nodes: readonly { readonly html: string }[] };

// Evaluated over the debugger, which the page's policy does not bind: the page stays as it is served.
const expectAccessible = async (page: Page): Promise<void> => {
  const debug = await page.context().newCDPSession(page);
  const evaluate = async (expression: string): Promise<unknown> => {
    const { result, exceptionDetails } = await debug.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined)
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  try {
    await evaluate(axeSource);
    const violations = (await evaluate('axe.run().then(({ violations }) => violations)')) as readonly Violation[]; // as axe-core documents
    const told = violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html}`));
    if (told.length > 0) throw new Error(`axe-core finds:\n${told.join('\n')}`);
  } finally {
    await debug.detach();
  }
};
