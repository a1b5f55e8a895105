// A file beside an embedded store that says which keys its running node has: who seals secrets anew looks there first. Fresh for seconds.
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KeyHolder, type KeyHolders, keyHolderFreshMs } from './nodes.ts';

export const createFileKeyHolders = (folder: string): KeyHolders => {
  const path = join(folder, 'node-keys.json');
  return {
    announce: async (holder) => {
      const partial = `${path}.${process.pid}`;
      writeFileSync(partial, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
      renameSync(partial, path);
    },
    withdraw: async () => rmSync(path, { force: true }),
    list: async () => {
      const stats = statSync(path, { throwIfNoEntry: false });
      if (stats === undefined || Math.abs(Date.now() - stats.mtimeMs) > keyHolderFreshMs) return [];
      try {
        return [JSON.parse(readFileSync(path, 'utf8')) as KeyHolder]; // written as one, and whole or not at all
      } catch {
        return []; // it has just ended
      }
    },
  };
};
