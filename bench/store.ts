// The store at a million reports, and at twenty by name only (`growth`): look-ups, pages, bytes, memory, time to open.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

const measureAt = async (millions: number): Promise<readonly Measurement[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-bench-'));
  try {
    const seconds = Math.ceil((millions * 1_000_000) / benchStreams.length);
    let store = await openStore(folder, 'write');
    const started = performance.now();
    await fill(store, firstSecond, seconds);
    const perReport = ((performance.now() - started) * 1_000) / (seconds * benchStreams.length);
    await store.close();
    const opening = performance.now();
    store = await openStore(folder, 'write');
    store.reports.latest(benchStreams[0] as (typeof benchStreams)[number]);
    const openMs = performance.now() - opening;
    const reads = await measureReads(store, seconds);
    const { reports, reportBytes, fileBytes } = await store.reports.stats();
    await store.close();
    const at = (name: string) => `${name}, ${millions} M reports`;
    return [
      { name: at('append, durable, batches of 240'), value: perReport, unit: 'µs' },
      ...reads.map((read) => ({ ...read, name: at(read.name) })),
      { name: at('disk per report'), value: fileBytes / reports, unit: 'bytes' },
      { name: at('disk per byte of fullReport'), value: fileBytes / reportBytes, unit: 'bytes' },
      { name: at('open and first read'), value: openMs, unit: 'ms' },
      { name: at('RssAnon'), value: anonymousMegabytes(), unit: 'MB' },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

export const benchStore = (): Promise<readonly Measurement[]> => measureAt(1);

export const benchGrowth = async (): Promise<readonly Measurement[]> => [
  ...(await measureAt(1)),
  ...(await measureAt(10)),
  ...(await measureAt(20)),
];
