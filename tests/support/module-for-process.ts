// Modules of ours for processes of their own: built, if the test run has looked that they are; else from the sources by tsx, which takes a second of
// CPU more for each start.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './source-tree.ts';

const isBuilt = process.env.SEALPOST_BUILT_COMMAND !== undefined;

/** Options of a process that imports packages of ours by name, or such a module. */
export const execArgvForModules: readonly string[] = isBuilt
  ? []
  : ['--conditions=source', '--import', import.meta.resolve('tsx')];

/** The URL of `server/src/….ts`. */
export const urlForProcess = (path: string): string =>
  pathToFileURL(join(root, isBuilt ? path.replace('/src/', '/dist/').replace(/ts$/, 'js') : path)).href;
