// Recognizes that the files of an open environment were deleted or replaced, for example by a restore: what is written to them is lost when the process
// ends (D243).
import { type BigIntStats, statSync } from 'node:fs';
import { join } from 'node:path';
import { StoreError } from '../store.ts';
import { pagesFile } from './pages-file.ts';

const find = (path: string): BigIntStats | undefined => statSync(path, { bigint: true, throwIfNoEntry: false });

/** Names the files in an environment's folder by device and inode; undefined without pages. */
export const filesIn = (folder: string): string | undefined => {
  const pages = find(pagesFile(folder));
  const lock = find(join(folder, 'lock.mdb')); // without it, processes that open the environment write at the same time
  return pages && `${pages.dev}:${pages.ino} ${lock?.dev}:${lock?.ino}`;
};

export const replacedStore = (folder: string) =>
  new StoreError(
    'store_replaced',
    `The files in ${folder} were deleted or replaced while this process was using them, so it stores nothing more. Move them back, or restart it to use what is there now.`,
  );

/** Throws unless the folder has the files that were opened. */
export const requireFiles = (folder: string, opened: string | undefined): void => {
  const found = filesIn(folder);
  if (found === undefined || found !== opened) throw replacedStore(folder);
};
