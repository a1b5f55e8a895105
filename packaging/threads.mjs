// Bundles the modules that run in threads and start with every server: from single files each of them loads a hundred, most of them of ox, which
// takes a quarter of the CPU of a start. What ox brings is copied into the packages, so its licenses are too.
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
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === 'entry-point' || copied.test(path) ? undefined : { path, external: true },
    ),
};

/** The license of every package that has a file in a bundle, once. */
const licensesOf = (inputs) => {
  const folders = inputs.map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]).filter(Boolean);
  return [...new Set(folders)].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const file = ['LICENSE', 'LICENSE.md'].map((name) => join(root, folder, name)).find((path) => existsSync(path));
    if (file === undefined) throw new Error(`${name} has no license that could be copied`);
    return `${name} ${version}\n\n${readFileSync(file, 'utf8').trim()}\n`;
  });
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
      logLevel: 'warning',
      plugins: [importOthers],
    });
    const licenses = licensesOf(Object.keys(metafile.inputs));
    if (licenses.length > 0)
      writeFileSync(join(root, folder, 'dist/third-party-licenses.txt'), licenses.join(`\n${'-'.repeat(80)}\n\n`));
  }
};
