// Bundles programs that run in processes of their own, with the threads that they start: from the sources a child takes a second to
// start, and through a loader every closure costs a name, so that figures would be those of the loader.
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleModules, threadModules } from '../tests/bundled-threads.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

export type Bundle = {
  /** The file of a program, by the name of its source without ending. */
  readonly programOf: (name: string) => string;
  readonly remove: () => void;
};

/** Bundles sources, given relative to the root, into a folder that `remove` takes away. */
export const bundle = async (prefix: string, entries: readonly string[]): Promise<Bundle> => {
  // Inside the project, so that native modules are found.
  const folder = mkdtempSync(join(root, prefix));
  const threads = process.env.SEALPOST_BUNDLED_THREADS; // a test run has bundled them
  await bundleModules(threads === undefined ? [...entries, ...threadModules] : entries, folder, threads === undefined);
  if (threads !== undefined)
    for (const name of readdirSync(threads)) copyFileSync(join(threads, name), join(folder, name));
  return {
    programOf: (name) => join(folder, `${name}.mjs`),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};
