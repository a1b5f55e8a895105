// One part of a bar: its test files in a process of their own, with a count and a seed. What they print and leave is kept if they fail.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { root } from '../support/source-tree.ts';
import type { Bar } from './bar.ts';
import {
  addTallies,
  countVariable,
  firstVariable,
  progressVariable,
  seedVariable,
  type Tally,
  type TallyLine,
  tallyVariable,
} from './tally.ts';

export type PartRun = {
  readonly key: string;
  readonly bar: Bar;
  readonly units: number;
  /** Units that earlier parts did. */
  readonly first: number;
  readonly seed: number;
  /** For temporary files and output; removed if the part succeeds. */
  readonly folder: string;
  /** Told what long tests say of their progress. */
  readonly say?: (text: string) => void;
};

export type PartOutcome = { readonly found: Tally; readonly control: Tally; readonly seconds: number };

/** Rejects if a test failed; the folder then has the output, the seed is in its name, and temporary files are where the test left them. */
export const runPart = async (part: PartRun): Promise<PartOutcome> => {
  const { bar, folder } = part;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  const started = performance.now();
  const stopRelay = relayProgress(part);
  const code = await runTests(part);
  stopRelay();
  if (code !== 0) throw new Error(`${bar.files.join(', ')} failed. Its output and files are in ${folder}.`);
  const outcome = readOutcome(folder);
  rmSync(folder, { recursive: true, force: true });
  return { ...outcome, seconds: Math.round((performance.now() - started) / 1_000) };
};

const progressFile = ({ folder }: PartRun): string => join(folder, 'progress.txt');

/** Passes on what is said, every few seconds; returns how to stop. */
const relayProgress = (part: PartRun): (() => void) => {
  let said = 0;
  const relay = (): void => {
    const file = progressFile(part);
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    for (const line of lines.slice(said)) part.say?.(line);
    said = lines.length;
  };
  const timer = setInterval(relay, 5_000);
  return () => {
    clearInterval(timer);
    relay();
  };
};

/** A test that takes longer hangs; in `npm test`, where counts are small, much less is enough. */
const partMs = 6 * 3_600_000;

const runTests = (part: PartRun): Promise<number | null> => {
  const { key, bar, units, first, seed, folder } = part;
  const output = openSync(join(folder, 'output.txt'), 'w');
  const env = {
    ...process.env,
    CI: 'true', // what cannot be tested here is a failure
    TMPDIR: join(folder, 'tmp'),
    [countVariable(key)]: String(units),
    [firstVariable]: String(first),
    [seedVariable]: String(seed),
    [tallyVariable]: join(folder, 'tally.ndjson'),
    [progressVariable]: progressFile(part),
  };
  const report = ['--reporter=default', '--reporter=json', `--outputFile.json=${join(folder, 'tests.json')}`];
  const names = bar.names === undefined ? [] : ['-t', `^${bar.names}`];
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', ...bar.files, ...names, `--testTimeout=${partMs}`, ...report];
  // The head of a group: a test that times out leaves the programs that it started.
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', output, output], detached: true });
  closeSync(output);
  const endGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // nothing is left of it
    }
  };
  const stop = (): never => {
    endGroup();
    process.exit(1);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const; // a group of its own gets none of the terminal's
  for (const signal of signals) process.on(signal, stop);
  if (bar.isTimed !== true && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  return new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  }).finally(() => {
    for (const signal of signals) process.off(signal, stop);
    endGroup();
  });
};

type TestReport = { readonly numPassedTests: number };

const readOutcome = (folder: string): Omit<PartOutcome, 'seconds'> => {
  const file = join(folder, 'tally.ndjson');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  const tallies = lines.map((line) => JSON.parse(line) as TallyLine); // written by tally.ts
  const of = (kind: TallyLine['kind']): Tally =>
    addTallies(tallies.filter((line) => line.kind === kind).map((line) => line.tally));
  const { numPassedTests } = JSON.parse(readFileSync(join(folder, 'tests.json'), 'utf8')) as TestReport; // Vitest’s own report
  if (numPassedTests === 0) throw new Error(`No test ran. See ${folder}.`);
  return { found: { 'tests passed, at least': numPassedTests, ...of('found') }, control: of('control') };
};
