// Builds every package in a copy of the sources and packs them into one folder: `npm run pack [-- FOLDER]`, dist-packages by default.
// A copy, because a dist/ in the work tree may hold files whose sources are gone, and may change while it is packed. With `--built` after the folder it
// comes along, and what is up to date is not compiled again.
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
const { workspaces } = readManifest('.');
const names = new Map(workspaces.map((folder) => [folder, readManifest(folder).name]));

const isBuilt = process.argv[3] === '--built';

const run = (command, args, cwd) =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Copies what a build reads. The explorer's built files come along: they are built again only when its sources have changed. */
const copySources = (stage) => {
  const isSource = (path) =>
    !/^(node_modules|data.*|public-.*)$/.test(basename(path)) && (isBuilt || basename(path) !== 'dist');
  for (const path of [
    'package.json',
    'package-lock.json',
    'tsconfig.base.json',
    'build.mjs',
    'packaging',
    ...workspaces,
  ])
    cpSync(join(root, path), join(stage, path), { recursive: true, preserveTimestamps: true, filter: isSource });
};

/** The packages that are installed, except ours: those are the copies. */
const linkPackages = (stage) => {
  mkdirSync(join(stage, 'node_modules/@sealpost'), { recursive: true });
  const installed = readdirSync(join(root, 'node_modules'));
  for (const name of installed.filter((name) => name !== '@sealpost' && ![...names.values()].includes(name)))
    symlinkSync(join(root, 'node_modules', name), join(stage, 'node_modules', name));
  for (const [folder, name] of names) {
    symlinkSync(join(stage, folder), join(stage, 'node_modules', name));
    const own = join(root, folder, 'node_modules');
    if (existsSync(own)) symlinkSync(own, join(stage, folder, 'node_modules'));
  }
};

/**
 * Adds to the manifests of the copies what their dependencies depend on by a range, at the version of the lock file: an installation is what was
 * tested. npm reads no npm-shrinkwrap.json of a tarball that is installed from a file.
 */
const pinVersions = (stage) => {
  const { packages } = JSON.parse(readFileSync(join(stage, 'package-lock.json'), 'utf8'));
  /** The entry that Node resolves a name to, from a package's place. */
  const resolveFrom = (place, name) => {
    for (let at = place; ; at = at.replace(/(^|\/)[^/]*$/, '')) {
      const path = join(at, 'node_modules', name);
      if (packages[path] !== undefined && basename(at) !== 'node_modules') return path;
      if (at === '') return undefined;
    }
  };
  for (const folder of names.keys()) {
    const file = join(stage, folder, 'package.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8'));
    const direct = new Set(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }));
    const seen = new Set();
    const queue = [[folder, false]];
    for (const [place, isOptional] of queue) {
      const { dependencies = {}, optionalDependencies = {} } = packages[place];
      for (const [name, range] of Object.entries({ ...dependencies, ...optionalDependencies })) {
        const found = resolveFrom(place, name);
        const isOptionalHere = isOptional || name in optionalDependencies;
        if (found === undefined || seen.has(found) || packages[found].link) continue;
        seen.add(found);
        queue.push([found, isOptionalHere]);
        if (direct.has(name) || range === packages[found].version) continue;
        direct.add(name);
        const field = isOptionalHere ? 'optionalDependencies' : 'dependencies';
        manifest[field] = { ...manifest[field], [name]: packages[found].version };
      }
    }
    writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
  }
};

const pack = (stage, target) => {
  copySources(stage);
  linkPackages(stage);
  run('npm', ['run', 'build'], stage);
  pinVersions(stage);
  const published = workspaces.filter((folder) => readManifest(folder).private !== true);
  const places = published.map((folder) => `./${folder}`);
  const packed = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', target, ...places], stage));
  return packed.map(({ name, filename }) => [name, join(target, filename)]);
};

const target = resolve(process.argv[2] ?? join(root, 'dist-packages'));
mkdirSync(target, { recursive: true });
// Tarballs of an earlier run, of other versions too: `npm install ./dist-packages/*.tgz` must not find two. Nothing else in the folder is touched.
for (const name of readdirSync(target).filter((name) => /^sealpost(-[a-z]+)?-\d.*\.tgz$/.test(name)))
  rmSync(join(target, name));
const stage = mkdtempSync(join(tmpdir(), 'sealpost-pack-'));
try {
  const tarballs = new Map(pack(stage, target));
  const list = (...wanted) => wanted.map((name) => `./${relative(process.cwd(), tarballs.get(name))}`).join(' ');
  process.stdout.write(`Packed ${tarballs.size} packages into ${target}.

Install the command sealpost, with everything in it:
  npm install -g ${list(...tarballs.keys())}
Install the client in a project:
  npm install ${list('@sealpost/protocol', '@sealpost/client')}
Install the sandbox for tests in a project:
  npm install --save-dev ${list('@sealpost/protocol', '@sealpost/client', '@sealpost/simulator', '@sealpost/server', '@sealpost/sandbox')}
`);
} catch (error) {
  process.stderr.write(`error: ${error.message}\n${error.stdout ?? ''}${error.stderr ?? ''}`);
  process.exitCode = 1;
} finally {
  rmSync(stage, { recursive: true, force: true });
}
