// The folder of a sandbox and what is in it: key, credentials and store. Without --dir it is a temporary one that is removed at the end. Credentials are
// derived from the seed, so that they are the same at every start.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describeFileFailure } from '../../../runtime/file-failure.ts';
import { makeFolder } from '../../../runtime/make-folder.ts';
import { processExists } from '../../../runtime/process-exists.ts';
import type { SandboxCredentials } from '../../../sandbox/credentials.ts';
import { CommandError, exitCodes, usageError } from '../../failure.ts';

export type SandboxFolder = {
  readonly path: string;
  readonly keyFile: string;
  readonly profilesFile: string;
  /** Removes it, unless it was named. */
  readonly remove: () => void;
};

/** The profile that is written for the printed commands. */
export const sandboxProfile = 'sandbox';

const markerFile = 'sandbox.json';

/** Makes the folder. One that was a sandbox before is emptied; one that has anything else is rejected. */
export const openSandboxFolder = (cwd: string, dir: string | undefined, { key }: SandboxCredentials): SandboxFolder => {
  const path = dir === undefined ? makeTemporary() : claimFolder(resolve(cwd, dir));
  const folder: SandboxFolder = {
    path,
    keyFile: join(path, 'sealpost.key'),
    profilesFile: join(path, 'profiles.json'),
    remove: () => {
      if (dir === undefined) rmSync(path, { recursive: true, force: true, maxRetries: 3 });
      else writeMarker(path, null);
    },
  };
  writeMarker(path, process.pid);
  writeFileSync(folder.keyFile, `${key}\n`, { mode: 0o600 });
  return folder;
};

const makeTemporary = (): string => {
  try {
    return mkdtempSync(join(tmpdir(), 'sealpost-sandbox-'));
  } catch (error) {
    throw new CommandError(
      exitCodes.unavailable,
      `No folder can be made in the one for temporary files: ${describeFileFailure(tmpdir(), error)}. Correct TMPDIR, or use another folder: --dir FOLDER.`,
      { cause: error },
    );
  }
};

/** Says that a folder is a sandbox's, and whose: its store is deleted at the next start, so nothing else may be taken for one. */
type Marker = { readonly isSealpostSandbox: true; readonly pid: number | null };

const writeMarker = (path: string, pid: number | null): void => {
  const marker: Marker = { isSealpostSandbox: true, pid };
  writeFileSync(join(path, markerFile), `${JSON.stringify(marker)}\n`, { mode: 0o600 });
};

const readMarker = (path: string): Marker | undefined => {
  try {
    const marker = Object(JSON.parse(readFileSync(join(path, markerFile), 'utf8'))) as Partial<Marker>; // checked here
    return marker.isSealpostSandbox === true ? { isSealpostSandbox: true, pid: marker.pid ?? null } : undefined;
  } catch {
    return undefined; // there is none, or it is another program's file
  }
};

const claimFolder = (path: string): string => {
  makeFolder(path, 0o700);
  const marker = readMarker(path);
  if (marker === undefined && readdirSync(path).length > 0)
    throw usageError(`${path} is not empty, and not a sandbox's folder. Use another one: --dir FOLDER.`);
  // A process of this ID that is not this one has ended: in a container, each run may have the same.
  if (marker?.pid != null && marker.pid !== process.pid && processExists(marker.pid))
    throw new CommandError(
      exitCodes.unavailable,
      `A sandbox is running in ${path} (process ${marker.pid}). Stop it, or use another folder: --dir FOLDER.`,
    );
  return path;
};

/** Removes the reports of the sandbox before. The store must not be open. */
export const emptyStore = ({ path }: SandboxFolder): void =>
  rmSync(join(path, 'store'), { recursive: true, force: true });

/** Lets commands read as the sandbox's account. */
export const writeSandboxProfile = (
  { profilesFile }: SandboxFolder,
  url: string,
  { userId, secret }: SandboxCredentials,
): void =>
  writeFileSync(profilesFile, `${JSON.stringify({ [sandboxProfile]: { url, userId, secret } }, null, 2)}\n`, {
    mode: 0o600,
  });
