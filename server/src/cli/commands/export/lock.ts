// Keeps two exports out of one folder: a lock file that its holder touches every 10 s. A holder that is gone, or has not touched it for a minute,
// has lost it. Where two hold it after all, files stay whole: their temporary names differ, and each appears only when complete.
import { randomUUID } from 'node:crypto';
import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { processExists } from '../../../runtime/process-exists.ts';
import { CommandError, exitCodes } from '../../failure.ts';

export const lockName = '_sealpost-export.lock';

const touchMs = 10_000;
const staleMs = 60_000;
/** A lock without a holder is being written, or its writer was killed. */
const writtenMs = 2_000;

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
    try {
      return await writeFile(path, `${JSON.stringify(me)}\n`, { flag: 'wx' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // a failure of the file system
    }
    const held = await readHolder(path);
    if (attempts > 3 || (await isAlive(path, held))) {
      const who = held === undefined ? 'another process' : `process ${held.pid} on ${held.host}`;
      const text = `An export into ${folder} is running: ${who}. Wait for it, or choose another folder.`;
      throw new CommandError(exitCodes.refused, text);
    }
    await rm(path, { force: true });
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
