// The image without a container engine: the lines of its Dockerfile, carried out in a folder. What is installed and built here stands in for
// `npm ci` and `npm run build`.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { inFull } from './support/full-count.ts';
import { createWorld, runCommand, startServer } from './support/real-program.ts';
import { listFiles, readText, root, workspaces } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-image-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Copies with the times of files, by hard links where both places are in one file system: nothing below writes into a file. */
const copy = (sources: readonly string[], target: string): void => {
  const run = (...options: readonly string[]) =>
    execFileSync('cp', ['-a', ...options, ...sources, target], { stdio: 'pipe' });
  try {
    run('--link');
  } catch {
    run('--force');
  }
};

const copyOfHere = (path: string, place: string): void => {
  mkdirSync(dirname(join(place, path)), { recursive: true });
  copyFileSync(join(root, path), join(place, path));
};

/** Stand-ins for the steps that need the registry or a minute. */
const standIns: Readonly<Record<string, (place: string) => void>> = {
  'npm ci': (place) => {
    copy([join(root, 'node_modules')], place);
    rmSync(join(place, 'node_modules/.package-lock.json')); // npm writes into this one
    for (const workspace of workspaces().keys())
      if (existsSync(join(root, workspace, 'node_modules')))
        copy([join(root, workspace, 'node_modules')], join(place, workspace));
  },
  'npm run build': (place) => {
    for (const path of [...workspaces().keys()].map((name) => `${name}/dist`).concat('server/public'))
      if (existsSync(join(root, path))) copy([join(root, path)], dirname(join(place, path)));
  },
};

const instructions = readText('deploy/Dockerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .map((line) => /^([A-Z]+) +(.*)$/.exec(line) ?? [])
  .filter(([line]) => line !== undefined);

const stages = new Map<string, string>();
let [stage, workdir] = ['', ''];

const perform: Readonly<Record<string, (rest: string) => void>> = {
  FROM: (rest) => {
    stage = join(folder, / AS (\w+)$/.exec(rest)?.[1] ?? 'image');
    stages.set(/ AS (\w+)$/.exec(rest)?.[1] ?? 'image', stage);
  },
  WORKDIR: (rest) => {
    workdir = join(stage, rest);
    mkdirSync(workdir, { recursive: true });
  },
  COPY: (rest) => {
    const [, from, ...words] =
      /^(?:--from=(\w+) )?(.*)$/.exec(rest)?.flatMap((part, i) => (i === 2 ? part.split(' ') : [part])) ?? [];
    const [sources, target = ''] = [words.slice(0, -1), words.at(-1)];
    if (from !== undefined)
      copy(
        sources.map((path) => join(stages.get(from) ?? '', path)),
        join(workdir, target),
      );
    else if (rest === '. .') for (const path of listFiles('').filter(Boolean)) copyOfHere(path, workdir);
    else for (const path of sources) copyOfHere(path, workdir);
  },
  RUN: (rest) => {
    const standIn = standIns[rest];
    if (standIn !== undefined) standIn(workdir);
    // Of the image's own commands, all are about places outside of the folder.
    else if (stages.size === 1)
      execFileSync('sh', ['-ec', rest], {
        cwd: workdir,
        env: { ...process.env, npm_config_offline: 'true' },
        stdio: 'pipe',
      });
  },
};

let app = '';

beforeAll(() => {
  for (const [, name = '', rest = ''] of instructions) {
    perform[name]?.(rest);
    if (name === 'WORKDIR' && rest === '/app') app = workdir;
  }
});

inFull('image: it has at most 60 MB beyond Node, neither EVM nor compiler, and no link that leads nowhere', () => {
  const files = readdirSync(app, { recursive: true }).map((path) => ({
    path: String(path),
    ...lstatSync(join(app, String(path))),
  }));
  const paths = files.map(({ path }) => path);
  expect(paths).toContain('node_modules/lmdb/package.json');
  expect(paths.filter((path) => /node_modules\/(@nomicfoundation|@?typescript)\//.test(path))).toEqual([]);
  const links = paths.filter((path) => lstatSync(join(app, path)).isSymbolicLink());
  expect(links.length).toBeGreaterThan(3);
  expect(links.filter((path) => !existsSync(join(app, path)))).toEqual([]);
  const inodes = new Map(files.map(({ ino, blocks }) => [ino, blocks * 512]));
  const bytes = [...inodes.values()].reduce((sum, size) => sum + size, 0);
  expect(bytes).toBeGreaterThan(30_000_000);
  expect(bytes).toBeLessThan(60_000_000);
});

inFull('image: its command prints help, simulates and serves', async () => {
  const command = join(app, 'cli/bin/sealpost.js');
  expect(statSync(command).mode & 0o111).not.toBe(0);
  expect(await runCommand(['--help'], folder, {}, command)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('serve'),
  });
  const simulated = ['simulate', '--from', '-2s', '--streams', 'LINK/USD', '--out', join(folder, 'history')];
  expect((await runCommand(simulated, folder, {}, command)).stdout).toMatch(/reports? of 1 stream/);
  const world = await createWorld();
  try {
    const server = await startServer({ ...world, command });
    expect((await fetch(server.url)).status).toBe(200);
    expect((await server.stop()).code).toBe(0);
  } finally {
    world.remove();
  }
});
