// Programs of Debian for tests. One that the machine lacks is unpacked from its package into a folder of its own: nothing is installed,
// and no service starts.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

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

export type DebianPrograms = {
  /** The path of a program, or why there is none. */
  readonly find: (name: ProgramName) => { readonly path: string } | { readonly missing: string };
  readonly remove: () => void;
};

/** A place for what has to be unpacked. */
export const createDebianPrograms = (): DebianPrograms => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-debian-'));
  const found = new Map<ProgramName, ReturnType<DebianPrograms['find']>>();
  const look = (name: ProgramName): ReturnType<DebianPrograms['find']> => {
    const installed = findInstalled(name);
    if (installed !== undefined) return { path: installed };
    try {
      return { path: unpack(name, join(folder, name)) };
    } catch (error) {
      return {
        missing: `${name} is not installed, and cannot be had: ${error instanceof Error ? error.message : error}`,
      };
    }
  };
  return {
    find: (name) => {
      const before = found.get(name) ?? look(name); // a package is unpacked once
      found.set(name, before);
      return before;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};

const quiet = { stdio: 'pipe' } as const;

const unpack = (name: ProgramName, folder: string): string => {
  mkdirSync(folder);
  const download = () => execFileSync('apt-get', ['download', ...packages[name]], { ...quiet, cwd: folder });
  try {
    download();
  } catch {
    execFileSync('apt-get', ['update'], quiet); // a new machine knows of no package yet
    download();
  }
  for (const file of readdirSync(folder)) execFileSync('dpkg', ['-x', join(folder, file), folder]);
  const found = ['usr/bin', 'usr/sbin', 'bin', 'sbin']
    .map((place) => join(folder, place, name))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error(`there is no ${name} in ${packages[name].join(', ')}`);
  const libraries = readdirSync(join(folder, 'usr')).includes('lib') ? join(folder, 'usr/lib') : folder;
  const places = [libraries, ...readdirSync(libraries).map((entry) => join(libraries, entry))];
  const path = join(folder, `run-${name}`);
  writeFileSync(path, `#!/bin/sh\nLD_LIBRARY_PATH='${places.join(':')}' exec '${found}' "$@"\n`);
  chmodSync(path, 0o755);
  return path;
};
