// Programs of Debian for tests. One that the machine lacks is unpacked from its package into a folder of its own: nothing is installed,
// and no service starts.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { moveUnlessThere } from './runtimes.ts';

/** The packages that hold a program, and what of its libraries a small machine lacks. */
const packages = {
  nginx: ['nginx'],
  haproxy: ['haproxy', 'liblua5.3-0', 'libopentracing1', 'libopentracing-c-wrapper0'],
  caddy: ['caddy'],
  pgbouncer: ['pgbouncer', 'libc-ares2', 'libevent-2.1-7'],
  'mkfs.xfs': ['xfsprogs', 'liburcu8', 'libinih1', 'libicu72'],
  promtool: ['prometheus'],
  prometheus: ['prometheus'],
  strace: ['strace', 'libunwind8', 'liblzma5'],
  'systemd-analyze': ['systemd'],
  zsh: ['zsh'],
  fish: ['fish', 'fish-common', 'libpcre2-32-0'],
} as const;

export type ProgramName = keyof typeof packages;

const findInstalled = (name: string): string | undefined =>
  [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
    .map((place) => join(place, name))
    .find((path) => existsSync(path));

export type FoundProgram = { readonly path: string } | { readonly missing: string };

/** Kept from one run to the next: unpacking takes seconds of CPU, and several test files need the same program. */
const cacheFolder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sealpost', 'debian', process.arch);

/** The path of a program, or why there is none. */
export const findDebianProgram = (name: ProgramName): FoundProgram => {
  const installed = findInstalled(name);
  if (installed !== undefined) return { path: installed };
  const folder = join(cacheFolder, name);
  try {
    if (!existsSync(folder)) unpack(name, folder);
    return { path: join(folder, `run-${name}`) };
  } catch (error) {
    return {
      missing: `${name} is not installed, and cannot be had: ${error instanceof Error ? error.message : error}`,
    };
  }
};

const quiet = { stdio: 'pipe' } as const;

/** Under another name until it is complete: other test files look for it at the same time. */
const unpack = (name: ProgramName, folder: string): void => {
  mkdirSync(cacheFolder, { recursive: true });
  const stage = mkdtempSync(join(cacheFolder, 'stage-'));
  try {
    download(name, stage);
    for (const file of readdirSync(stage)) {
      execFileSync('dpkg', ['-x', join(stage, file), stage]);
      rmSync(join(stage, file));
    }
    writeStart(name, stage, folder);
    moveUnlessThere(stage, folder);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
};

const download = (name: ProgramName, folder: string): void => {
  const fetchPackages = () => execFileSync('apt-get', ['download', ...packages[name]], { ...quiet, cwd: folder });
  try {
    fetchPackages();
  } catch {
    execFileSync('apt-get', ['update'], quiet); // a new machine knows of no package yet
    fetchPackages();
  }
};

/** Writes what starts a program with its libraries, once the stage is at its place. */
const writeStart = (name: ProgramName, stage: string, folder: string): void => {
  const found = ['usr/bin', 'usr/sbin', 'bin', 'sbin']
    .map((place) => join(place, name))
    .find((path) => existsSync(join(stage, path)));
  if (found === undefined) throw new Error(`there is no ${name} in ${packages[name].join(', ')}`);
  const libraries = existsSync(join(stage, 'usr/lib')) ? 'usr/lib' : '.';
  const places = ['.', ...readdirSync(join(stage, libraries))].map((entry) => join(folder, libraries, entry));
  const path = join(stage, `run-${name}`);
  writeFileSync(path, `#!/bin/sh\nLD_LIBRARY_PATH='${places.join(':')}' exec '${join(folder, found)}' "$@"\n`);
  chmodSync(path, 0o755);
};
