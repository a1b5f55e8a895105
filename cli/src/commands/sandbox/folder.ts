// The folder of a sandbox and what is in it: key, credentials and store. Without --dir it is a temporary one that is removed at the end. Credentials are
// derived from the seed, so that they are the same at every start.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { SandboxCredentials } from '@sealpost/sandbox/accounts';
import { describeFileFailure, makeFolder } from '@sealpost/server/runtime/files';
import { acquireLock } from '@sealpost/server/runtime/process-lock';
import { CommandError, exitCodes, usageError } from '../../failure.ts';

export type SandboxFolder = {
  readonly path: string;
  readonly keyFile: string;
  readonly profilesFile: string;
  /** Removes it; one that was named can be used by another sandbox. */
  readonly remove: () => void;
};

/** The profile that is written for the printed commands. */
export const sandboxProfile = 'sandbox';

const markerFile = 'sandbox.json';

/** Makes the folder. One that was a sandbox before is emptied; one that has anything else is rejected. */
export async function openSandboxFolder(
  cwd: string,
  dir: string | undefined,
  { key }: SandboxCredentials,
): Promise<SandboxFolder> {
  const path = dir === undefined ? makeTemporary() : resolve(cwd, dir);
  const release = dir === undefined ? undefined : await claimFolder(path);
  const folder: SandboxFolder = {
    path,
    keyFile: join(path, 'sealpost.key'),
    profilesFile: join(path, 'profiles.json'),
    remove: () => {
      if (release === undefined) rmSync(path, { recursive: true, force: true, maxRetries: 3 });
      else release();
    },
  };
  writeFileSync(folder.keyFile, `${key}\n`, { mode: 0o600 });
  return folder;
}

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

/** The store of a sandbox is deleted at the next start, so nothing else may be taken for one. */
const isSandbox = (path: string): boolean => {
  try {
    return Object(JSON.parse(readFileSync(join(path, markerFile), 'utf8'))).isSealpostSandbox === true;
  } catch {
    return false; // there is none, or it is another program's file
  }
};

const claimFolder = async (path: string): Promise<() => void> => {
  makeFolder(path, 0o700);
  if (!isSandbox(path) && readdirSync(path).length > 0)
    throw usageError(`${path} is not empty, and not a sandbox's folder. Use another one: --dir FOLDER.`);
  writeFileSync(join(path, markerFile), `${JSON.stringify({ isSealpostSandbox: true })}\n`, { mode: 0o600 });
  return acquireLock(join(path, 'sandbox.lock'), (pid) => {
    const text = `A sandbox is running in ${path} (process ${pid}). Stop it, or use another folder: --dir FOLDER.`;
    return new CommandError(exitCodes.unavailable, text);
  });
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
