// Damaged files: copies of a store with single bits flipped or the end cut off, read by child programs that may die of it.
import { createHash } from 'node:crypto';
import { closeSync, cpSync, mkdtempSync, openSync, readSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { pagesFile } from '../../server/src/store/lmdb-environment.ts';
import { openStore } from '../../server/src/store/open.ts';
import { createSignedReports, secondStream } from '../signed-reports.ts';
import { ended, linesOf, type Programs } from './programs.ts';

const firstSecond = 1_763_200_000;
const secondsStored = 200;

export type HealthyStore = {
  readonly folder: string;
  readonly expected: ReadonlyMap<string, string>;
  readonly usedBytes: number;
  readonly remove: () => void;
};

/** A store of three streams, two hundred seconds each, and the hash of every report in it. */
export const createHealthyStore = async (): Promise<HealthyStore> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-healthy-'));
  const { report } = await createSignedReports();
  const store = await openStore(folder, 'write');
  const expected = new Map<string, string>();
  for (const feedId of [1, 2, 3].map(secondStream)) {
    const reports = Array.from({ length: secondsStored }, (_, i) =>
      report(feedId, firstSecond + i, firstSecond + i, BigInt(i)),
    );
    await store.reports.append(reports);
    for (const { observationsMs, fullReport } of reports)
      expected.set(`${feedId} ${observationsMs}`, createHash('sha256').update(fullReport).digest('hex'));
    expected.set(
      `latest ${feedId}`,
      createHash('sha256')
        .update(store.reports.latest(feedId as FeedId)?.json ?? '')
        .digest('hex'),
    );
  }
  const { usedBytes } = await store.reports.stats();
  await store.close();
  return { folder, expected, usedBytes, remove: () => rmSync(folder, { recursive: true, force: true }) };
};

export type FlipResult = {
  readonly flips: number;
  readonly wrong: number;
  readonly detected: number;
  readonly harmless: number;
  readonly missed: number;
  readonly died: number;
};

/** Flips one random bit of each copy's pages and reads everything back. Dying is counted; wrong bytes must never be seen. */
export const runFlips = async (
  programs: Programs,
  healthy: HealthyStore,
  flips: number,
  random: () => number,
): Promise<FlipResult> => {
  const parent = mkdtempSync(join(tmpdir(), 'sealpost-flips-'));
  const result = { flips, wrong: 0, detected: 0, harmless: 0, missed: 0, died: 0 };
  const size = lastUsedByte(pagesFile(join(healthy.folder, 'reports')));
  try {
    for (let done = 0; done < flips; done += 25) {
      const folders = Array.from({ length: Math.min(25, flips - done) }, (_, i) => join(parent, `copy-${done + i}`));
      for (const folder of folders) {
        cpSync(healthy.folder, folder, { recursive: true });
        flipBit(pagesFile(join(folder, 'reports')), Math.floor(random() * size * 8));
      }
      for (const verdict of await judgeCopies(programs, folders, healthy.expected)) result[verdict] += 1;
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    }
    return result;
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
};

type FlipVerdict = 'wrong' | 'detected' | 'harmless' | 'missed' | 'died';

/** Pages beyond the last one in use are a sparse hole; a copy has it filled. */
const lastUsedByte = (file: string): number => statSync(file).blocks * 512;

const flipBit = (file: string, bit: number): void => {
  const descriptor = openSync(file, 'r+');
  const byte = Buffer.alloc(1);
  readSync(descriptor, byte, 0, 1, bit >> 3);
  writeSync(descriptor, Uint8Array.of((byte[0] as number) ^ (1 << (bit & 7))), 0, 1, bit >> 3);
  closeSync(descriptor);
};

// One child reads many copies; where it dies the next one goes on.
const judgeCopies = async (
  programs: Programs,
  folders: readonly string[],
  expected: ReadonlyMap<string, string>,
): Promise<readonly FlipVerdict[]> => {
  const verdicts: FlipVerdict[] = [];
  while (verdicts.length < folders.length) {
    const seen = await readCopies(programs, folders.slice(verdicts.length));
    verdicts.push(...seen.map((lines) => judge(lines, expected)));
    if (verdicts.length < folders.length) verdicts.push('died');
  }
  return verdicts;
};

const readCopies = async (programs: Programs, folders: readonly string[]): Promise<readonly (readonly string[])[]> => {
  process.env.FROM = String(firstSecond);
  process.env.TO = String(firstSecond + secondsStored - 1);
  const child = programs.start('reader-program', ['check', ...folders], { stderr: 'ignore' });
  const finished: string[][] = [];
  let lines: string[] = [];
  for await (const line of linesOf(child)) {
    if (line.startsWith('begin ')) lines = [];
    else if (line.startsWith('end ')) finished.push(lines);
    else lines.push(line);
  }
  await ended(child);
  return finished;
};

const judge = (lines: readonly string[], expected: ReadonlyMap<string, string>): FlipVerdict => {
  const read = lines.map((line) => line.split(' '));
  const wrong = read.some(
    ([word, , feedId, ms, hash]) =>
      (word === 'report' && expected.get(`${feedId} ${ms}`) !== hash) ||
      (word === 'latest' && expected.get(`latest ${feedId}`) !== hash),
  );
  if (wrong) return 'wrong';
  if (read.some(([word]) => word === 'error' || word === 'refused')) return 'detected';
  return read.some(([word]) => word === 'miss') ? 'missed' : 'harmless';
};

/** Cuts the file of a copy and tells how opening it ends, with our checks and without. */
export const runTruncation = async (
  programs: Programs,
  healthy: HealthyStore,
  keep: number,
): Promise<{ readonly answer: string; readonly withoutChecks: string }> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-cut-'));
  try {
    cpSync(healthy.folder, folder, { recursive: true });
    const used = lastUsedByte(pagesFile(join(healthy.folder, 'reports')));
    truncateSync(pagesFile(join(folder, 'reports')), Math.floor(used * keep));
    const checked = programs.start('reader-program', ['check', folder], { stderr: 'ignore' });
    const lines: string[] = [];
    for await (const line of linesOf(checked)) lines.push(line);
    const checkedEnd = await ended(checked);
    const raw = programs.start('reader-program', ['raw', folder], { stderr: 'ignore' });
    const rawEnd = await ended(raw);
    const answer = checkedEnd.signal ?? lines.find((line) => line.startsWith('refused'))?.split(' ')[2] ?? 'read';
    return { answer, withoutChecks: rawEnd.signal ?? `exit ${rawEnd.code}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
