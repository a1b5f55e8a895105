// Files next to an embedded store that list the keys of its running nodes, for `secret rewrap`: one file per node, because a writer that was replaced
// keeps serving reads (D136). A file is valid for seconds and written asynchronously every second: a disk that does not answer must not block reads.
import { createHash } from 'node:crypto';
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type KeyHolder, type KeyHolders, keyHolderFreshMs } from '../nodes.ts';

/** Files that are older belong to nodes that were killed, and are removed. */
const keptMs = 60_000;

/** Earlier releases have one file, `node-keys.json`. */
const isList = (name: string): boolean => /^node-keys(-[0-9a-f]{16})?\.json$/.test(name);

const isListOrPartial = (name: string): boolean => /^node-keys(-[0-9a-f]{16})?\.json(\.|$)/.test(name);

export function createFileKeyHolders(folder: string): KeyHolders {
  const pathOf = (node: string): string =>
    join(folder, `node-keys-${createHash('sha256').update(node).digest('hex').slice(0, 16)}.json`);
  let isTidy = false;
  return {
    announce: async (holder) => {
      const path = pathOf(holder.node);
      await writeFile(`${path}.partial`, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
      await rename(`${path}.partial`, path);
      if (isTidy) return;
      isTidy = true;
      for (const name of (await readdir(folder)).filter(isListOrPartial)) await removeOld(join(folder, name));
    },
    withdraw: (node) => rm(pathOf(node), { force: true }),
    list: async () => {
      const names = (await orUndefined(readdir(folder))) ?? [];
      const read = await Promise.all(names.filter(isList).map((name) => readFresh(join(folder, name))));
      return read.filter((one) => one !== undefined).sort((a, b) => (a.node < b.node ? -1 : 1));
    },
  };
}

/** What is read of files; undefined if there is none. */
const orUndefined = <T>(reading: Promise<T>): Promise<T | undefined> =>
  reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });

const ageMs = async (path: string): Promise<number | undefined> => {
  const stats = await orUndefined(stat(path));
  return stats === undefined ? undefined : Math.abs(Date.now() - stats.mtimeMs);
};

const readFresh = async (path: string): Promise<KeyHolder | undefined> => {
  const age = await ageMs(path);
  if (age === undefined || age > keyHolderFreshMs) return undefined;
  const text = await orUndefined(readFile(path, 'utf8')); // its node may have just ended
  try {
    return text === undefined ? undefined : (JSON.parse(text) as KeyHolder); // written above, whole or not at all
  } catch {
    return undefined; // only a power failure leaves a part of it, and ends its node
  }
};

const removeOld = async (path: string): Promise<void> => {
  if (((await ageMs(path)) ?? 0) > keptMs) await rm(path, { force: true });
};
