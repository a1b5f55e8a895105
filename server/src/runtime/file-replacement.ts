// Writes files durably, whole or not at all: under a temporary name first. Those that hold keys or secrets are replaced by one process at a time, so whoever
// comes next reads what the process before it wrote.
import { randomUUID } from 'node:crypto';
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
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { acquireLock, openNew } from './process-lock.ts';

/** Another process is replacing the file. */
export class FileBusyError extends Error {
  override readonly name = 'FileBusyError';
}

/** A file is locked for milliseconds, or longer on a slow disk. */
const busyMaxMs = 5_000;
const retryMs = 20;

/** As Linux allows. */
const linksMax = 40;

/** The file that a path leads to through symbolic links, whether or not it exists; the path as given if it is not a link. */
export function followLinks(path: string, links = linksMax): string {
  const isLink = links > 0 && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? followLinks(resolve(realpathSync(dirname(path)), readlinkSync(path)), links - 1) : path;
}

/**
 * Replaces a file with the text that `change` returns, which must read the file itself: no other process replaces it meanwhile. A link stays a
 * link, and owner and mode stay; a new file is for its owner only. Throws `FileBusyError` if another process does not finish within `waitMaxMs`.
 */
export async function replaceFile(
  path: string,
  change: () => string | Promise<string>,
  waitMaxMs = busyMaxMs,
): Promise<void> {
  const target = followLinks(path);
  const unlock = await lockFile(target, waitMaxMs);
  try {
    const text = await change();
    const file = await openDraft(target, `${target}.${randomUUID()}`);
    try {
      copyOwner(target, file.handle.fd);
      await file.handle.writeFile(text);
      await file.complete();
    } catch (error) {
      await file.discard();
      throw error;
    }
  } finally {
    unlock();
  }
}

const lockFile = async (target: string, waitMaxMs: number): Promise<() => void> => {
  const busy = (pid: number) =>
    new FileBusyError(`Process ${pid} is changing ${target}. Wait for it and run this command again.`);
  for (const endMs = performance.now() + waitMaxMs; ; await sleep(retryMs))
    try {
      return await acquireLock(`${target}.lock`, busy);
    } catch (error) {
      if (!(error instanceof FileBusyError) || performance.now() >= endMs) throw error;
    }
};

/** A file that has a temporary name until it is whole. */
export type Draft = {
  readonly handle: FileHandle;
  /** Makes it durable and gives it its name, in place of the file that has it. */
  readonly complete: () => Promise<void>;
  readonly discard: () => Promise<void>;
};

/** Opens the draft of a file, for its owner only unless it has a `mode`. Throws if something has the temporary name: it may be a link. */
export async function openDraft(path: string, temporary: string, mode = 0o600): Promise<Draft> {
  const handle = await open(temporary, 'wx', mode);
  return {
    handle,
    complete: async () => {
      await handle.sync();
      await handle.close();
      await rename(temporary, path);
      syncFolder(path);
    },
    discard: async () => {
      await handle.close().catch(() => {}); // what is discarded need not be whole
      await rm(temporary, { force: true });
    },
  };
}

/** Makes a file for its owner only, whole or not at all, and durable, with the owner of the one that it is to replace. False when something is there, which is never touched. */
export function createPrivateFile(path: string, text: string, replaced?: string): boolean {
  const file = openNew(path);
  if (file === undefined) return false;
  try {
    if (replaced !== undefined) copyOwner(replaced, file);
    writeFileSync(file, text);
    fsyncSync(file);
  } catch (error) {
    rmSync(path, { force: true }); // ours, and without all of it
    throw error;
  } finally {
    closeSync(file);
  }
  syncFolder(path);
  return true;
}

/** Writes all bytes where a file is: one system call may write a part, for example just before the disk is full. Throws the system's error. */
export function writeAll(
  file: number,
  bytes: Uint8Array,
  write: (file: number, bytes: Uint8Array, offset: number) => number = writeSync,
): void {
  for (let done = 0; done < bytes.length; ) done += write(file, bytes, done);
}

/** Makes the entry of a file durable. */
const syncFolder = (path: string): void => {
  const entry = openSync(dirname(resolve(path)), 'r');
  try {
    fsyncSync(entry);
  } finally {
    closeSync(entry);
  }
};

// Permissions of others are never copied: a file with a secret that is open to others is rejected.
const copyOwner = (from: string, file: number): void => {
  const wanted = statSync(from, { throwIfNoEntry: false });
  if (wanted === undefined || process.platform === 'win32') return; // which has neither
  // An owner may not be a member of the file's group, which has no rights here.
  if (fstatSync(file).uid !== wanted.uid) fchownSync(file, wanted.uid, wanted.gid);
  fchmodSync(file, wanted.mode & 0o700);
};
