// The explorer as users see it: the real demo, which test files share, and pages in real Chromium. In a test file:
//
//   let world: ExplorerWorld;
//   beforeAll(async () => { world = await openExplorerWorld(); }, openExplorerTimeoutMs);
//   afterEach(() => world.closePages());   // fails the test on console errors, page errors and requests to other origins
//   afterAll(() => world?.close());
//
//   test('…', async () => {
//     const { page, expectAccessible } = await world.openPage({ path: '/inspect', viewport: 'phone', theme: 'dark' });
//     await page.getByRole('heading', { level: 1 }).waitFor();
//   });
//
// Browsers log every response of 400 and more as an error: a test that causes one calls `allow(/401/)` first. Local time is Berlin's, so
// that it differs from UTC. Whatever a test waits for may take `patienceMs`, because other tests keep the machine busy: no test names a time-out of its own.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { TestRunner } from 'vitest';
import { createSignInCode } from '../../server/src/access/sign-in-code.ts';
import { joinDemo } from '../demo-host.ts';
import { openBrowser, openBrowserTimeoutMs } from '../support/browser.ts';
import { freePort } from '../support/free-port.ts';
import { startCommand } from '../support/real-program.ts';
import { type Demo, startDemo } from '../support/running-demo.ts';
import { buildExplorer } from './build.ts';

export type PageOptions = {
  /** With its query; `/` by default. */
  readonly path?: string;
  readonly viewport?: keyof typeof viewports;
  readonly theme?: 'light' | 'dark';
  /** Signs in with a link like the one that the demo prints. */
  readonly signedIn?: boolean;
  /** Gets the page before it loads anything, to answer requests in the server's place or to listen. */
  readonly prepare?: (page: Page) => Promise<unknown>;
};

export type OpenPage = {
  readonly page: Page;
  /** Allows a problem that the test causes on purpose, by its text. */
  readonly allow: (pattern: RegExp) => void;
  /** Throws with every axe-core rule that the page breaks now, or the elements of a selector: a page of 4,000 elements takes axe-core seconds. */
  readonly expectAccessible: (within?: string) => Promise<void>;
};

