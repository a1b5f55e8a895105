// The store at a million reports, and at twenty by name only (`growth`): look-ups, pages, bytes, memory, time to open.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { openStore } from '../server/src/store/open.ts';
import type { Store } from '../server/src/store/store.ts';
import { cpuPerCall, type Measurement } from './measure.ts';
import { benchStreams, firstSecond, rekeyedReports } from './rekeyed-reports.ts';

const batchSeconds = 10;

const fill = async (store: Store, from: number, seconds: number): Promise<void> => {
  let batch: Parameters<Store['reports']['append']>[0][number][] = [];
  for (const reports of rekeyedReports(from, seconds)) {
    batch.push(...reports);
    if (batch.length < batchSeconds * benchStreams.length) continue;
    await store.reports.append(batch);
    batch = [];
  }
  if (batch.length > 0) await store.reports.append(batch);
};

const anonymousMegabytes = (): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0) / 1_024;

/** Maps the whole file: a page that a process touches for the first time costs a fault, which is the machine's price and not the store's. */
const touch = async (store: Store, seconds: number): Promise<void> => {
  for (const feedId of benchStreams) {
    for (let from = firstSecond; from < firstSecond + seconds; from += reportsTouched)
      await store.reports.page(feedId, from, 1);
  }
};

/** A read each so many seconds lands in every run of a stream. */
const reportsTouched = 32;

/** µs CPU of each kind of read, at random places of the whole history. */
const measureReads = async (store: Store, seconds: number): Promise<readonly Measurement[]> => {
  const anyStream = () =>
    benchStreams[Math.floor(Math.random() * benchStreams.length)] as (typeof benchStreams)[number];
  const anySecond = () => firstSecond + Math.floor(Math.random() * (seconds - 100));
  const reads = [
    ['latest', () => store.reports.latest(anyStream())],
    ['at', () => void store.reports.at([anyStream()], anySecond())],
    ['page of 100', () => void store.reports.page(anyStream(), anySecond(), 100)],
  ] as const;
  return reads.map(([name, act]) => ({ name, value: cpuPerCall(act), unit: 'µs CPU' }));
};

/** Grows one store to each size in turn and measures it there. */
const measureAt = async (sizes: readonly number[]): Promise<readonly Measurement[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-bench-'));
  const figures: Measurement[] = [];
  let filled = 0;
  try {
    for (const millions of sizes) {
      const seconds = Math.ceil((millions * 1_000_000) / benchStreams.length);
      const appendUs = await grow(folder, firstSecond + filled, seconds - filled);
      filled = seconds;
      figures.push(...(await measureStore(folder, seconds, millions, appendUs)));
    }
    return figures;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Appends `seconds` of every stream; µs of wall time per report. */
const grow = async (folder: string, from: number, seconds: number): Promise<number> => {
  const store = await openStore(folder, 'write');
  const started = performance.now();
  await fill(store, from, seconds);
  const elapsed = performance.now() - started;
  await store.close();
  return (elapsed * 1_000) / (seconds * benchStreams.length);
};

const measureStore = async (
  folder: string,
  seconds: number,
  millions: number,
  appendUs: number,
): Promise<readonly Measurement[]> => {
  const opening = performance.now();
  const store = await openStore(folder, 'write');
  store.reports.latest(benchStreams[0] as FeedId); // there are 24
  const openMs = performance.now() - opening;
  await touch(store, seconds);
  const reads = await measureReads(store, seconds);
  const { reports, reportBytes, fileBytes } = await store.reports.stats();
  await store.close();
  const rows = [
    { name: 'append, durable, batches of 240', value: appendUs, unit: 'µs' },
    ...reads,
    { name: 'disk per report', value: fileBytes / reports, unit: 'bytes' },
    { name: 'disk per byte of fullReport', value: fileBytes / reportBytes, unit: 'bytes' },
    { name: 'open and first read', value: openMs, unit: 'ms' },
    { name: 'RssAnon', value: anonymousMegabytes(), unit: 'MB' },
  ];
  return rows.map((row) => ({ ...row, name: `${row.name}, ${millions} M reports` }));
};

export const benchStore = (): Promise<readonly Measurement[]> => measureAt([1]);

export const benchGrowth = (): Promise<readonly Measurement[]> => measureAt([1, 10, 20]);
