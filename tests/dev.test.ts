// `npm run dev` in a copy of the packages, whose files the test changes.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from './support/free-port.ts';
import { killGroup, type Program, startProgram } from './support/real-program.ts';
import { isTest, listFiles, root, workspaces } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-dev-'));
let dev: Program | undefined;

/** Installed packages are links to those of this checkout; the links to its own packages lead to the copy. */
const linkInstalled = (place: string): void => {
  if (!existsSync(join(root, place))) return;
  mkdirSync(join(folder, place));
  for (const entry of readdirSync(join(root, place), { withFileTypes: true })) {
    const path = join(place, entry.name);
    if (entry.isSymbolicLink()) symlinkSync(readlinkSync(join(root, path)), join(folder, path));
    else if (['@sealpost', '.bin'].includes(entry.name)) linkInstalled(path);
    else if (!entry.name.startsWith('.')) symlinkSync(join(root, path), join(folder, path));
  }
};

beforeAll(() => {
  const packages = [...workspaces().keys()];
  const copied = new RegExp(`^(?:[^/]+|(?:${packages.join('|')})/.+)$`);
  for (const path of listFiles('').filter((one) => copied.test(one) && !isTest(one)))
    cpSync(join(root, path), join(folder, path));
  for (const place of ['.', ...packages]) linkInstalled(join(place, 'node_modules'));
});
afterAll(async () => {
  if (dev !== undefined) killGroup(dev);
  await dev?.finished;
  rmSync(folder, { recursive: true, force: true });
});

const change = (path: string, from: string, to: string): void => {
  const text = readFileSync(join(folder, path), 'utf8');
  expect(text).toContain(from);
  writeFileSync(join(folder, path), text.replace(from, to));
};

test('dev: a changed source restarts the demo in its folder, the explorer is served as it is now, and Ctrl-C stops both', async () => {
  const port = await freePort();
  dev = startProgram(['run', 'dev', '--', '--port', `${port}`, '--past', '1'], folder, {}, 'npm', true);
  const [, page = '', code = ''] = await dev.printed(/(http:\/\/127\.0\.0\.1:\d+)\/#sign-in=(\S+)/);
  expect(page).not.toContain(`${port}`);
  const signIn = async (by: string): Promise<unknown> =>
    (await fetch(`${page}/sign-in`, { method: 'POST', headers: { 'X-Sign-In-Code': by } })).json();
  const account = await signIn(code);
  expect(account).toEqual({ userId: expect.any(String), secret: expect.any(String) });

  const read = async (path: string): Promise<string> => (await fetch(`${page}${path}`)).text();
  expect(await read('/api/v1/nothing')).toContain('There is no such path.');
  change('protocol/src/errors.ts', 'There is no such path.', 'This path was changed.');
  await expect.poll(() => read('/api/v1/nothing')).toContain('This path was changed.');
  const [, again = ''] = await dev.printed(new RegExp(`${code}[^]+#sign-in=(\\S+)`));
  expect(await signIn(again)).toEqual(account);

  expect(await read('/src/app.tsx')).toContain('API docs');
  change('explorer/src/app.tsx', 'API docs', 'Changed docs');
  await expect.poll(() => read('/src/app.tsx')).toContain('Changed docs');

  process.kill(-Number(dev.child.pid), 'SIGINT');
  expect(await dev.finished).toMatchObject({ code: 0 });
});
