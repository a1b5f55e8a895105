// The lock that allows one process per folder to write reports. The token in the database stops a writer that was replaced (D136).
import { join } from 'node:path';
import { claimLock, giveLockBack, isLocked, keepLock } from '../../../runtime/process-lock.ts';
import type { DamageLog } from '../../damage.ts';
import { StoreError } from '../../store.ts';
import type { Environment } from '../environment.ts';
import { writeFailure } from '../failure.ts';
import { takeWriterToken, type WriterToken } from './writer-token.ts';

const lockOf = (folder: string): string => join(folder, 'writer.lock');

/**
 * Takes the lock of a folder, and the writer's place in `arbiter`, an environment whose transactions put contenders in order. Returns the way to
 * give the lock back.
 */
export function takeWriterLock(
  arbiter: Environment,
  folder: string,
  place: WriterToken,
  damage: DamageLog,
): () => void {
  const [path, { token }] = [lockOf(folder), place];
  try {
    takeWriterToken(arbiter, place, damage, () => claimLock(path, token, (pid) => lockedError(folder, pid)));
  } catch (error) {
    giveLockBack(path, token);
    throw writeFailure(folder, error);
  }
  return keepLock(path, token);
}

const lockedError = (folder: string, pid: number) =>
  new StoreError(
    'store_locked',
    `Process ${pid} is already writing to the store in ${folder}. Stop it, or send your reports to it: sealpost ingest --to URL.`,
  );

/** Does a process that lives write to the folder? */
export const isBeingWritten = (folder: string): boolean => isLocked(lockOf(folder));
