// The file with an environment's pages: checks that it is complete, finishes an interrupted creation, and keeps it longer than its last page (D51).
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { StoreError } from '../store.ts';
import { openFailure } from './failure.ts';

/** The file that holds an environment's pages. */
export const pagesFile = (folder: string): string => join(folder, 'data.mdb');

/** Whether an environment is in a folder. One that this user may not look for is not missing. */
export function hasPages(folder: string): boolean {
  try {
    return statSync(pagesFile(folder), { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw openFailure(folder, error);
  }
}

/** Exists while an environment is being created, so that a half-written file is not taken for a damaged one. */
const creationMark = (folder: string): string => join(folder, 'creating');

const metaMagic = 0xbeefc0de;
const metaAt = 24;
const metaBytes = 160;

type Meta = { readonly pageBytes: number; readonly lastPage: number; readonly transaction: bigint };

// Layout: 24 bytes of page header, then magic, version, address, map size, two 48-byte trees (the first begins with the
// page size), last page, transaction.
const parseMeta = (bytes: Buffer): Meta | undefined => {
  if (bytes.readUInt32LE(metaAt) !== metaMagic) return undefined;
  const pageSize = bytes.readUInt32LE(metaAt + 24);
  return {
    pageBytes: pageSize,
    lastPage: Number(bytes.readBigUInt64LE(metaAt + 120)),
    transaction: bytes.readBigUInt64LE(metaAt + 128),
  };
};

const readMeta = (file: number, position: number): Meta | undefined => {
  const bytes = Buffer.alloc(metaBytes);
  return readSync(file, bytes, 0, metaBytes, position) === metaBytes ? parseMeta(bytes) : undefined;
};

/** Bytes of the file up to its last page in use, by the newer of its meta pages; undefined where these are damaged. */
const bytesInUse = (file: number): number | undefined => {
  const first = readMeta(file, 0);
  const second = first && readMeta(file, first.pageBytes);
  if (first === undefined || second === undefined) return undefined;
  const { lastPage } = first.transaction > second.transaction ? first : second;
  return (lastPage + 1) * first.pageBytes;
};

const withPagesFile = <T>(folder: string, act: (file: number) => T): T => {
  const file = openSync(pagesFile(folder), 'r');
  try {
    return act(file);
  } finally {
    closeSync(file);
  }
};

/** Bytes up to the last page in use; what follows is space taken ahead. */
export const pagesBytesInUse = (folder: string): number | undefined => withPagesFile(folder, bytesInUse);

/** What is wrong with the file: one shorter than its own meta page says kills the process with SIGBUS when it is read past its end. */
const findFault = (folder: string): string | undefined =>
  withPagesFile(folder, (file) => {
    const { size } = fstatSync(file);
    const needed = bytesInUse(file);
    if (needed === undefined) return 'its first pages are damaged';
    return size < needed ? `its file has ${size} bytes where ${needed} are in use` : undefined;
  });

/** The error of an environment whose file is damaged. */
export const corruptStore = (folder: string, what: string, cause?: unknown) =>
  new StoreError(
    'store_corrupt',
    `The store in ${folder} is damaged: ${what}. Restore a backup with: sealpost store restore.`,
    cause === undefined ? undefined : { cause },
  );

const notFound = (folder: string) =>
  new StoreError('store_not_found', `No store in ${folder}. Create one first, or use another folder.`);

/** LMDB crashes where its lock is a folder. */
const requireLock = (folder: string): void => {
  if (statSync(join(folder, 'lock.mdb'), { throwIfNoEntry: false })?.isDirectory() === true)
    throw corruptStore(folder, 'its lock.mdb is a folder');
};

/** Refuses a damaged file before LMDB sees it. A writer begins or completes the creation of a new one. */
export function preparePagesFile(folder: string, readOnly: boolean): void {
  try {
    requireLock(folder);
    const isMarked = existsSync(creationMark(folder));
    if (existsSync(pagesFile(folder))) {
      const fault = findFault(folder);
      if (fault === undefined) return;
      if (!isMarked) throw corruptStore(folder, fault);
      if (readOnly) throw notFound(folder);
      tryWriting(folder); // nothing was ever committed to it
    } else if (readOnly) throw notFound(folder);
    else {
      if (!isMarked) writeFileSync(creationMark(folder), '');
      tryWriting(folder);
    }
  } catch (error) {
    throw openFailure(folder, error);
  }
}

/** Leaves an empty file, which LMDB begins. It crashes where it cannot write its first pages, so they are tried here. */
const tryWriting = (folder: string): void => {
  const file = openSync(pagesFile(folder), 'w', 0o600);
  try {
    writeZeros(file, 0, zeros.length);
  } finally {
    ftruncateSync(file, 0);
    closeSync(file);
  }
};

/** Makes a new environment last: its file, and the folders that name it. */
export function completeCreation(folder: string): void {
  if (!existsSync(creationMark(folder))) return;
  try {
    syncFile(pagesFile(folder));
    for (const path of [folder, dirname(folder), dirname(dirname(folder))]) syncFile(path);
    rmSync(creationMark(folder), { force: true });
  } catch (error) {
    throw openFailure(folder, error);
  }
}

/** Flushes a file, or the names in a folder. */
const syncFile = (path: string): void => {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error; // a file system that flushes no folders
  } finally {
    closeSync(file);
  }
};

const headroomBytes = 8 * 1024 * 1024;
/** Zeros written ahead of a transaction at least, and at once. */
const aheadBytes = 256 * 1024;
const zeros = Buffer.alloc(aheadBytes);
const pageBytes = 4_096;

export type Headroom = {
  /** Call at the beginning of a transaction, inside it, with the bytes of the pages in use. Throws where the file cannot be written to. */
  readonly keep: (usedBytes: number) => void;
  /** Flushes the file; throws where that fails. */
  readonly flush: () => void;
  readonly close: () => void;
};

/**
 * Makes sure of the file before LMDB writes to it. LMDB 3.5.6 corrupts the memory of the process when a write of pages fails (its message of the
 * error is longer than the buffer for it), so a page behind the last one is written first, and space for the next transactions is taken there: a
 * full disk, a quota and a file system that has failed show here, as errors. Nothing refers to pages behind the last, and no other process writes meanwhile.
 *
 * In sparse steps of 8 MB the file also stays longer than any page in use: LMDB may leave its last pages unwritten when they are free, which
 * would look like a truncated file; no transaction of ours takes 8 MB. The file stays open: a process without descriptors can still write.
 */
export function createHeadroom(folder: string): Headroom {
  let opened: number | undefined;
  let lastUsed: number | undefined;
  let takenTo = 0;
  const file = (): number => (opened ??= openSync(pagesFile(folder), 'r+'));
  const extend = (usedBytes: number): void => {
    const { size } = fstatSync(file());
    if (size >= usedBytes + headroomBytes / 2) return;
    try {
      ftruncateSync(file(), Math.ceil(usedBytes / headroomBytes + 1) * headroomBytes);
    } catch (error) {
      // What is there suffices for now; the next transaction tries again.
      if (size < usedBytes) throw error;
    }
  };
  const takeSpace = (usedBytes: number): void => {
    // As much again as the last transaction took, at least.
    const ahead = Math.max(aheadBytes, 2 * (usedBytes - (lastUsed ?? usedBytes)));
    lastUsed = usedBytes;
    const isTaken = takenTo >= usedBytes + ahead / 2;
    const from = isTaken ? usedBytes : Math.max(usedBytes, takenTo);
    const to = isTaken ? usedBytes + pageBytes : usedBytes + ahead;
    writeZeros(file(), from, to);
    takenTo = Math.max(takenTo, to);
  };
  return {
    keep: (usedBytes) => {
      if (opened === undefined && !canOpen(file)) return;
      extend(usedBytes);
      takeSpace(usedBytes);
    },
    flush: () => fsyncSync(file()),
    close: () => {
      if (opened !== undefined) closeSync(opened);
      opened = undefined;
    },
  };
}

/** A process without descriptors writes without the precaution. */
const canOpen = (open: () => number): boolean => {
  try {
    open();
    return true;
  } catch {
    return false;
  }
};

const writeZeros = (file: number, from: number, to: number): void => {
  for (let at = from; at < to; ) at += writeSync(file, zeros, 0, Math.min(zeros.length, to - at), at);
};
