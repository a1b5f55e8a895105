// Other JavaScript runtimes for the tests, as the npm registry has them: plain binaries inside packages, downloaded into a cache folder. They
// are no dependencies. npm does the downloading, so that its registry, proxy and integrity check hold here too.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A package of the registry with a binary in it; `range` is the versions that are asked for. */
type RuntimePackage = { readonly name: string; readonly range: string; readonly binary: string };

export type Runtime = { readonly version: string; readonly binary: string };

/** A runtime that cannot be had, and why. */
export type MissingRuntime = { readonly missing: string };

/** The releases of Node that a deployment may run on, beside the one that runs the tests. */
export const nodeReleases: readonly number[] = [22, 24, 26].filter(
  (major) => major !== Number.parseInt(process.versions.node, 10),
);

const cacheFolder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sealpost', 'runtimes');

/** A download of 60 MB, for those who wait for one. */
export const downloadMs = 120_000;

/** For so long the newest version is not asked for again. */
const lookAgainMs = 24 * 3_600_000;

/** The newest release of a major version of Node. */
export const getNode = (major: number): Promise<Runtime | MissingRuntime> =>
  getRuntime({ name: `node-linux-${process.arch}`, range: `^${major}`, binary: 'bin/node' });

export const getBun = (): Promise<Runtime | MissingRuntime> =>
  // Without AVX2, as runners of CI may be.
  getRuntime({
    name: process.arch === 'arm64' ? '@oven/bun-linux-aarch64' : '@oven/bun-linux-x64-baseline',
    range: '*',
    binary: 'bin/bun',
  });

export const getDeno = (): Promise<Runtime | MissingRuntime> =>
  getRuntime({ name: `@deno/linux-${process.arch}-glibc`, range: '*', binary: 'deno' });

/** Throws in CI, where a runtime that is not tested is a failure; elsewhere returns what to say. */
const getRuntime = async (wanted: RuntimePackage): Promise<Runtime | MissingRuntime> => {
  try {
    if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch))
      return { missing: `${wanted.name}: the packages are for Linux on x64 and arm64` };
    return await findRuntime(wanted);
  } catch (cause) {
    const missing = `${wanted.name}@${wanted.range} cannot be had from the npm registry: ${firstError(cause)}`;
    if (process.env.CI) throw new Error(missing, { cause });
    return { missing };
  }
};

const firstError = (cause: unknown): string => {
  const { stderr, message } = Object(cause) as { readonly stderr?: string; readonly message?: string }; // what execFile rejects with
  return /npm error .*/.exec(stderr ?? '')?.[0] ?? message ?? String(cause);
};

const findRuntime = async (wanted: RuntimePackage): Promise<Runtime> => {
  const folder = join(cacheFolder, `${wanted.name}@${wanted.range.replaceAll('*', 'latest')}`.replaceAll('/', '-'));
  const note = join(folder, 'newest.json');
  const known = readNote(note);
  const isRecent = known !== undefined && Date.now() - statSync(note).mtimeMs < lookAgainMs;
  if (known !== undefined && isRecent) return known;
  try {
    return await download(wanted, folder, note);
  } catch (error) {
    if (known !== undefined) return known; // out of reach now; an older one tests more than none
    throw error;
  }
};

const readNote = (note: string): Runtime | undefined => {
  if (!existsSync(note)) return undefined;
  const runtime = JSON.parse(readFileSync(note, 'utf8')) as Runtime; // written below
  return existsSync(runtime.binary) ? runtime : undefined;
};

/** Another process may have downloaded the same meanwhile, and runs it. */
export const moveUnlessThere = (from: string, to: string): void => {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
};

type Dist = { readonly version: string; readonly 'dist.integrity': string };

const newestOf = async ({ name, range }: RuntimePackage): Promise<Dist> => {
  const { stdout } = await run('npm', ['view', `${name}@${range}`, 'version', 'dist.integrity', '--json']);
  const found = [JSON.parse(stdout) as Dist | readonly Dist[]].flat(); // one, or several versions
  const order = new Intl.Collator('en', { numeric: true });
  const newest = found.toSorted((a, b) => order.compare(b.version, a.version))[0];
  if (newest === undefined) throw new Error('the registry lists no such version');
  return newest;
};

const download = async (wanted: RuntimePackage, folder: string, note: string): Promise<Runtime> => {
  const { version, 'dist.integrity': integrity } = await newestOf(wanted);
  const place = join(folder, version);
  const runtime = { version, binary: join(place, wanted.binary) };
  mkdirSync(folder, { recursive: true });
  if (!existsSync(runtime.binary)) await unpack(wanted, version, integrity, folder);
  const before = readNote(note);
  // Another process may read it meanwhile.
  writeFileSync(`${note}.${process.pid}`, JSON.stringify(runtime));
  renameSync(`${note}.${process.pid}`, note);
  if (before !== undefined && before.version !== version)
    rmSync(join(folder, before.version), { recursive: true, force: true });
  return runtime;
};

const unpack = async (wanted: RuntimePackage, version: string, integrity: string, folder: string): Promise<void> => {
  const name = `${wanted.name}@${version}`;
  const stage = mkdtempSync(join(folder, 'stage-'));
  try {
    const { stdout } = await run('npm', ['pack', name, '--json', '--pack-destination', stage]);
    const [{ filename }] = JSON.parse(stdout) as [{ readonly filename: string }]; // one package was asked for
    const tarball = join(stage, filename.replace(/^@/, '').replaceAll('/', '-'));
    const [algorithm = '', expected] = integrity.split(/-(.*)/s);
    const digest = createHash(algorithm).update(readFileSync(tarball)).digest('base64');
    if (digest !== expected) throw new Error(`${name} does not match its integrity hash`);
    await run('tar', ['-xzf', tarball, '-C', stage, `package/${wanted.binary}`]);
    moveUnlessThere(join(stage, 'package'), join(folder, version));
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
};
