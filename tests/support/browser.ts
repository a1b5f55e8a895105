// Headless Chromium for tests, and pages with an origin of their own. Where the machine has no Chromium, Debian's is installed, once.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { type Browser, chromium } from 'playwright-core';
import { root } from './source-tree.ts';

export type OpenBrowser = { readonly browser: Browser; readonly close: () => Promise<void> };

/** For the hook that opens a browser: on a new machine an installation comes first. */
export const openBrowserTimeoutMs = 600_000;

/** Debian's Chromium without windows, which takes half of the CPU, and the one with them. */
const shellPath = '/usr/bin/chromium-headless-shell';
const debianPath = '/usr/bin/chromium';

/** Opens a browser. Each test file has its own, and closes it. */
export const openBrowser = async (): Promise<OpenBrowser> => {
  const executablePath = await findChromium(process.env.CHROMIUM_PATH);
  // Chromium refuses its sandbox to root, and containers often to everyone. The pages are our own.
  // One process for pages of one profile loads the page's code once.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--renderer-process-limit=1'] });
  return { browser, close: () => browser.close() };
};

const whatToDo =
  'Install Chromium, on Debian with `apt-get install chromium-headless-shell`, or set CHROMIUM_PATH to the program.';

const findChromium = async (chosen: string | undefined): Promise<string> => {
  if (chosen !== undefined && !existsSync(chosen))
    throw new Error(`CHROMIUM_PATH is ${chosen}, where nothing is. ${whatToDo}`);
  if (chosen !== undefined) return chosen;
  // With the lock there, it may just be coming: the program is in its place before all that it needs.
  const maybeComing = existsSync(installLock) && process.getuid?.() === 0;
  if (existsSync(shellPath) && !maybeComing) return shellPath;
  const failure = await installShell().catch((error: Error) => error);
  if (existsSync(shellPath)) return shellPath;
  if (existsSync(debianPath)) return debianPath;
  throw failure;
};

const installLock = join(tmpdir(), 'sealpost-chromium.lock');
/** There after an installation that failed: test files that come later do not try again where Chromium is installed anyway. */
const installFailed = join(tmpdir(), 'sealpost-chromium.failed');

const installShell = async (): Promise<void> => {
  const refuse = (why: string, cause?: unknown): Error =>
    new Error(`This test needs a browser: ${shellPath} is missing, and ${why}. ${whatToDo}`, { cause });
  if (!existsSync('/usr/bin/apt-get')) throw refuse('this is not Debian, so it cannot be installed from here');
  if (process.getuid?.() !== 0) throw refuse('only root can install it');
  const install = 'apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 chromium-headless-shell';
  // Test files run at the same time: the second one waits, and then finds it there.
  const isDone = `test -x ${shellPath} || { test -e ${installFailed} && test -x ${debianPath}; }`;
  const script = `${isDone} || { apt-get update && ${install}; } || { touch ${installFailed}; exit 1; }`;
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, maxBuffer: 2 ** 26 };
  await promisify(execFile)('flock', [installLock, 'sh', '-c', script], options).catch(
    (error: { readonly stderr?: string }) => {
      throw refuse(`installing it failed: ${error.stderr?.trim().split('\n').at(-1)}`, error);
    },
  );
};

/** Bundles TypeScript, with the project's packages from their sources, to one script for a page. */
export const bundleForPage = async (source: string): Promise<string> => {
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: root, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    conditions: ['source'],
  });
  return outputFiles[0]?.text ?? '';
};

export type Site = { readonly url: string; readonly close: () => Promise<void> };

/** Serves an empty page that runs a script. Its port makes it another origin than any API's. */
export const openSite = async (script: string): Promise<Site> => {
  const server = createServer((request, response) => {
    if (request.url === '/page.js') response.setHeader('Content-Type', 'text/javascript; charset=utf-8').end(script);
    else
      response
        .setHeader('Content-Type', 'text/html; charset=utf-8')
        .end('<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`, close };
};
