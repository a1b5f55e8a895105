// The built explorer, for tests that need it: made where something has changed, and read from where the server finds it.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readText, root } from '../support/source-tree.ts';

/** As `npm start` does; quick when nothing has changed. */
export const buildExplorer = async (): Promise<void> => {
  await promisify(execFile)(process.execPath, [join(root, 'explorer/build.mjs')]);
};

/** A built file by the path that it is served at. */
export const builtText = (path: string): string => readText(`server/public${path}`);
