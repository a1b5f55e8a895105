// Owns the right to write reports: one process per folder. The holder is known by pid, start time, boot and pid namespace, so that
// a killed one's lock is free at once; a holder in another container, whose pid means nothing here, must show a recent beat.
import { readFileSync, readlinkSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from './lmdb-environment.ts';
import { StoreError } from './store.ts';

const beatMs = 2_000;
const beatMissingMs = 10_000;

type Holder = {
  readonly pid: number;
  readonly startedAt: string;
  readonly bootId: string;
  readonly namespace: string;
  readonly token: string;
};

/** Takes the lock of a folder; `arbiter` is an environment whose transactions put contenders in order. Returns the way to give it back. */
export const takeWriterLock = (arbiter: Environment, folder: string, token: string): (() => void) => {
  const path = join(folder, 'writer.lock');
  const me: Holder = {
    pid: process.pid,
    startedAt: startOf(process.pid) ?? '',
    bootId: bootId(),
    namespace: pidNamespace(),
    token,
  };
  arbiter.root.transactionSync(() => {
    const holder = readHolder(path);
    if (holder !== undefined && isAlive(holder, path)) throw lockedError(folder, holder);
    writeFileSync(`${path}.${token}`, JSON.stringify(me));
    renameSync(`${path}.${token}`, path);
  });
  const beat = setInterval(() => touch(path), beatMs).unref();
  return () => {
    clearInterval(beat);
    if (readHolder(path)?.token === token) rmSync(path, { force: true });
  };
};

const lockedError = (folder: string, { pid }: Holder) =>
  new StoreError(
    'store_locked',
    `Process ${pid} is writing to the store in ${folder}, and only one may. Stop it, or send your reports to it: sealpost ingest --to URL.`,
  );

const readHolder = (path: string): Holder | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder; // ours; a field that is missing never matches
  } catch {
    return undefined; // no lock, or one that was cut short and so was never held
  }
};

const isAlive = (holder: Holder, path: string): boolean => {
  if (holder.bootId !== bootId()) return false;
  if (holder.namespace !== pidNamespace()) return Date.now() - statSync(path).mtimeMs < beatMissingMs;
  return startOf(holder.pid) === holder.startedAt;
};

const touch = (path: string): void => {
  try {
    utimesSync(path, new Date(), new Date());
  } catch {
    // The folder is gone or read-only; the writer's next transaction will say so.
  }
};

/** When a process started, in the kernel's ticks; undefined when there is no such process. Without /proc: whether it exists. */
const startOf = (pid: number): string | undefined => {
  if (process.platform !== 'linux') return exists(pid) ? 'running' : undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name may hold spaces and parentheses: fields are counted after the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
};

const exists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
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
