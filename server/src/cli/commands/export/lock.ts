// Keeps two exports out of one folder: a lock file that its holder touches every 10 s. A holder that is gone, or has not touched it for a minute,
// has lost it. Where two hold it after all, files stay whole: their temporary names differ, and each appears only when complete.
import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { processExists } from '../../../runtime/process-exists.ts';
import { CommandError, exitCodes } from '../../failure.ts';

export const lockName = '_sealpost-export.lock';

const touchMs = 10_000;
const staleMs = 60_000;
/** A lock without a holder is being written, or its writer was killed. */
const writtenMs = 2_000;
/** So long it takes another process, at most, to put its lock in the place of a lost one. */
const replacedMs = 100;

/** How a file system without links answers. */
const linkless: readonly string[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

type Holder = { readonly pid: number; readonly host: string; readonly token: string };

/** Takes the lock of a folder; returns the way to release it. */
export const lockFolder = async (folder: string): Promise<() => Promise<void>> => {
  const path = join(folder, lockName);
  const me: Holder = { pid: process.pid, host: hostname(), token: randomUUID() };
  await take(path, me, folder);
  const timer = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => {}); // a lock that cannot be touched is lost after a minute, as said above
  }, touchMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    const held = await readHolder(path);
    if (held?.token === me.token) await rm(path, { force: true });
  };
};

const take = async (path: string, me: Holder, folder: string): Promise<void> => {
  for (let attempts = 0; ; attempts++) {
    if (await create(path, me)) return;
    const held = await readHolder(path);
    if (attempts > 3 || (await isAlive(path, held))) {
      const who = held === undefined ? 'another process' : `process ${held.pid} on ${held.host}`;
      const text = `An export into ${folder} is running: ${who}. Wait for it, or choose another folder.`;
      throw new CommandError(exitCodes.refused, text);
    }
    if (await replace(path, held, me)) return;
  }
};

/** Creates a file with its content at once; false if there is one. */
const create = async (path: string, me: Holder): Promise<boolean> => {
  const [draft, text] = [draftOf(path, me), `${JSON.stringify(me)}\n`];
  try {
    await writeFile(draft, text);
    return await isNew(link(draft, path));
  } catch (error) {
    if (!linkless.includes((error as NodeJS.ErrnoException).code ?? '')) throw error; // a failure of the file system
    return await isNew(writeFile(path, text, { flag: 'wx' }));
  } finally {
    await rm(draft, { force: true });
  }
};

const draftOf = (path: string, me: Holder): string => `${path}.${me.token}`;

const isNew = async (made: Promise<void>): Promise<boolean> => {
  try {
    await made;
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false; // a failure of the file system
    throw error;
  }
};

/**
 * Puts a lock in the place of one whose holder has lost it. Several processes may find that one: who creates the file that is named after it may
 * replace it, and only it. False for the others.
 */
const replace = async (path: string, lost: Holder | undefined, me: Holder): Promise<boolean> => {
  const right = `${path}.of-${(lost?.token ?? 'nobody').replace(/[^\w-]/g, '')}`;
  if (!(await create(right, me))) {
    const { mtimeMs } = await stat(right).catch(() => ({ mtimeMs: Date.now() }));
    if (Math.abs(Date.now() - mtimeMs) > staleMs) await rm(right, { force: true }); // its maker was killed
    await setTimeout(replacedMs);
    return false;
  }
  try {
    if ((await readHolder(path))?.token !== lost?.token) return false;
    await writeFile(draftOf(path, me), `${JSON.stringify(me)}\n`);
    await rename(draftOf(path, me), path);
    return true;
  } finally {
    await rm(right, { force: true });
  }
};

const readHolder = async (path: string): Promise<Holder | undefined> => {
  try {
    const { pid, host, token } = Object(JSON.parse(await readFile(path, 'utf8')));
    return typeof pid === 'number' ? { pid, host: String(host), token: String(token) } : undefined;
  } catch {
    return undefined; // gone, or cut off when its writer was killed
  }
};

const isAlive = async (path: string, held: Holder | undefined): Promise<boolean> => {
  const touched = await stat(path).catch(() => ({ mtimeMs: 0 }));
  const ageMs = Math.abs(Date.now() - touched.mtimeMs); // a clock that was set back makes it younger than now
  if (ageMs > staleMs) return false;
  if (held === undefined) return ageMs < writtenMs;
  const { pid, host } = held;
  if (host !== hostname()) return true;
  if (pid === process.pid) return false; // a process before this one in the same container, or this one in a test
  return processExists(pid);
};
