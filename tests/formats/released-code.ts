// The code of a release, built from this repository's history, so that tests can run its command.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { root } from '../support/source-tree.ts';

const packages = ['protocol', 'client', 'simulator', 'server'];

const git = (...args: string[]): Buffer => execFileSync('git', args, { cwd: root, maxBuffer: 2 ** 28, stdio: 'pipe' });

/** Undefined where the history is missing: in a shallow clone, or a folder without git. */
export const resolveCommit = (commit: string): string | undefined => {
  try {
    return git('rev-parse', '--verify', '--quiet', `${commit}^{commit}`).toString().trim();
  } catch {
    return undefined;
  }
};

/** Why the code of a commit cannot be built here; undefined if it can. On CI that is an error: there the whole history has to be. */
export const whyNotBuilt = (commit: string): string | undefined => {
  if (resolveCommit(commit) !== undefined) return undefined;
  const reason = `commit ${commit} is not in the history of this folder: fetch it with git fetch --unshallow`;
  if (process.env.CI === 'true') throw new Error(`The code of a release cannot be tested: ${reason}.`);
  return reason;
};

type Lock = { readonly packages: Readonly<Record<string, { version?: string; link?: boolean; dev?: boolean }>> };
const readLock = (folder: string): Lock => JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));

/** Are all packages that it runs with installed here, in the same versions? */
const hasSamePackages = (folder: string): boolean => {
  const [then, now] = [readLock(folder).packages, readLock(root).packages];
  return Object.entries(then)
    .filter(([path, { link, dev }]) => path.includes('node_modules/') && link !== true && dev !== true)
    .every(([path, { version }]) => now[path]?.version === version);
};

/** Its own packages are its own; all others are links to those of this folder. */
const linkPackages = (folder: string): void => {
  for (const place of ['.', ...packages]) {
    const installed = join(root, place, 'node_modules');
    if (!existsSync(installed)) continue;
    mkdirSync(join(folder, place, 'node_modules'), { recursive: true });
    for (const name of readdirSync(installed).filter((one) => !['.cache', '@sealpost', 'sealpost'].includes(one)))
      symlinkSync(realpathSync(join(installed, name)), join(folder, place, 'node_modules', name));
  }
  mkdirSync(join(folder, 'node_modules/@sealpost'));
  for (const place of packages) {
    const { name } = JSON.parse(readFileSync(join(folder, place, 'package.json'), 'utf8')) as { name: string };
    symlinkSync(
      relative(dirname(join(folder, 'node_modules', name)), join(folder, place)),
      join(folder, 'node_modules', name),
    );
  }
};

const build = (commit: string, folder: string): void => {
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', commit) });
  if (hasSamePackages(folder)) linkPackages(folder);
  else execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'pipe' });
  for (const place of packages)
    execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', place], { cwd: folder, stdio: 'pipe' });
};

/** The path of a release's command, for `startProgram`. Built once for each commit. */
export const releasedCommand = (commit: string): string => {
  const whole = resolveCommit(commit);
  if (whole === undefined) throw new Error(`No such commit: ${commit}`);
  // Outside of node_modules, where TypeScript resolves no names with #. Another clone, or other packages, have another folder.
  const place = createHash('sha256')
    .update(`${root} ${whole}`)
    .update(readFileSync(join(root, 'package-lock.json')));
  const folder = join(tmpdir(), `sealpost-release-${place.digest('hex').slice(0, 16)}`);
  const command = join(folder, 'cli/dist/main.js');
  if (existsSync(command)) return command;
  // Under its name only once it is complete: several tests may build it at once.
  const partial = `${folder}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  try {
    build(whole, partial);
    renameSync(partial, folder);
  } catch (error) {
    if (!existsSync(command)) throw error;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return command;
};
