// Owns where the key-encryption key comes from: a setting, or a file that its owner alone may read. Sealing with it is secrets.ts.
import { randomBytes } from 'node:crypto';
import { accessSync, closeSync, constants, fsyncSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
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

/** The box of the key in a file. Throws as `openSecretBox` does. */
export const openKeyFile = (path: string): SecretBox => {
  requirePrivate(path);
  return createSecretBox(readKeyFile(path));
};

// A file that is not there passes: readKeyFile has the words for it.
const requirePrivate = (path: string): void => {
  const mode = readableMode(path);
  if (mode === undefined || (mode & 0o077) === 0 || process.platform === 'win32') return; // which has no such modes
  const shown = (mode & 0o777).toString(8).padStart(3, '0');
  throw new SecretBoxError(`The key file ${path} is open to others (mode ${shown}). Close it with: chmod 600 ${path}.`);
};

const readableMode = (path: string): number | undefined => {
  try {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode;
    if (mode !== undefined) accessSync(path, constants.R_OK);
    return mode;
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : String(cause);
    throw new SecretBoxError(`The key file ${path} cannot be read (${what}). Run this as the file’s owner.`, { cause });
  }
};

/** Makes a file with a new key, for its owner alone, durable. False when something is there, which is never touched. */
export const createKeyFile = (path: string): boolean => {
  const folder = dirname(resolve(path));
  mkdirSync(folder, { recursive: true });
  const file = openNew(path);
  if (file === undefined) return false;
  try {
    writeSync(file, `${randomBytes(32).toString('hex')}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  const entry = openSync(folder, 'r');
  try {
    fsyncSync(entry);
  } finally {
    closeSync(entry);
  }
  return true;
};

const openNew = (path: string): number | undefined => {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return undefined;
    throw error;
  }
};