export type ExplorerWorld = OpenServer & {
  readonly openPage: (options?: PageOptions) => Promise<OpenPage>;
  /** Closes every open page; throws with their problems. After a test that failed, prints what they showed. */
  readonly closePages: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** A world whose demo has the default rate limits, and is no other test's. */
export type RestartableWorld = ExplorerWorld & {
  /** Stops the server; pages stay open. */
  readonly stopServer: () => Promise<void>;
  /** Starts it again on the same port, with the same store. */
  readonly startServer: () => Promise<void>;
};

/** Time-out of the hook that opens the world: it may install a browser, and waits for the demo. */
export const openExplorerTimeoutMs = openBrowserTimeoutMs + 120_000;

/** How long a page may take for anything that a test waits for. */
export const patienceMs = 90_000;

/** How long a test may take: ten times what the longest takes on two cores that also run other tests. */
export const testTimeoutMs = 300_000;

const viewports = {
  desktop: { viewport: { width: 1_280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
} as const;

export const openExplorerWorld = async (): Promise<ExplorerWorld> => {
  const [{ browser, close }, demo] = await Promise.all([openBrowser(), joinDemo()]);
  return {
    ...openPages(browser, demo),
    close: async () => {
      await close();
      await demo.stop();
    },
  };
};

export const openRestartableWorld = async (): Promise<RestartableWorld> => {
  const [{ browser, close }, port] = await Promise.all([openBrowser(), freePort(), buildExplorer()]);
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-explorer-'));
  // Load shedding is off in effect, because other tests keep the machine busy.
  const start = () =>
    startDemo({ folder, port, pastMinutes: 1, settings: { SEALPOST_EVENT_LOOP_LAG_MAX_MS: '60000' } });
  let demo = await start();
  return {
    ...openPages(browser, demo),
    stopServer: () => demo.stop(),
    startServer: async () => {
      const { userId, secret } = demo;
      demo = await start();
      if (demo.userId !== userId || demo.secret !== secret) throw new Error('The demo has other credentials.');
    },
    close: async () => {
      await close();
      await demo.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** On a sandbox of its own, with these flags; `opsUrl` takes its events. */
export const openSandboxWorld = async (
  flags: readonly string[],
): Promise<ExplorerWorld & { readonly opsUrl: string }> => {
  const [{ browser, close }] = await Promise.all([openBrowser(), buildExplorer()]);
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-explorer-'));
  const program = startCommand(
    ['sandbox', '--json', '--listen', '127.0.0.1:0', '--requests-per-second', '0', ...flags],
    folder,
    { TMPDIR: folder, SEALPOST_EVENT_LOOP_LAG_MAX_MS: '60000' }, // no load shedding either, because other tests keep the machine busy
  );
  const [line] = await program.printed(/^\{"url".*\}$/m);
  const server = JSON.parse(line);
  return {
    ...openPages(browser, server),
    opsUrl: server.opsUrl,
    close: async () => {
      await close();
      program.child.kill('SIGTERM');
      await program.finished;
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

const openPages = (browser: Browser, { url, userId, secret, feedIds }: OpenServer): Omit<ExplorerWorld, 'close'> => {
  const opened = new Set<WatchedPage>();
  const profiles = new Map<string, Profile[]>();
  return {
    url,
    userId,
    secret,
    feedIds,
    openPage: async ({ path = '/', viewport = 'desktop', theme = 'light', signedIn = false, prepare } = {}) => {
      const kind = `${viewport} ${theme}`;
      const profile = profiles.get(kind)?.pop() ?? (await openProfile(browser, url, viewport, theme));
      const open = await openWatchedPage(profile, url, () => {
        profiles.set(kind, [...(profiles.get(kind) ?? []), profile]);
      });
      opened.add(open);
      await prepare?.(open.page);
      const fragment = signedIn ? `#sign-in=${createSignInCode(secret, Date.now())}` : '';
      await open.page.goto(`${url}${path}${fragment}`);
      return open;
    },
    closePages: async () => {
      const pages = [...opened];
      opened.clear();
      if (TestRunner.getCurrentTest()?.result?.state === 'fail')
        for (const open of pages) process.stderr.write(`${await open.describe()}\n`);
      const problems = pages.flatMap((open) => open.problems());
      await Promise.all(pages.map((open) => open.close()));
      if (problems.length > 0) throw new Error(`The page had problems:\n${problems.join('\n')}`);
    },
  };
};

type OpenServer = Pick<Demo, 'url' | 'userId' | 'secret' | 'feedIds'>;

type WatchedPage = OpenPage & {
  readonly problems: () => readonly string[];
  /** Its address, its text, and all that it reported, also what is allowed. */
  readonly describe: () => Promise<string>;
  readonly close: () => Promise<void>;
};

/** What a page opens in. It is used again once its pages are closed and its storage is empty: a new one takes 0.4 s of CPU more. */
type Profile = { readonly context: BrowserContext; readonly empty: () => Promise<void> };

const openProfile = async (
  browser: Browser,
  origin: string,
  viewport: keyof typeof viewports,
  theme: 'light' | 'dark',
): Promise<Profile> => {
  const context = await browser.newContext({
    ...viewports[viewport],
    colorScheme: theme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
  });
  context.setDefaultTimeout(patienceMs);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
  const blank = await context.newPage();
  const debug = await context.newCDPSession(blank);
  return {
    context,
    empty: async () => {
      for (const page of context.pages()) if (page !== blank) await page.close();
      await debug.send('Storage.clearDataForOrigin', { origin, storageTypes: 'local_storage,cookies,indexeddb' });
    },
  };
};

const openWatchedPage = async (
  { context, empty }: Profile,
  origin: string,
  giveBack: () => void,
): Promise<WatchedPage> => {
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
    expectAccessible: (within) => expectAccessible(page, within),
    describe: async () => {
      const text = await page
        .locator('main')
        .innerText({ timeout: 5_000 })
        .catch((error: Error) => error.message);
      return [`The page ${page.url()} showed:`, text.slice(0, 4_000), ...problems].join('\n');
    },
    problems: () => problems.filter((problem) => !allowed.some((pattern) => pattern.test(problem))),
    close: async () => {
      if (!page.isClosed()) await page.unrouteAll({ behavior: 'ignoreErrors' }); // a request that is being answered when its page closes is no failure
      await empty();
      giveBack();
    },
  };
};

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Violation = { readonly id: string; readonly help: string; readonly nodes: readonly { readonly html: string }[] };

// Evaluated over the debugger, which is not subject to the page's content security policy.
const expectAccessible = async (page: Page, within?: string): Promise<void> => {
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
    const context = within === undefined ? 'document' : JSON.stringify(within);
    // Only what breaks a rule is read.
    const run = `axe.run(${context}, { resultTypes: ['violations'], preload: false }).then(({ violations }) => violations)`;
    const violations = (await evaluate(run)) as readonly Violation[]; // as axe-core documents
    const told = violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html}`));
    if (told.length > 0) throw new Error(`axe-core finds:\n${told.join('\n')}`);
  } finally {
    await debug.detach();
  }
};
