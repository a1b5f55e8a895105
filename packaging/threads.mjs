// Bundles the modules that run in threads and start with every server: from single files each of them loads a hundred, most of them of ox, which
// takes a sixth of the CPU of a start. What ox brings is copied into the packages, so its licenses are too.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

/** By package. Only those that start no threads themselves: a module is looked for beside the file that starts it. */
const threads = {
  server: ['ingest/verifier-thread', 'store/lmdb/write/writer-thread'],
  simulator: ['signing-thread'],
};
/** Copied into a bundle: plain JavaScript. Whatever else is imported by name has native parts, or is not loaded by each thread. */
const copied = /^(ox|@noble\/[^/]+|@scure\/[^/]+|@sealpost\/protocol)(\/|$)/;

const importOthers = {
  name: 'import-others',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^[^./#]/ }, ({ path, kind }) =>
      kind === 'entry-point' || copied.test(path) ? undefined : { path, external: true },
    ),
};

/** The license of every package of others that has a part in a bundle, once. */
const licensesOf = ({ outputs }) => {
  const parts = Object.values(outputs).flatMap(({ inputs }) => Object.entries(inputs));
  const folders = parts
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([path]) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0])
    .filter((folder) => folder !== undefined && !folder.endsWith('node_modules/@sealpost/protocol'));
  const texts = folders.map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const file = ['LICENSE', 'LICENSE.md'].map((name) => join(root, folder, name)).find((path) => existsSync(path));
    if (file === undefined) throw new Error(`${name} has no license that could be copied`);
    return `${name} ${version}\n\n${readFileSync(file, 'utf8').trim()}\n`;
  });
  return [...new Set(texts)].sort();
};

/** Replaces the compiled modules. */
export const bundleThreads = async () => {
  for (const [folder, modules] of Object.entries(threads)) {
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: modules.map((module) => `${folder}/dist/${module}.js`),
      outdir: `${folder}/dist`,
      outbase: `${folder}/dist`,
      allowOverwrite: true,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      sourcemap: true,
      sourcesContent: false,
      metafile: true,
      preserveSymlinks: true, // where packages are links, as while packing, no path of this machine goes into the bundle
      logLevel: 'warning',
      plugins: [importOthers],
    });
    const licenses = licensesOf(metafile);
    if (licenses.length > 0)
      writeFileSync(join(root, folder, 'dist/third-party-licenses.txt'), licenses.join(`\n${'-'.repeat(80)}\n\n`));
  }
};
