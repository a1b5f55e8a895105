// Writes files whole, or not at all. Replaces those that hold keys or secrets, by one process at a time. The new content is written to FILE.lock, which only one
// process can create, and renamed; so whoever comes next reads what the process before it wrote.
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Another process is replacing the file, or was killed while it did. */
export class FileBusyError extends Error {
  override readonly name = 'FileBusyError';
}

/** A file is locked for milliseconds, or longer on a slow disk. */
const busyMaxMs = 5_000;
const retryMs = 20;

/** As Linux allows. */
const linksMax = 40;

/** The file that a path leads to through symbolic links, whether or not it exists; the path as given if it is not a link. */
export const followLinks = (path: string, links = linksMax): string => {
  const isLink = links > 0 && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? followLinks(resolve(realpathSync(dirname(path)), readlinkSync(path)), links - 1) : path;
};

/**
 * Replaces a file with the text that `change` returns, which must read the file itself: no other process replaces it meanwhile. A link stays a
 * link, and owner and mode stay; a new file is for its owner only. Throws `FileBusyError` if another process does not finish within `waitMaxMs`.
 */
export const replaceFile = async (
  path: string,
  change: () => string | Promise<string>,
  waitMaxMs = busyMaxMs,
): Promise<void> => {
  const target = followLinks(path);
  const lock = `${target}.lock`;
  const file = await openLock(target, lock, waitMaxMs);
  try {
    try {
      writeOwned(file, await change(), target);
    } finally {
      closeSync(file);
    }
    renameSync(lock, target);
  } catch (error) {
    rmSync(lock, { force: true });
    throw error;
  }
};

const openLock = async (target: string, lock: string, waitMaxMs: number): Promise<number> => {
  const endMs = performance.now() + waitMaxMs;
  for (;;) {
    const file = openNew(lock);
    if (file !== undefined) return file;
    if (performance.now() >= endMs)
      throw new FileBusyError(
        `Another command is changing ${target}. Wait for it and run this one again. If none is running, one was killed: delete ${lock}.`,
      );
    await sleep(retryMs);
  }
};

/** Creates a file for its owner only, and opens it. Undefined if something is there, which is never opened: it may be a link that someone else made. */
export const openNew = (path: string): number | undefined => {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return undefined;
    throw error;
  }
};

/** Makes a file for its owner only, whole or not at all, and durable. False when something is there, which is never touched. */
export const createPrivateFile = (path: string, text: string, replaced?: string): boolean => {
  const file = openNew(path);
  if (file === undefined) return false;
  try {
    writeOwned(file, text, replaced);
  } catch (error) {
    rmSync(path, { force: true }); // ours, and without all of it
    throw error;
  } finally {
    closeSync(file);
  }
  syncFolder(path);
  return true;
};

/** Writes all bytes where a file is: one system call may write a part, for example just before the disk is full. Throws the system's error. */
export const writeAll = (
  file: number,
  bytes: Uint8Array,
  write: (file: number, bytes: Uint8Array, offset: number) => number = writeSync,
): void => {
  for (let done = 0; done < bytes.length; ) done += write(file, bytes, done);
};

/** Makes the entry of a file durable. */
export const syncFolder = (path: string): void => {
  const entry = openSync(dirname(resolve(path)), 'r');
  try {
    fsyncSync(entry);
  } finally {
    closeSync(entry);
  }
};

/** Writes a new file durably. It gets the owner of the file that it is to replace, and the owner's permissions, if there is one. */
const writeOwned = (file: number, text: string, replaced: string | undefined): void => {
  if (replaced !== undefined) copyOwner(replaced, file);
  writeFileSync(file, text);
  fsyncSync(file);
};

// Permissions of others are never copied: a file with a secret that is open to others is rejected.
const copyOwner = (from: string, file: number): void => {
  const wanted = statSync(from, { throwIfNoEntry: false });
  if (wanted === undefined || process.platform === 'win32') return; // which has neither
  // An owner may not be a member of the file's group, which has no rights here.
  if (fstatSync(file).uid !== wanted.uid) fchownSync(file, wanted.uid, wanted.gid);
  fchmodSync(file, wanted.mode & 0o700);
};
