// Files with secrets: a file that other users can read is rejected. access/key.ts has the same rule for key files.
import { open } from 'node:fs/promises';
import { describeFileFailure, isOpenToOthers } from '@sealpost/server/runtime/files';
import { usageError } from './failure.ts';

/** The error for a file that the command line names and that cannot be read. */
export const unreadable = (path: string, cause: Error): Error =>
  usageError(describeFileFailure(path, cause), { cause });

/** The error for a file with a secret that others may read. */
export const openToOthers = (path: string): Error =>
  usageError(`${path} contains a secret but is accessible to other users. Run: chmod 600 ${path}`);

/** A file, and whether others than its owner may use it. The modes of pipes and terminals mean nothing. */
export async function readFileAndMode(path: string): Promise<{ readonly text: string; readonly isOpen: boolean }> {
  const fail = (cause: Error): never => {
    throw unreadable(path, cause);
  };
  const handle = await open(path).catch(fail);
  try {
    const stats = await handle.stat();
    const isOpen = stats.isFile() && isOpenToOthers(path, stats.mode);
    const text = await handle.readFile('utf8').catch(fail);
    return { text: text.replace(/^\ufeff/, ''), isOpen }; // some editors begin a file with it, and JSON has none
  } finally {
    await handle.close();
  }
}

/** Reads a file that only its owner may use. */
export async function readPrivateFile(path: string): Promise<string> {
  const { text, isOpen } = await readFileAndMode(path);
  if (isOpen) throw openToOthers(path);
  return text;
}
