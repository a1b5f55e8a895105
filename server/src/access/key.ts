// Reads the key-encryption key from a setting or a file that only its owner may read; secrets.ts seals with it. A file may hold several keys: the
// first seals and all open, so you can give the next key to running servers before it is used.
import { randomBytes } from 'node:crypto';
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { createPrivateFile, FileBusyError, replaceFile } from '../runtime/file-replacement.ts';
import { describeFileFailure, isOpenToOthers, makeFolder } from '../runtime/files.ts';
import { createSecretBox, parseKey, readKeyFile, type SecretBox, SecretBoxError } from './secrets.ts';

/** The settings that lead to the key. */
export type KeySettings = {
  /** The key itself, which wins over the file; undefined when not set. */
  readonly key: string | undefined;
  readonly keyFile: string;
};

/** The box of the configured key. Throws `SecretBoxError` when there is none, or when others may read its file. */
export const openSecretBox = ({ key, keyFile }: KeySettings): SecretBox =>
  key === undefined ? openKeyFile(keyFile) : createSecretBox(parseKey(key));

/** A file is read again once in this time at most: an account whose key is missing may ask thousands of times in it. */
const readAgainMs = 1_000;

/** The box of the keys in a file, which is read again when a secret names one that was not in it. Throws as `openSecretBox` does. */
export function openKeyFile(path: string, monotonicMs: () => number = () => performance.now()): SecretBox {
  const [first, ...others] = readBoxes(path);
  let openers = [first, ...others];
  let readAtMs = Number.NEGATIVE_INFINITY; // what was added since is found at once
  const readAgain = (): void => {
    if (monotonicMs() - readAtMs < readAgainMs) return;
    readAtMs = monotonicMs();
    openers = readBoxes(path);
  };
  return {
    ...first,
    keyIds: () => {
      try {
        readAgain();
      } catch {
        // A file that cannot be read now, or is being replaced: the keys that were in it still open.
      }
      return openers.map(({ keyId }) => keyId);
    },
    open: (userId, sealed) => {
      const opener = () => openers.find(({ keyId }) => sealed.startsWith(`${keyId}.`));
      if (opener() === undefined) readAgain();
      return (opener() ?? first).open(userId, sealed);
    },
  };
}

const readBoxes = (path: string): [SecretBox, ...SecretBox[]] => {
  requirePrivate(path);
  return readKeyFile(path).map(createSecretBox) as [SecretBox, ...SecretBox[]]; // a file has at least one
};

// What is not there, or a folder, passes: readKeyFile has the words for it.
const requirePrivate = (path: string): void => {
  const mode = readableMode(path);
  if (mode === undefined || !isOpenToOthers(path, mode)) return;
  const shown = (mode & 0o777).toString(8).padStart(3, '0');
  throw new SecretBoxError(
    `The key file ${path} is accessible to other users (mode ${shown}). Run: chmod 600 ${path}.`,
  );
};

const readableMode = (path: string): number | undefined => {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined || stats.isDirectory()) return undefined;
    accessSync(path, constants.R_OK);
    return stats.mode;
  } catch (cause) {
    throw new SecretBoxError(`${describeFileFailure(path, cause)}. Run this as the owner of the key file.`, { cause });
  }
};

/**
 * Makes a file with a new key, for its owner alone, durable. False when something is there, which is never touched. A file that is to
 * replace another gets its owner and mode: root may run the command, and the server must still be able to read its key.
 */
export function createKeyFile(path: string, replaced?: string): boolean {
  makeFolder(dirname(resolve(path)));
  return createPrivateFile(path, `${randomBytes(32).toString('hex')}\n`, replaced);
}

/**
 * Adds the first key of another file to a key file, as one that opens. Keeps owner and mode, and a link stays a link. False when the file cannot be
 * changed so. Throws `FileBusyError` if another process still changes it after `waitMaxMs`: each would remove the key that the other adds.
 */
export async function addOpeningKey(path: string, other: string, waitMaxMs?: number): Promise<boolean> {
  const [added] = readKeyFile(other).map((key) => key.toString('hex'));
  const addKey = (): string => {
    const keys = readKeyFile(path).map((key) => key.toString('hex'));
    return `${[...new Set([...keys, added])].join('\n')}\n`;
  };
  try {
    await replaceFile(path, addKey, waitMaxMs);
    return true;
  } catch (error) {
    if (error instanceof FileBusyError || error instanceof SecretBoxError) throw error;
    return false; // read-only, say: what it holds is as good as before
  }
}
