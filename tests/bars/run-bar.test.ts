import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAlive } from '../support/real-program.ts';
import type { Bar } from './bar.ts';
import { openJournal } from './journal.ts';
import { judge, partOf, readResults, savePart } from './results.ts';
import { type BarRun, runBar } from './run-bar.ts';
import { type PartRun, runPart } from './run-part.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-bars-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const bar: Bar = {
  test: 'lives that end',
  files: ['tests/bars/sample.test.ts'],
  count: { unit: 'lives', reduced: 1, full: 10, part: 4 },
  bounds: { lost: { max: 0 } },
  control: 'acknowledging too early',
};

const runOf = (run: BarRun['run'], said: string[] = []): BarRun => ({
  key: 'sample',
  bar,
  count: 10,
  journal: openJournal(join(folder, 'journal.ndjson')),
  commit: 'abc',
  say: (text) => said.push(text),
  ...(run === undefined ? {} : { run }),
});

const outcome = { found: { lost: 0, acknowledged: 5, 'ms to start, at most': 7 }, control: { lost: 1 }, seconds: 60 };

test('bar: parts add up to the count, with progress and an estimate', async () => {
  const [sizes, said] = [[] as (readonly number[])[], [] as string[]];
  const run = async ({ units, first }: PartRun) => {
    sizes.push([first, units]);
    return { ...outcome, found: { ...outcome.found, 'ms to start, at most': units } };
  };
  const result = await runBar(runOf(run, said));
  expect(sizes).toEqual([
    [0, 4],
    [4, 4],
    [8, 2],
  ]);
  expect(said).toEqual([
    'sample: 4 of 10 lives, 2 min left',
    'sample: 8 of 10 lives, 30 s left',
    'sample: 10 of 10 lives, 0 s left',
  ]);
  expect(result).toMatchObject({
    count: 10,
    found: { lost: 0, acknowledged: 15, 'ms to start, at most': 4 },
    control: { lost: 3 },
    failures: [],
    commits: ['abc'],
  });
});

test('bar: a run that was stopped goes on after its last whole part, also if its journal was cut off in a line', async () => {
  const failing = async ({ units }: PartRun) => {
    if (openJournal(join(folder, 'journal.ndjson')).parts().length === 2) throw new Error('stopped');
    return { ...outcome, found: { units } };
  };
  await expect(runBar(runOf(failing))).rejects.toThrow('stopped');
  const file = join(folder, 'journal.ndjson');
  writeFileSync(file, `${readFileSync(file, 'utf8')}{"seed":1,"uni`);
  const sizes: number[] = [];
  const run = async ({ units }: PartRun) => {
    sizes.push(units);
    return { ...outcome, found: { lost: 0 } };
  };
  expect((await runBar(runOf(run))).count).toBe(10);
  expect(sizes).toEqual([2]);
});

test('bar: parts of what was another test under the same name do not count', async () => {
  const sizes: number[] = [];
  const run = async ({ units, first }: PartRun) => {
    sizes.push(first + units);
    if (sizes.length === 2) throw new Error('stopped');
    return outcome;
  };
  const changed = { ...bar, test: 'lives that end, and begin again' };
  await expect(runBar(runOf(run))).rejects.toThrow('stopped');
  const result = await runBar({ ...runOf(run), bar: changed });
  expect(sizes).toEqual([4, 8, 4, 8, 10]);
  expect(result.found).toMatchObject({ acknowledged: 15 });
});

test('bar: what exceeds its bound, is not tallied, or has a control that finds nothing is a failure', () => {
  const part = { seed: 1, units: 10, seconds: 1, commit: 'abc', test: bar.test };
  const about = { date: '2026-01-01', machine: 'x64' };
  const failuresOf = (found: Record<string, number>, control: Record<string, number>) =>
    judge(bar, [{ ...part, found, control }], about).failures;
  expect(failuresOf({ lost: 0 }, { lost: 2 })).toEqual([]);
  expect(failuresOf({ lost: 1 }, { lost: 2 })).toEqual(['lost: 1, not at most 0']);
  expect(failuresOf({}, { lost: 2 })).toEqual(['lost: not tallied, not at most 0']);
  expect(failuresOf({ lost: 0 }, { lost: 0 })).toEqual(['void: acknowledging too early was not found']);
});

test('bar: a part runs its test file with its count and seed, and keeps output and files only if a test fails', async () => {
  const part = { key: 'sample', bar, units: 3, first: 4, seed: 7, folder: join(folder, 'part') };
  await expect(runPart(part)).resolves.toMatchObject({
    found: { 'tests passed, at least': 1, units: 3, first: 4, seed: 7, 'ms at most': 6 * 3_600_000 },
    control: { lost: 1 },
  });
  expect(existsSync(part.folder)).toBe(false);
  await expect(runPart({ ...part, units: 13 })).rejects.toThrow(`Its output and files are in ${part.folder}.`);
  expect(readFileSync(join(part.folder, 'output.txt'), 'utf8')).toContain('13 is too many');
  const left = Number(readFileSync(join(part.folder, 'tmp/left.txt'), 'utf8'));
  await expect.poll(() => isAlive(left)).toBe(false); // what the failed test started
});

test('bar: what each part found is saved, a whole result stays until the next, and another clone goes on from it', async () => {
  const file = join(folder, 'results.json');
  writeFileSync(file, '{}');
  const counts: (number | undefined)[] = [];
  const run = async () => outcome;
  const options = { ...runOf(run), save: (result: ReturnType<typeof judge>) => savePart('sample', result, 10, file) };
  const stopping = async () => {
    counts.push(readResults(file).sample?.count);
    if (counts.length === 3) throw new Error('stopped');
    return outcome;
  };
  await expect(runBar({ ...options, run: stopping })).rejects.toThrow('stopped');
  expect(counts).toEqual([undefined, 4, 8]);
  const journal = openJournal(join(folder, 'elsewhere.ndjson'));
  for (const part of partOf(readResults(file).sample)) journal.add(part);
  await runBar({ ...options, journal, commit: 'def' });
  expect(readResults(file).sample).toMatchObject({ count: 10, found: { acknowledged: 15 }, commits: ['abc', 'def'] });
  expect(partOf(readResults(file).sample)).toEqual([]);
  await runBar({ ...options, journal: openJournal(join(folder, 'again.ndjson')), count: 4, commit: 'ghi' });
  expect(readResults(file).sample?.commits).toEqual(['abc', 'def']);
});

test('bar: of a run that is not whole, only what cannot be mended is a failure', () => {
  const bounds = { lost: { max: 0 }, cuts: { min: 500 }, '% found, at least': { min: 90 } };
  const failuresOf = (units: number, found: Record<string, number>) =>
    judge(
      { ...bar, bounds },
      [{ seed: 1, units, seconds: 1, commit: 'abc', test: bar.test, found, control: { lost: 1 } }],
      {
        date: '2026-01-01',
        machine: 'x64',
      },
    ).failures;
  expect(failuresOf(4, { lost: 0, cuts: 200, '% found, at least': 91 })).toEqual([]);
  expect(failuresOf(4, { lost: 1, cuts: 200, '% found, at least': 89 })).toHaveLength(2);
  expect(failuresOf(10, { lost: 0, cuts: 200, '% found, at least': 91 })).toEqual(['cuts: 200, not at least 500']);
});
