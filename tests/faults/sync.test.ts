// What the disk has been told before a report is acknowledged, by the system calls of the process that writes.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import { findDebianProgram } from '../support/debian-programs.ts';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { buildPrograms, ended, linesOf, type Programs } from './programs.ts';
import { isTraceable, readSyncOrder, type SyncOrder, startTracedWriter, type TracedWriter } from './traced-writer.ts';

let programs: Programs;
let strace: string | undefined;
beforeAll(async () => {
  programs = await buildPrograms();
  const found = findDebianProgram('strace');
  if ('path' in found && isTraceable(found.path)) strace = found.path;
});
afterAll(() => {
  programs.remove();
});

const untraceable = 'strace is not to be had, or may not trace';

type Run = { readonly order: SyncOrder; readonly lines: readonly string[] };

/** Lets the writer write so many reports. */
const write = async (root: string, options: Omit<TracedWriter, 'folder' | 'trace'>): Promise<Run> => {
  const traced = { ...options, folder: join(root, 'store'), trace: join(root, 'trace') };
  const child = startTracedWriter(strace ?? '', programs, traced);
  const lines: string[] = [];
  for await (const line of linesOf(child)) lines.push(line);
  await ended(child);
  return { order: await readSyncOrder(traced.trace), lines };
};

const inFolder = async <T>(work: (root: string) => Promise<T>): Promise<T> => {
  const root = mkdtempSync(join(tmpdir(), 'sealpost-sync-'));
  try {
    return await work(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
};

const isAck = (line: string): boolean => line.startsWith('ack ');

/** Compares what was acknowledged with what the store has. */
const countLost = async (root: string, lines: readonly string[]): Promise<number> => {
  const store = await openStore(join(root, 'store'), 'read');
  let lost = 0;
  for (const line of lines.filter(isAck)) {
    const [, feedId, ms, hash] = line.split(' ');
    const [found] = await store.reports.at([feedId as FeedId], Number(ms) / 1_000); // as the writer printed it
    if (found === undefined || createHash('sha256').update(found.fullReport).digest('hex') !== hash) lost += 1;
  }
  await store.close();
  return lost;
};

const reports = countOf(300, 100_000);

test(`sync: ${reports} reports, none is acknowledged before its commit is flushed`, {
  timeout: 3_600_000,
}, async ({ skip }) => {
  if (strace === undefined) return skip(untraceable);
  await inFolder(async (root) => {
    const { order, lines } = await write(root, { mode: 'honest', reports });
    const acknowledged = lines.filter(isAck).length;
    const lost = await countLost(root, lines);
    tally({
      acknowledged,
      'acknowledged before the flush': order.early,
      'commits without a flush': order.unflushed,
      lost,
    });
    expect(order).toMatchObject({ early: 0, unflushed: 0, batches: acknowledged / 3 }); // three streams
    expect(acknowledged).toBeGreaterThanOrEqual(reports);
    expect(lost).toBe(0);
  });
});

test('sync: a writer that acknowledges before the store answers is found (control)', async ({ skip }) => {
  if (strace === undefined) return skip(untraceable);
  const { order } = await inFolder((root) => write(root, { mode: 'early', reports: 30 }));
  tallyControl({ 'acknowledged before the flush': order.early });
  expect(order.early).toBe(order.batches);
});

const failing = countOf(3, 30);

test(`fsync fails: at each of the first ${failing} flushes in turn, nothing that failed is acknowledged`, {
  timeout: 3_600_000,
}, async ({ skip }) => {
  if (strace === undefined) return skip(untraceable);
  const found = { acknowledged: 0, rejected: 0, 'starts that were refused': 0, injected: 0, lost: 0 };
  const early = { 'acknowledged before the flush': 0 };
  for (let failingSync = 1; failingSync <= failing; failingSync++)
    await inFolder(async (root) => {
      const before = await write(root, { mode: 'honest', reports: 6 });
      const { order, lines } = await write(root, { mode: 'honest', reports: 3 * (failingSync + 5), failingSync });
      found.acknowledged += lines.filter(isAck).length;
      found.rejected += lines.filter((line) => line.startsWith('failed ')).length;
      found['starts that were refused'] += lines.length === 0 ? 1 : 0;
      found.injected += order.injected;
      found.lost += await countLost(root, [...before.lines, ...lines]);
      early['acknowledged before the flush'] += order.early;
      expect([undefined, 'done'], `flush ${failingSync}`).toContain(lines.at(-1));
    });
  tally({ ...found, ...early });
  expect(found.lost).toBe(0);
  expect(early['acknowledged before the flush']).toBe(0);
  expect(found.injected).toBeGreaterThanOrEqual(failing);
  expect(found.rejected + found['starts that were refused']).toBeGreaterThanOrEqual(failing);
});
