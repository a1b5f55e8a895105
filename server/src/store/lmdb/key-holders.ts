// A file next to an embedded store that lists the keys of its running node, for `secret rewrap`. It is valid for seconds and written asynchronously
// every second: a disk that does not answer must not block reads.
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type KeyHolder, type KeyHolders, keyHolderFreshMs } from '../nodes.ts';

export const createFileKeyHolders = (folder: string): KeyHolders => {
  const path = join(folder, 'node-keys.json');
  return {
    announce: async (holder) => {
      const partial = `${path}.${process.pid}`;
      await writeFile(partial, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
      await rename(partial, path);
    },
    withdraw: () => rm(path, { force: true }),
    list: async () => {
      const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined;
        throw error;
      });
      if (stats === undefined || Math.abs(Date.now() - stats.mtimeMs) > keyHolderFreshMs) return [];
      try {
        return [JSON.parse(await readFile(path, 'utf8')) as KeyHolder]; // written as one, and whole or not at all
      } catch {
        return []; // it has just ended
      }
    },
  };
};
