// When the commands of a checkout may run dist/: a checkout made of nothing but times of files.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { root } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-build-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const builtAt = 1_700_000_000;
const write = (path: string, atSeconds: number): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), '');
  utimesSync(join(folder, path), atSeconds, atSeconds);
};

test('build: dist/ is up to date until a source, a manifest or the lock file is newer than the build', async () => {
  const sources = ['protocol', 'client', 'simulator', 'server', 'sandbox', 'conformance', 'cli'].flatMap((name) => [
    `${name}/src/deep/file.ts`,
    `${name}/package.json`,
    `${name}/tsconfig.json`,
  ]);
  const inputs = [...sources, 'packaging/threads.mjs', 'tsconfig.base.json', 'package-lock.json', 'build.mjs'];
  for (const path of inputs) write(path, builtAt - 1);
  copyFileSync(join(root, 'build.mjs'), join(folder, 'copied.mjs'));
  const { isFresh } = (await import(pathToFileURL(join(folder, 'copied.mjs')).href)) as { isFresh: () => boolean }; // plain JavaScript
  expect(isFresh(), 'nothing was built yet').toBe(false);
  write('cli/dist/.built', builtAt);
  expect(isFresh()).toBe(true);
  for (const path of inputs) {
    write(path, builtAt);
    expect(isFresh(), path).toBe(false);
    write(path, builtAt - 1);
  }
  expect(isFresh()).toBe(true);
  write('client/src/added.ts', builtAt + 1);
  expect(isFresh(), 'a new file').toBe(false);
});

test.each([['cli/bin/sealpost.js', 'cli/dist/main.js']])(
  'build: without development packages %s runs what was built, out of date or not, or says what to run',
  (bin, built) => {
    const place = mkdtempSync(join(folder, 'pruned-'));
    const put = (path: string, text: string): void => {
      mkdirSync(dirname(join(place, path)), { recursive: true });
      writeFileSync(join(place, path), text);
    };
    put('package.json', '{"type":"module"}');
    put('build.mjs', 'export const isFresh = () => false;');
    put(bin, '');
    copyFileSync(join(root, bin), join(place, bin));
    const run = () => spawnSync(process.execPath, [join(place, bin)], { encoding: 'utf8' });
    expect(run()).toMatchObject({
      status: 2,
      stderr: 'error: This checkout is not built. Run: npm ci && npm run build\n',
    });
    put(built, "console.log('built');");
    expect(run()).toMatchObject({ status: 0, stdout: 'built\n', stderr: '' });
  },
);

test.each(['number #1', 'what?'])('build: a checkout in a folder that Vite cannot build in (%s) says so', (name) => {
  const place = join(folder, name);
  const sources = ['explorer/index.html', 'client/package.json', 'protocol/package.json', 'package-lock.json'];
  for (const path of [...sources, 'client/src/index.ts', 'protocol/src/index.ts']) write(`${name}/${path}`, builtAt);
  copyFileSync(join(root, 'explorer/build.mjs'), join(place, 'explorer/build.mjs'));
  const { status, stderr } = spawnSync(process.execPath, [join(place, 'explorer/build.mjs')], { encoding: 'utf8' });
  expect(stderr).toContain(
    `error: the explorer could not be built: Vite does not build in a folder whose path has a # or ?. Move the checkout: ${place}`,
  );
  expect(status).toBe(1);
});
