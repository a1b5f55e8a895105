// The store at a million reports: look-ups, pages, bytes, memory, time to open.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { openStore } from '../server/src/store/open.ts';
import type { Store } from '../server/src/store/store.ts';
import { anonymousMegabytes, cpuPerCall, type Measurement } from './measure.ts';
import { benchStreams, fill, firstSecond } from './rekeyed-reports.ts';

/** Maps a part of the file: a page that a process touches for the first time costs a fault, which is the machine's price and not the store's. */
export const touch = async (store: Store, from: number, seconds: number): Promise<void> => {
  for (const feedId of benchStreams) {
    for (let second = from; second < from + seconds; second += reportsTouched)
      await store.reports.page(feedId, second, 1);
  }
};

/** A read each so many seconds lands in every run of a stream. */
const reportsTouched = 32;

/** Each kind of read, at random places of `seconds` from `from` on. */
export const readsOf = (store: Store, from: number, seconds: number) => {
  const anyStream = () =>
    benchStreams[Math.floor(Math.random() * benchStreams.length)] as (typeof benchStreams)[number]; // there are 24
  const anySecond = () => from + Math.floor(Math.random() * (seconds - 100));
  return {
    latest: () => void store.reports.latest(anyStream()),
    at: () => void store.reports.at([anyStream()], anySecond()),
    'page of 100': () => void store.reports.page(anyStream(), anySecond(), 100),
  };
};

/** Opens a store as a server does; the time until its first answer. */
export const openTimed = async (folder: string): Promise<{ readonly store: Store; readonly openMs: number }> => {
  const opening = performance.now();
  const store = await openStore(folder, 'write');
  store.reports.latest(benchStreams[0] as FeedId); // there are 24
  return { store, openMs: performance.now() - opening };
};

export const benchStore = async (): Promise<readonly Measurement[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-bench-'));
  const seconds = Math.ceil(1_000_000 / benchStreams.length);
  try {
    const appendUs = await grow(folder, seconds);
    return await measureStore(folder, seconds, appendUs);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Appends `seconds` of every stream; µs of wall time per report. */
const grow = async (folder: string, seconds: number): Promise<number> => {
  const store = await openStore(folder, 'write');
  const started = performance.now();
  await fill(store, firstSecond, seconds);
  const elapsed = performance.now() - started;
  await store.close();
  return (elapsed * 1_000) / (seconds * benchStreams.length);
};

const measureStore = async (folder: string, seconds: number, appendUs: number): Promise<readonly Measurement[]> => {
  const { store, openMs } = await openTimed(folder);
  await touch(store, firstSecond, seconds);
  const reads = Object.entries(readsOf(store, firstSecond, seconds)).map(([name, act]) => ({
    name,
    value: cpuPerCall(act),
    unit: 'µs CPU',
  }));
  const { reports, reportBytes, fileBytes } = await store.reports.stats();
  await store.close();
  return [
    { name: 'append, durable, batches of 240', value: appendUs, unit: 'µs' },
    ...reads,
    { name: 'disk per report', value: fileBytes / reports, unit: 'bytes' },
    { name: 'disk per byte of fullReport', value: fileBytes / reportBytes, unit: 'bytes' },
    { name: 'open and first read', value: openMs, unit: 'ms' },
    { name: 'RssAnon', value: anonymousMegabytes(), unit: 'MB' },
  ];
};
