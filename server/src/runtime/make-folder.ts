// Makes folders one by one, so that an error is about the one that cannot be made. Of `mkdirSync` with `recursive`, Node 20 gives ENOENT for a read-only
// file system and for a link that leads nowhere, and does not return for a folder in `/proc`.
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // the error of making it says why
  }
};

/** Makes a folder, and those above it. Returns the first one that was made; undefined where all are there. */
export const makeFolder = (path: string, mode = 0o777): string | undefined => {
  const make = (first: string | undefined): string | undefined => {
    try {
      mkdirSync(path, { mode });
      return first ?? path;
    } catch (error) {
      if (isFolder(path)) return first;
      throw error;
    }
  };
  try {
    return make(undefined);
  } catch (error) {
    const above = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || above === path) throw error; // of node:fs
    return make(makeFolder(above, mode));
  }
};
