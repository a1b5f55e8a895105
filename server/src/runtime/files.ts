// Files and folders that a user names: why one cannot be used, making folders, and whether others can read a file with a secret.
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** What happened to a file; the system's own text where it is none of the usual cases. */
export function describeFileFailure(path: string, cause: unknown): string {
  const { code, message } = Object(cause) as { readonly code?: string; readonly message?: string }; // whatever was thrown: both may be absent
  switch (code) {
    case 'ENOENT':
      return `No such file: ${path}`;
    case 'ENOTDIR':
      return `A file is where a folder is expected: ${path}`;
    case 'EEXIST':
      return `There is already a file: ${path}`;
    case 'EACCES':
    case 'EPERM':
      return `Permission denied: ${path}`;
    case 'EISDIR':
      return `Not a file but a folder: ${path}`;
    case 'EROFS':
      return `Read-only file system: ${path}`;
    case 'ENOSPC':
    case 'EDQUOT':
      return `No space left on the disk: ${path}`;
    default:
      return `${path}: ${message ?? String(cause)}`;
  }
}

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // the error of making it says why
  }
};

/**
 * Makes a folder, and those above it, one by one: of `mkdirSync` with `recursive`, Node 20 gives ENOENT for a read-only file system and for a link that leads
 * nowhere, and does not return for a folder in `/proc`. Returns the first one that was made; undefined where all are there.
 */
export function makeFolder(path: string, mode = 0o777): string | undefined {
  const make = (first: string | undefined): string | undefined => {
    try {
      mkdirSync(path, { mode });
      return first ?? path;
    } catch (error) {
      if (isFolder(path)) return first;
      throw error;
    }
  };
  try {
    return make(undefined);
  } catch (error) {
    const above = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || above === path) throw error; // of node:fs
    return make(makeFolder(above, mode));
  }
}

/**
 * Does the mode of a file let others in? Modes mean nothing on Windows. What systemd hands over in `CREDENTIALS_DIRECTORY` is its service's
 * alone, by an access list that shows as mode 0440.
 */
export function isOpenToOthers(path: string, mode: number, env: NodeJS.ProcessEnv = process.env): boolean {
  const { CREDENTIALS_DIRECTORY: handedOver } = env;
  if (process.platform === 'win32' || (handedOver && path.startsWith(`${handedOver}/`))) return false;
  return (mode & 0o077) !== 0;
}

/**
 * The same of the private key of a certificate, where root may let a group read it: that is how services of a machine share one, by Debian's
 * group ssl-cert say (D167).
 */
export const isTlsKeyOpenToOthers = (
  path: string,
  { mode, uid }: { readonly mode: number; readonly uid: number },
  env: NodeJS.ProcessEnv = process.env,
): boolean => isOpenToOthers(path, uid === 0 ? mode & ~0o040 : mode, env);
