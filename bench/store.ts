// The store at a million reports: look-ups, pages, bytes, memory, time to open.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { openStore } from '../server/src/store/open.ts';
import type { Store } from '../server/src/store/store.ts';
import { anonymousMegabytes, cpuPerAwaited, type Measurement } from './measure.ts';
import { benchStreams, fill, firstSecond } from './rekeyed-reports.ts';

type Place = { readonly feedId: FeedId; readonly second: number };

/** More than a process keeps rendered, so that a read of each in turn finds nothing of the last time. */
const placeCount = 20_000;

/** Random places of `seconds` from `from` on. */
const choosePlaces = (from: number, seconds: number): readonly Place[] =>
  Array.from({ length: placeCount }, (_, i) => ({
    feedId: benchStreams[i % benchStreams.length] as FeedId, // there are 24
    second: from + Math.floor(Math.random() * (seconds - 100)),
  }));

/** Maps their part of the file: a page that a process touches for the first time costs a fault, which is the machine's price and not the store's. */
const touch = async (store: Store, places: readonly Place[]): Promise<void> => {
  for (const { feedId, second } of places) await store.reports.page(feedId, second, 100);
};

/** Each kind of read, at one place after the other. */
const readsOf = (store: Store, places: readonly Place[]) => {
  let turn = 0;
  const next = (): Place => places[turn++ % places.length] as Place; // within bounds
  return {
    latest: () => store.reports.latest(next().feedId),
    at: () => {
      const { feedId, second } = next();
      return store.reports.at([feedId], second);
    },
    'page of 100': () => {
      const { feedId, second } = next();
      return store.reports.page(feedId, second, 100);
    },
  };
};

/** Opens a store as a server does; the time until its first answer. */
const openTimed = async (folder: string): Promise<{ readonly store: Store; readonly openMs: number }> => {
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
  const places = choosePlaces(firstSecond, seconds);
  await touch(store, places);
  const reads: Measurement[] = [];
  for (const [name, act] of Object.entries(readsOf(store, places)))
    reads.push({ name, value: await cpuPerAwaited(act), unit: 'µs CPU' });
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
