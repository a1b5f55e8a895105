// Maps failed system calls to store errors that say what to do.
import { statfsSync } from 'node:fs';
import { StoreError, type StoreErrorCode } from '../store.ts';

/** Less free space than this counts as a full disk: a transaction of ours takes up to a few megabytes. */
const freeBytesMin = 1024 * 1024;

const errors = {
  EIO: 5,
  ENOMEM: 12,
  EACCES: 13,
  EEXIST: 17,
  ENOTDIR: 20,
  EINVAL: 22,
  ENFILE: 23,
  EMFILE: 24,
  ENOSPC: 28,
  EROFS: 30,
  EDQUOT: 122,
};
type SystemError = keyof typeof errors;

/** The name of a failure: lmdb gives the system's number as `code`, Node its name, and for those that it has no name for (EDQUOT) `errno`. */
const nameOf = (error: unknown): SystemError | undefined => {
  const { code, errno } = (error ?? {}) as { code?: unknown; errno?: unknown }; // whatever was thrown
  const names = Object.keys(errors) as SystemError[]; // keys of its own
  return names.find((name) => code === name || code === errors[name] || errno === -errors[name]);
};

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** LMDB refuses every transaction, also of readers, once the write that ends a commit has failed; another open cures it. */
export const isPoisoned = (error: unknown): boolean => (error as { code?: unknown }).code === errors.EINVAL; // whatever was thrown

/** Whether the disk has next to no space left. */
export function isShortOfSpace(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize < freeBytesMin;
  } catch {
    return false;
  }
}

// On a full tmpfs LMDB sees a short write and reports EIO, so the free space decides.
const isFull = (folder: string, name: SystemError | undefined): boolean =>
  name === 'ENOSPC' || name === 'EDQUOT' || (name === 'EIO' && isShortOfSpace(folder));

/** The error of a write that failed; nothing of it was promised. */
export function writeFailure(folder: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const name = nameOf(error);
  if (isFull(folder, name)) {
    const what = name === 'EDQUOT' ? 'The disk quota of' : 'The disk of';
    const message = `${what} ${folder} is ${name === 'EDQUOT' ? 'used up' : 'full'}. Free some space; writing resumes automatically.`;
    return new StoreError('store_disk_full', message, { cause: error });
  }
  return new StoreError(
    'store_write_failed',
    `Writing to ${folder} failed: ${messageOf(error)}. Nothing was acknowledged. Check the disk; writing resumes automatically.`,
    { cause: error },
  );
}

const notFolder = 'A folder is expected there. Check the path, and that a disk that it leads to is mounted.';

const openAdvice: Readonly<Partial<Record<SystemError, readonly [StoreErrorCode, string]>>> = {
  ENOSPC: ['store_disk_full', 'The disk is full. Free some space.'],
  EDQUOT: ['store_disk_full', 'The disk quota is used up. Free some space.'],
  EMFILE: ['store_unavailable', 'The process has too many files open. Raise its limit (ulimit -n).'],
  ENFILE: ['store_unavailable', 'The system has too many files open.'],
  ENOMEM: ['store_unavailable', 'There is not enough memory to map it.'],
  EIO: ['store_unavailable', 'The disk cannot be read or written. Check it.'],
  EACCES: ['store_unavailable', 'This user may not open it. Check its owner and mode.'],
  EEXIST: ['store_unavailable', notFolder],
  ENOTDIR: ['store_unavailable', notFolder],
  EROFS: ['store_read_only', 'Its file system is mounted read-only.'],
};

/** The error of an environment that cannot be opened. What the system refused says nothing about the file. */
export function openFailure(folder: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const [code, advice] = openAdvice[nameOf(error) ?? 'EINVAL'] ?? ['store_corrupt', 'Restore a backup.'];
  return new StoreError(code, `The store in ${folder} cannot be opened: ${messageOf(error)}. ${advice}`, {
    cause: error,
  });
}
