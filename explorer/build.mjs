// Builds the explorer into the server's package, unless what is there was built from the same sources. `npm start`, `npm run build` and
// `npm run tests` begin with it; most of the time it takes a few milliseconds and says nothing.
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = join(root, 'server/public');
const stampName = '.stamp';

// Whatever the files are made from. The lock file stands for everything that is installed.
const sources = [
  'explorer',
  'client/package.json',
  'client/src',
  'protocol/package.json',
  'protocol/src',
  'package-lock.json',
];
const isApart = /(^|\/)(node_modules|[^/]+\.(test|fuzz|contract|fixture)\.tsx?)$/;

/** Every file at or below a path, relative to the root, in an order that is the same everywhere. */
const listFiles = (path) => {
  if (isApart.test(path)) return [];
  try {
    return readdirSync(join(root, path))
      .sort()
      .flatMap((name) => listFiles(`${path}/${name}`));
  } catch (error) {
    if (error.code === 'ENOTDIR') return [path];
    throw error;
  }
};

/** The stamp of the sources as they are now. */
const stampOf = () => {
  const hash = createHash('sha256');
  for (const path of sources.flatMap(listFiles)) {
    const content = readFileSync(join(root, path));
    hash.update(`${path} ${content.length}\n`).update(content);
  }
  return hash.digest('hex');
};

const readStamp = () => {
  try {
    return readFileSync(join(target, stampName), 'utf8');
  } catch {
    return undefined; // not built yet, or not to the end
  }
};

/** Puts a finished build in the place of the last one: a server that starts meanwhile finds one of the two, never half of one. */
const replace = (built) => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return renameSync(built, target);
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(error.code) || attempt === 10) throw error;
      const old = `${built}-old-${attempt}`;
      try {
        renameSync(target, old);
      } catch {
        // another build was faster; the next attempt sees what it made
      }
      rmSync(old, { recursive: true, force: true });
    }
  }
};

const build = async (stamp) => {
  if (/[#?]/.test(root))
    throw new Error(`Vite does not build in a folder whose path has a # or ?. Move the checkout: ${root}`);
  const { build: buildWithVite } = await import('vite');
  const outDir = `${target}-${randomBytes(6).toString('hex')}`;
  try {
    const configFile = join(root, 'explorer/vite.config.ts');
    await buildWithVite({ configFile, logLevel: 'error', build: { outDir, emptyOutDir: true } });
    writeFileSync(join(outDir, stampName), stamp);
    replace(outDir);
  } finally {
    rmSync(outDir, { recursive: true, force: true });
  }
};

const stamp = stampOf();
if (readStamp() !== stamp) {
  const startedMs = performance.now();
  process.stderr.write('Building the explorer…\n');
  try {
    await build(stamp);
    process.stderr.write(`Built in ${((performance.now() - startedMs) / 1_000).toFixed(1)} s.\n`);
  } catch (error) {
    const hint = error.code === 'ERR_MODULE_NOT_FOUND' ? ' Run `npm ci` first.' : '';
    process.stderr.write(`error: the explorer could not be built: ${error.message}${hint}\n`);
    process.exitCode = 1;
  }
}
