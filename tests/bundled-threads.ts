// Bundles the modules that run in threads, once for all test files: tsx, which runs them from the sources, takes up to a second of CPU for
// every thread, and every store that is opened for writing starts one.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { TestProject } from 'vitest/node';
import { readJson, root } from './support/source-tree.ts';

/** Modules that run in threads. Their names differ, which startThread relies on. */
export const threadModules = [
  'cli/src/commands/demo/thread.ts',
  'server/src/ingest/verifier-thread.ts',
  'sandbox/src/network-thread.ts',
  'sandbox/src/replay/replay-thread.ts',
  'server/src/store/lmdb/write/writer-thread.ts',
  'simulator/src/signing-thread.ts',
];

/**
 * Left outside of bundles: what runs the tests, and packages with native parts or threads. Both are at the root of node_modules. Not ox,
 * which is plain JavaScript: its hundred files are a fifth of what it takes a program to start.
 */
const packages = [
  ...Object.keys(Object(readJson('package.json').devDependencies)),
  ...['server', 'cli']
    .flatMap((folder) => Object.keys(Object(readJson(`${folder}/package.json`).dependencies)))
    .filter((name) => !name.startsWith('@')),
].filter((name) => name !== 'ox');

/** Bundles modules of ours with what they import, each into `NAME.mjs` of a folder, with a source map beside it where asked. */
export const bundleModules = async (modules: readonly string[], folder: string, sourcemap = false): Promise<void> => {
  await build({
    entryPoints: modules.map((module) => join(root, module)),
    outdir: folder,
    entryNames: '[name]',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    external: packages,
    conditions: ['source'],
    sourcemap: sourcemap ? 'external' : false,
  });
};

/** What vitest runs before the tests of each project, the first of which bundles for all; it calls what is returned after them. */
export const setup = async ({ vitest }: Pick<TestProject, 'vitest'>): Promise<(() => void) | undefined> => {
  if (process.env.SEALPOST_BUNDLED_THREADS !== undefined) return undefined;
  const folder = mkdtempSync(join(root, 'data-threads-')); // inside the project, so that packages are found
  process.env.SEALPOST_BUNDLED_THREADS = folder;
  await bundleModules(threadModules, folder);
  const { isFresh }: { readonly isFresh: () => boolean } = await import(join(root, 'build.mjs')); // it has no types
  // Who watches tests edits sources meanwhile.
  if (!vitest.config.watch && isFresh()) process.env.SEALPOST_BUILT_COMMAND = join(root, 'cli/dist/main.js');
  return () => rmSync(folder, { recursive: true, force: true });
};
