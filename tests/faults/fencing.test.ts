// Two writers on one store, though only one may: the lock file is gone, or the first was suspended in another PID namespace until its lock expired.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDamageLog } from '../../server/src/store/damage.ts';
import { openEnvironment } from '../../server/src/store/lmdb/environment.ts';
import { takeWriterToken } from '../../server/src/store/lmdb/write/writer-token.ts';
import { openStore } from '../../server/src/store/open.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { buildPrograms, ended, linesOf, type Programs } from './programs.ts';

const { report } = await createSignedReports();
const stream = secondStream(1);
const t0 = 1_763_200_000;
let programs: Programs;
let folder: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  programs = await buildPrograms(['tests/faults/fencing-program.ts']);
});
afterAll(() => programs.remove());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-fencing-'));
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    await ended(child);
  }
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a writer; `append` returns what it prints. */
const startWriter = async (command: readonly string[] = []) => {
  const [file = '', ...args] = [...command, process.execPath, programs.fileOf('fencing-program'), folder];
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'], cwd: tmpdir() });
  children.push(child);
  const lines = linesOf(child);
  const read = async (): Promise<string> => String((await lines.next()).value);
  expect(await read()).toMatch(/^open/);
  return {
    child,
    append: (second: number, price: number): Promise<string> => {
      child.stdin?.write(`${t0 + second} ${price}\n`);
      return read();
    },
  };
};

const lockFile = () => join(folder, 'reports', 'writer.lock');

/** The prices of the reports that are stored, by second. */
const storedPrices = async (prices: readonly (readonly [number, number])[]): Promise<readonly boolean[]> => {
  const store = await openStore(folder, 'read');
  const found: boolean[] = [];
  for (const [second, price] of prices) {
    const [stored] = await store.reports.at([stream], t0 + second);
    const expected = report(stream, t0 + second, t0 + second, BigInt(price)).fullReport;
    found.push(stored !== undefined && Buffer.compare(stored.fullReport, expected) === 0);
  }
  await store.close();
  return found;
};

test('fencing: with the lock file removed, the first of two writers stores nothing more, and nothing acknowledged is lost', async () => {
  const first = await startWriter();
  expect(await first.append(1, 10)).toMatch(/^ack/);
  rmSync(lockFile());
  const second = await startWriter();
  expect(await second.append(2, 20)).toMatch(/^ack/);
  // The first knows nothing of the second's report: without the token it would store its own in the same place.
  expect(await first.append(2, 21)).toBe('failed store_taken_over');
  expect(await first.append(3, 31)).toBe('failed store_taken_over');
  expect(await second.append(3, 30)).toMatch(/^ack/);
  expect(
    await storedPrices([
      [1, 10],
      [2, 20],
      [3, 30],
    ]),
  ).toEqual([true, true, true]);
});

test('fencing: without the token in the database, an acknowledged report is lost (control)', async () => {
  const first = await startWriter();
  expect(await first.append(1, 10)).toMatch(/^ack/);
  const { token, pid } = JSON.parse(readFileSync(lockFile(), 'utf8')) as { token: string; pid: number };
  rmSync(lockFile());
  const second = await startWriter();
  expect(await second.append(2, 20)).toMatch(/^ack/);
  const environment = openEnvironment(join(folder, 'reports'), false);
  takeWriterToken(environment, { token, pid, takenAt: '' }, createDamageLog());
  await environment.root.close();
  expect(await first.append(2, 21)).toMatch(/^ack/);
  expect(await storedPrices([[2, 20]])).toEqual([false]);
});

/** The process that runs under `unshare`. */
const innerPid = (child: ChildProcess): number =>
  Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')[0]);

const canUnshare = (): boolean => {
  try {
    execFileSync('unshare', ['--pid', '--fork', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

test('fencing: a writer in another PID namespace, suspended until its lock expired and resumed, stores nothing more', async ({
  skip,
}) => {
  if (!canUnshare()) skip('a PID namespace needs root and unshare');
  const first = await startWriter(['unshare', '--pid', '--fork', '--kill-child']);
  expect(await first.append(1, 10)).toMatch(/^ack/);
  const pid = innerPid(first.child);
  process.kill(pid, 'SIGSTOP');
  await expect(openStore(folder, 'write')).rejects.toMatchObject({ code: 'store_locked' });
  const expired = new Date(Date.now() - 11_500);
  utimesSync(lockFile(), expired, expired); // stands for 11.5 s without a beat
  const second = await startWriter();
  expect(await second.append(2, 20)).toMatch(/^ack/);
  process.kill(pid, 'SIGCONT');
  expect(await first.append(2, 21)).toBe('failed store_taken_over');
  // It holds the lock no longer either: ending, it does not take the second's away.
  first.child.stdin?.end();
  await ended(first.child);
  await expect(openStore(folder, 'write')).rejects.toMatchObject({ code: 'store_locked' });
  expect(
    await storedPrices([
      [1, 10],
      [2, 20],
    ]),
  ).toEqual([true, true]);
});
