// A lock file that one process holds. It identifies the holder by pid, start time, boot and pid namespace, so that the lock of a killed process is free at
// once; a holder in another container, whose pid means nothing here, must refresh the file.
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const beatMs = 2_000;
const beatMissingMs = 10_000;
/** Checking and taking a lock takes milliseconds; a process that was killed meanwhile is waited for so long. */
const turnMaxMs = 2_000;
const retryMs = 20;

type Holder = {
  readonly pid: number;
  readonly startedAt: string;
  readonly bootId: string;
  readonly namespace: string;
  readonly token: string;
};

/** Takes a lock, or throws what `locked` makes of the pid of its living holder. Only one process at a time may be in here: the caller orders them. */
export function claimLock(path: string, token: string, locked: (pid: number) => Error): void {
  const holder = readHolder(path);
  if (holder !== undefined && isAlive(holder, path)) throw locked(holder.pid);
  const { pid } = process;
  const me: Holder = { pid, startedAt: startOf(pid) ?? '', bootId: bootId(), namespace: pidNamespace(), token };
  const draft = `${path}.${token}`;
  try {
    writeFileSync(draft, JSON.stringify(me));
    renameSync(draft, path);
  } catch (error) {
    removeIfPossible(draft);
    throw error;
  }
}

/** Takes a lock, as `claimLock`, for callers without an order of their own: a file that only one process can create gives them one. Returns the way to give it back. */
export async function acquireLock(path: string, locked: (pid: number) => Error): Promise<() => void> {
  const [turn, token] = [`${path}.turn`, randomUUID()];
  for (let file = openNew(turn); ; file = openNew(turn)) {
    if (file !== undefined) {
      closeSync(file);
      break;
    }
    const { mtimeMs = Date.now() } = statSync(turn, { throwIfNoEntry: false }) ?? {};
    if (Math.abs(Date.now() - mtimeMs) > turnMaxMs) removeIfPossible(turn);
    else await sleep(retryMs);
  }
  try {
    claimLock(path, token, locked);
  } finally {
    removeIfPossible(turn);
  }
  return keepLock(path, token);
}

/** Creates a file for its owner only, and opens it. Undefined if something is there, which is never opened: it may be a link that someone else made. */
export function openNew(path: string): number | undefined {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return undefined;
    throw error;
  }
}

/** Refreshes a lock that was taken. Returns the way to give it back. */
export function keepLock(path: string, token: string): () => void {
  const beat = setInterval(createBeat(path), beatMs).unref();
  return () => {
    clearInterval(beat);
    giveLockBack(path, token);
  };
}

/** Removes a lock that is still one's own. */
export function giveLockBack(path: string, token: string): void {
  if (readHolder(path)?.token === token) removeIfPossible(path);
}

/** Does a process that lives hold the lock? */
export function isLocked(path: string): boolean {
  const holder = readHolder(path);
  return holder !== undefined && isAlive(holder, path);
}

const readHolder = (path: string): Holder | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder; // ours; a field that is missing never matches
  } catch {
    return undefined; // no lock, or one that was cut short and so was never held
  }
};

const isAlive = (holder: Holder, path: string): boolean => {
  if (holder.bootId !== bootId()) return false;
  if (holder.namespace !== pidNamespace()) {
    const beat = statSync(path, { throwIfNoEntry: false }); // its holder may have just given it back
    return beat !== undefined && Math.abs(Date.now() - beat.mtimeMs) < beatMissingMs; // a clock that was set back makes it younger than now
  }
  return startOf(holder.pid) === holder.startedAt;
};

/** A lock that cannot be removed is that of a process that is gone: the next one takes it. */
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
    // Where the folder is gone or read-only, the holder's next write will say so.
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

/** Another user's counts too. A process that ended and was not reaped yet still exists. */
const processExists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return Object(error).code === 'EPERM';
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
