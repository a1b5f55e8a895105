// Builds the explorer for tests if something has changed, and reads the built files.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readText, root } from '../support/source-tree.ts';

/** As `npm start` does; fast if nothing has changed. */
export const buildExplorer = async (): Promise<void> => {
  await promisify(execFile)(process.execPath, [join(root, 'explorer/build.mjs')]);
};

/** A built file by its URL path. */
export const builtText = (path: string): string => readText(`server/public${path}`);
