// Reports that come late, as a backfill beside live reports brings them: how fast they are stored, and what the next live append takes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { openStore } from '../server/src/store/open.ts';
import type { Store, StoredReport } from '../server/src/store/store.ts';
import { anonymousMegabytes, type Measurement } from './measure.ts';
import { benchStreams, firstSecond, rekeyedReports } from './rekeyed-reports.ts';

const batchReports = 240;
const lateReports = 9_600;

const batchesOf = (feedIds: readonly FeedId[], from: number, seconds: number): readonly StoredReport[][] => {
  const all = [...rekeyedReports(from, seconds, feedIds)].flat();
  return Array.from({ length: Math.ceil(all.length / batchReports) }, (_, i) =>
    all.slice(i * batchReports, (i + 1) * batchReports),
  );
};

type Cost = { readonly seconds: number; readonly cpuUs: number };

/** Wall time, and CPU of all threads: on a busy machine only the second one can be compared. */
const costOf = async (store: Store, batches: readonly StoredReport[][]): Promise<Cost> => {
  const started = performance.now();
  const { user, system } = process.cpuUsage();
  for (const batch of batches) await store.reports.append(batch);
  const used = process.cpuUsage();
  return { seconds: (performance.now() - started) / 1_000, cpuUs: used.user - user + used.system - system };
};

const withStore = async <T>(act: (store: Store) => Promise<T>): Promise<T> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-bench-'));
  const store = await openStore(folder, 'write');
  try {
    return await act(store);
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
};

const rate = ({ seconds }: Cost): string => `${Math.round(lateReports / seconds)} reports/s`;

/** A backfill of some streams, each of which has so many live reports already. */
const measureLate = async (feedIds: readonly FeedId[], liveSeconds: number): Promise<readonly Measurement[]> => {
  const seconds = lateReports / feedIds.length;
  const late = batchesOf(feedIds, firstSecond, seconds);
  const liveFrom = firstSecond + seconds;
  const inOrder = await withStore((store) => costOf(store, late));
  return withStore(async (store) => {
    await costOf(store, batchesOf(feedIds, liveFrom, liveSeconds));
    const tookLate = await costOf(store, late);
    const before = anonymousMegabytes();
    const tookLive = await costOf(store, batchesOf(feedIds, liveFrom + liveSeconds, 1));
    const grown = anonymousMegabytes() - before;
    const name = `${feedIds.length} streams, ${liveSeconds} live reports each`;
    return [
      { name: `in order, ${name}`, value: inOrder.cpuUs / lateReports, unit: 'µs CPU', note: rate(inOrder) },
      { name: `late, ${name}`, value: tookLate.cpuUs / lateReports, unit: 'µs CPU', note: rate(tookLate) },
      { name: `next live append, ${name}`, value: tookLive.seconds * 1_000, unit: 'ms' },
      { name: `memory of the next live append, ${name}`, value: Math.max(0, grown), unit: 'MB' },
    ];
  });
};

export const benchLate = async (): Promise<readonly Measurement[]> => [
  ...(await measureLate(benchStreams, 1)),
  ...(await measureLate(benchStreams, 300)),
  ...(await measureLate(benchStreams.slice(0, 1), 1)),
];
