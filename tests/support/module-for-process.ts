// A module of the server for a process of its own: built, if the test run has looked that it is; else from the sources by tsx, which takes a second
// of CPU more for each start.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './source-tree.ts';

/** `path` is `server/src/….ts`; `execArgv` are options of the process. */
export const moduleForProcess = (path: string): { readonly url: string; readonly execArgv: readonly string[] } => {
  const urlOf = (file: string): string => pathToFileURL(join(root, file)).href;
  if (process.env.SEALPOST_BUILT_COMMAND === undefined)
    return { url: urlOf(path), execArgv: ['--conditions=source', '--import', import.meta.resolve('tsx')] };
  return { url: urlOf(path.replace('/src/', '/dist/').replace(/ts$/, 'js')), execArgv: [] };
};
