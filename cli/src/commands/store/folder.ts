// Copying a whole store: into a hidden part of the target first, and from there to its place once it is on the disk, so
// that an interrupted copy never looks like a store. The target itself stays, since it may be a mount point.
import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Store, StoreError } from '@sealpost/server/store/store';
import { CommandError, exitCodes, usageError } from '../../failure.ts';

/** The folder behind a store's URL. */
export function folderOf(url: string): string {
  const scheme = /^([a-z][a-z0-9+]+):/.exec(url)?.[1];
  if (scheme === undefined || scheme === 'lmdb') return url.slice(scheme === undefined ? 0 : 'lmdb:'.length);
  throw usageError(`A ${scheme}: store is not a folder. Use sealpost store copy --from FOLDER --to ADDRESS.`);
}

/** The URL of the store in a folder, whose name may look like one. */
export const addressOf = (folder: string): string => `lmdb:${folder}`;

const listFolder = (folder: string): readonly string[] =>
  existsSync(folder) ? readdirSync(folder).filter((name) => name !== 'lost+found') : []; // part of every ext4 volume

/** Throws if a folder is not empty. `advice` says what to do. */
export function requireEmpty(folder: string, advice: string): void {
  if (listFolder(folder).length > 0) throw new CommandError(exitCodes.refused, `${folder} is not empty. ${advice}`);
}

/** The parts of a store. */
const isStorePart = (name: string): boolean => name === 'reports' || name === 'admin';

/** Throws if a folder contains a store, or a copy that was cut short. Other files, such as the key, are allowed. */
export function requireNoStore(folder: string, advice: string): void {
  const names = listFolder(folder);
  if (names.some(isStorePart)) throw new CommandError(exitCodes.refused, `There is a store in ${folder}. ${advice}`);
  const partial = names.find((name) => name.startsWith('.partial-'));
  if (partial === undefined) return;
  const text = `${folder} has ${partial} of a copy that was interrupted. If no other copy is running, delete it, then run the command again.`;
  throw new CommandError(exitCodes.refused, text);
}

/** Copies a store into a folder without one, which may be new; durable when it resolves. */
export async function copyStoreFolder(store: Store, folder: string): Promise<void> {
  const partial = join(folder, `.partial-${process.pid}`);
  try {
    await store.backup(partial);
    syncAll(partial);
    // `admin` before `reports`: without the latter there is no store yet.
    for (const name of readdirSync(partial).sort()) renameSync(join(partial, name), join(folder, name));
    rmdirSync(partial);
    sync(folder);
    sync(dirname(resolve(folder)));
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    if (error instanceof StoreError) throw error;
    const what = error instanceof Error ? error.message : String(error);
    const text = `The copy to ${folder} failed: ${what}. Check the disk and its permissions, then run the command again.`;
    throw new CommandError(exitCodes.unavailable, text, { cause: error });
  }
}

const syncAll = (folder: string): void => {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) syncAll(path);
    else sync(path);
  }
  sync(folder);
};

const sync = (path: string): void => {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};
