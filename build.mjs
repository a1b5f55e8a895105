// Compiles the packages into their dist/ folders and builds the explorer, unless both are up to date. `npm start`, `npm run build` and
// `npm run tests` begin with it. The commands run dist/ only while it is up to date: through tsx, one start costs three times the CPU.
import { spawn } from 'node:child_process';
import { readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));
const packages = ['protocol', 'client', 'simulator', 'server', 'sandbox', 'conformance', 'cli'];

/** Its modification time is when the last complete build began. */
const stamp = join(root, 'cli/dist/.built');

const modifiedMs = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs;

const filesBelow = (folder) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

const inputs = (name) => [
  ...filesBelow(`${name}/src`),
  ...['package.json', 'tsconfig.json'].map((file) => join(root, name, file)),
];
const outputs = (name) => filesBelow(`${name}/dist`);

/** File systems may date a file by a clock that advances in steps of up to 10 ms. */
const clockStepMs = 20;

/** Is dist/ of every package newer than all sources? A build that is under way, or that failed, is not. */
export const isFresh = () => {
  const builtMs = modifiedMs(stamp);
  if (builtMs === undefined) return false;
  const shared = ['tsconfig.base.json', 'package-lock.json', 'build.mjs'].map((file) => join(root, file));
  const files = [...shared, ...filesBelow('packaging'), ...packages.flatMap(inputs)];
  return files.every((file) => (modifiedMs(file) ?? 0) < builtMs);
};

const run = (...args) =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' });
    child.on('error', reject);
    child.on('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`node ${args.join(' ')} exited with ${code}`)),
    );
  });

const compile = (name) => run(join(root, 'node_modules/typescript/bin/tsc'), '-p', name);

const buildPackages = async () => {
  if (isFresh()) return;
  const startedMs = Date.now();
  process.stderr.write('Compiling…\n');
  await compile('protocol');
  await Promise.all(['client', 'simulator', 'conformance'].map(compile));
  await compile('server');
  await compile('sandbox');
  await compile('cli');
  (await import('./packaging/commonjs.mjs')).writeCommonJsEntries();
  await (await import('./packaging/threads.mjs')).bundleThreads();
  for (const file of packages.flatMap(outputs)) if (modifiedMs(file) < startedMs - clockStepMs) rmSync(file);
  writeFileSync(stamp, '');
  utimesSync(stamp, startedMs / 1_000, startedMs / 1_000);
  process.stderr.write(`Compiled in ${((Date.now() - startedMs) / 1_000).toFixed(1)} s.\n`);
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await Promise.all([buildPackages(), run('explorer/build.mjs')]);
  } catch (error) {
    process.stderr.write(`error: the build failed: ${error.message}. Run \`npm ci\` first if packages are missing.\n`);
    process.exitCode = 1;
  }
}
