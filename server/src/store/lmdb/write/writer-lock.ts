// The lock that allows one process per folder to write reports. It identifies the holder by pid, start time, boot and pid namespace, so that the lock of a
// killed process is free at once; a holder in another container, whose pid means nothing here, must refresh the file. The fence in the database stops a
// writer that was replaced (D136).
import { readFileSync, readlinkSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { processExists } from '../../../runtime/process-exists.ts';
import type { DamageLog } from '../../damage.ts';
import { StoreError } from '../../store.ts';
import type { Environment } from '../environment.ts';
import { writeFailure } from '../failure.ts';
import { takePlace, type WriterPlace } from './fence.ts';

const beatMs = 2_000;
const beatMissingMs = 10_000;

type Holder = {
  readonly pid: number;
  readonly startedAt: string;
  readonly bootId: string;
  readonly namespace: string;
  readonly token: string;
};

/**
 * Takes the lock of a folder, and the writer's place in `arbiter`, an environment whose transactions put contenders in order. Returns the way to
 * give the lock back.
 */
export const takeWriterLock = (
  arbiter: Environment,
  folder: string,
  place: WriterPlace,
  damage: DamageLog,
): (() => void) => {
  const { token } = place;
  const path = join(folder, 'writer.lock');
  const me: Holder = {
    pid: process.pid,
    startedAt: startOf(process.pid) ?? '',
    bootId: bootId(),
    namespace: pidNamespace(),
    token,
  };
  const giveBack = (): void => {
    if (readHolder(path)?.token === token) removeIfPossible(path);
  };
  try {
    takePlace(arbiter, place, damage, () => {
      const holder = readHolder(path);
      if (holder !== undefined && isAlive(holder, path)) throw lockedError(folder, holder);
      writeFileSync(`${path}.${token}`, JSON.stringify(me));
      renameSync(`${path}.${token}`, path);
    });
  } catch (error) {
    removeIfPossible(`${path}.${token}`);
    giveBack();
    throw writeFailure(folder, error);
  }
  const beat = setInterval(createBeat(path), beatMs).unref();
  return () => {
    clearInterval(beat);
    giveBack();
  };
};

const lockedError = (folder: string, { pid }: Holder) =>
  new StoreError(
    'store_locked',
    `Process ${pid} is already writing to the store in ${folder}. Stop it, or send your reports to it: sealpost ingest --to URL.`,
  );

const readHolder = (path: string): Holder | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder; // ours; a field that is missing never matches
  } catch {
    return undefined; // no lock, or one that was cut short and so was never held
  }
};

/** Does a process that lives write to the folder? */
export const isBeingWritten = (folder: string): boolean => {
  const path = join(folder, 'writer.lock');
  const holder = readHolder(path);
  return holder !== undefined && isAlive(holder, path);
};

const isAlive = (holder: Holder, path: string): boolean => {
  if (holder.bootId !== bootId()) return false;
  if (holder.namespace !== pidNamespace()) {
    const beat = statSync(path, { throwIfNoEntry: false }); // its holder may have just given it back
    return beat !== undefined && Math.abs(Date.now() - beat.mtimeMs) < beatMissingMs; // a clock that was set back makes it younger than now
  }
  return startOf(holder.pid) === holder.startedAt;
};

/** A lock that cannot be removed is that of a process that is gone: the next writer takes it. */
const removeIfPossible = (path: string): void => {
  try {
    rmSync(path, { force: true });
  } catch {
    // The disk fails or is read-only.
  }
};

/** Asynchronous, one at a time: on a disk that does not answer, neither the request loop nor other files may wait for it. */
const createBeat = (path: string) => {
  let isUnderWay = false;
  return async (): Promise<void> => {
    if (isUnderWay) return;
    isUnderWay = true;
    // Where the folder is gone or read-only, the writer's next transaction will say so.
    await utimes(path, new Date(), new Date()).catch(() => {});
    isUnderWay = false;
  };
};

/** When a process started, in the kernel's ticks; undefined when there is no such process. Without /proc: whether it exists. */
const startOf = (pid: number): string | undefined => {
  if (process.platform !== 'linux') return processExists(pid) ? 'running' : undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name may hold spaces and parentheses: fields are counted after the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
};

const readOr = (read: () => string, otherwise: string): string => {
  try {
    return read().trim();
  } catch {
    return otherwise;
  }
};

const bootId = (): string => readOr(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'), 'unknown');
const pidNamespace = (): string => readOr(() => readlinkSync('/proc/self/ns/pid'), 'unknown');
