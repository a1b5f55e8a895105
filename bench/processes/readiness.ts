// From the start of a process until it serves: `sealpost serve` on a large store, and `npm start` where nothing needs building.
// `npm run bench -- start [--to 10M] [--dir FOLDER]`; with FOLDER, on the store that `growth --keep` left in it.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openStore } from '../../server/src/store/open.ts';
import { parseReports } from '../growth.ts';
import { type Measurement, median } from '../measure.ts';
import { benchStreams, fill, firstSecond } from '../rekeyed-reports.ts';

const root = fileURLToPath(new URL('..', import.meta.url)); // of the bundle, which is in a folder of the root
const rounds = 5;

/** Milliseconds until a program prints a line that says it serves; it is stopped then. */
const timeUntil = async (
  command: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv,
  isReady: (line: string) => boolean,
): Promise<number> => {
  const started = performance.now();
  const [program, ...args] = command;
  // A group of its own: npm starts a shell, which starts the program.
  const child = spawn(program, args, { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    for await (const line of createInterface({ input: child.stdout }))
      if (isReady(line)) return performance.now() - started;
    throw new Error(`${command.join(' ')} ended before it was ready`);
  } finally {
    await stop(child);
  }
};

const stop = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.pid === undefined) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  process.kill(-child.pid, 'SIGTERM');
  await ended;
};

const medianOf = async (act: () => Promise<number>): Promise<{ readonly value: number; readonly note: string }> => {
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) took.push(await act());
  return { value: median(took), note: `of ${took.map((ms) => ms.toFixed(0)).join(', ')}` };
};

const timeServe = async (folder: string, store: string): Promise<Measurement> => {
  const keyFile = join(folder, 'key');
  writeFileSync(keyFile, randomBytes(32).toString('hex'), { mode: 0o600 });
  const { reports } = await reportsIn(store);
  const env = {
    PATH: process.env.PATH,
    SEALPOST_STORE: store,
    SEALPOST_KEY_FILE: keyFile,
    SEALPOST_LISTEN: '127.0.0.1:0',
    SEALPOST_OPS_LISTEN: '127.0.0.1:0',
    SEALPOST_RETENTION_DAYS: '36500', // the reports of benchmarks are years old
  };
  const serve = [process.execPath, join(root, 'server/bin/sealpost.js'), 'serve'] as const;
  const ready = () => timeUntil([...serve], env, (line) => line.includes('"event":"started"'));
  const name = `sealpost serve, ${(reports / 1_000_000).toFixed(1)} M reports, until it serves`;
  return { name, unit: 'ms', ...(await medianOf(ready)) };
};

const reportsIn = async (address: string) => {
  const store = await openStore(address, 'write');
  const stats = await store.reports.stats();
  await store.close();
  return stats;
};

const timeNpmStart = async (folder: string): Promise<Measurement> => {
  const start = ['npm', 'start', '--silent', '--', '--json', '--port', '0', '--dir', join(folder, 'demo')] as const;
  const ready = () => timeUntil([...start], process.env, (line) => line.startsWith('{'));
  await ready(); // makes the demo's folder
  return { name: 'npm start, nothing to build, until it serves', unit: 'ms', ...(await medianOf(ready)) };
};

const buildStore = async (address: string, reports: number): Promise<void> => {
  const store = await openStore(address, 'write');
  await fill(store, firstSecond, Math.ceil(reports / benchStreams.length));
  await store.close();
};

export const benchStart = async (args: readonly string[]): Promise<readonly Measurement[]> => {
  const options = { to: { type: 'string', default: '2M' }, dir: { type: 'string' } } as const;
  const { values } = parseArgs({ args: [...args], strict: false, options });
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-start-bench-'));
  const left = values.dir === undefined ? undefined : join(String(values.dir), 'large');
  try {
    if (left !== undefined && !existsSync(left)) throw new Error(`${left} does not exist. Run: growth --keep --dir.`);
    const store = left ?? join(folder, 'store');
    if (left === undefined) await buildStore(store, parseReports(String(values.to)));
    return [await timeServe(folder, store), await timeNpmStart(folder)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
