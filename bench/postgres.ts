// The engine on PostgreSQL, with a database of its own on this machine: appending, reading beside the same statement through the bare
// driver, and the way of a report from one node into another's memory.
import type { FeedId } from '@sealpost/protocol';
import postgres from 'postgres';
import { openStore } from '../server/src/store/open.ts';
import type { Store } from '../server/src/store/store.ts';
import { startPostgres } from '../tests/running-postgres.ts';
import { cpuPerCall, type Measurement } from './measure.ts';
import { benchStreams, firstSecond, rekeyedReports } from './rekeyed-reports.ts';

const filledSeconds = 4_000;
const batchSeconds = 10;
/** Readings under way at once. */
const width = 32;

const fill = async (store: Store): Promise<readonly Measurement[]> => {
  const batches: Parameters<Store['reports']['append']>[0][number][][] = [[]];
  let seconds = 0;
  for (const reports of rekeyedReports(firstSecond, filledSeconds)) {
    batches.at(-1)?.push(...reports);
    if (++seconds % batchSeconds === 0) batches.push([]);
  }
  const [started, cpu] = [performance.now(), process.cpuUsage()];
  for (const batch of batches) await store.reports.append(batch);
  const count = filledSeconds * benchStreams.length;
  const { user, system } = process.cpuUsage(cpu);
  return [
    {
      name: 'append, durable, batches of 240',
      value: (count * 1_000) / (performance.now() - started),
      unit: 'reports/s',
    },
    { name: 'append, client', value: (user + system) / count, unit: 'µs CPU' },
  ];
};

/** Calls per second with many under way, and what one costs this process. */
const measureCalls = async (name: string, calls: number, act: (i: number) => Promise<unknown>) => {
  const run = async (count: number): Promise<void> => {
    let i = 0;
    await Promise.all(
      Array.from({ length: width }, async () => {
        while (i < count) await act(i++);
      }),
    );
  };
  await run(Math.ceil(calls / 5));
  const [started, cpu] = [performance.now(), process.cpuUsage()];
  await run(calls);
  const { user, system } = process.cpuUsage(cpu);
  return [
    { name, value: (calls * 1_000) / (performance.now() - started), unit: '/s' },
    { name: `${name}, client`, value: (user + system) / calls, unit: 'µs CPU' },
  ];
};

const streamAt = (i: number): FeedId => benchStreams[i % benchStreams.length] as FeedId; // there are 24
const secondAt = (i: number): number => firstSecond + ((i * 7_919) % (filledSeconds - 200));

const measureReads = async (store: Store, base: string): Promise<readonly Measurement[]> => {
  const bare = postgres(base, { max: 10, fetch_types: false });
  const name = new Date(firstSecond * 1_000).toISOString().slice(0, 10).replaceAll('-', '');
  const statement = `SELECT observations, valid_from, record FROM sealpost.reports_p${name}
    WHERE feed_id = $1::bytea AND observations >= $2::bigint ORDER BY observations LIMIT $3::int`;
  const ask = (i: number, limit: number) =>
    bare.unsafe(statement, [Buffer.from(streamAt(i).slice(2), 'hex'), String(secondAt(i) * 1_000), limit], {
      prepare: true,
    });
  const figures = [
    ...(await measureCalls('at', 10_000, (i) => store.reports.renderedAt([streamAt(i)], secondAt(i)))),
    ...(await measureCalls('at, bare driver', 10_000, (i) => ask(i, 1))),
    ...(await measureCalls('page of 100', 2_000, (i) => store.reports.renderedPage(streamAt(i), secondAt(i), 100))),
    ...(await measureCalls('page of 100, bare driver', 2_000, (i) => ask(i, 101))),
    { name: 'latest', value: cpuPerCall(() => store.reports.latest(streamAt(0))), unit: 'µs CPU' },
  ];
  await bare.end();
  return figures;
};

/** Milliseconds from the begin of an append until another node's `latest` is that report. */
const measureFeed = async (store: Store, other: Store): Promise<readonly Measurement[]> => {
  const took: number[] = [];
  const feedId = streamAt(0);
  for (const reports of rekeyedReports(firstSecond + filledSeconds, 300)) {
    const newest = reports.find((report) => report.feedId === feedId)?.observationsMs;
    const started = performance.now();
    const seen = new Promise<void>((resolve) => {
      const stop = other.reports.onAppended(() => {
        if (other.reports.latest(feedId)?.observationsMs !== newest) return;
        stop();
        resolve();
      });
    });
    await Promise.all([store.reports.append(reports), seen]);
    took.push(performance.now() - started);
  }
  took.sort((a, b) => a - b);
  const at = (share: number) => took[Math.floor(took.length * share)] ?? 0;
  return [
    { name: 'append to latest of another node, p50', value: at(0.5), unit: 'ms' },
    { name: 'append to latest of another node, p99', value: at(0.99), unit: 'ms' },
  ];
};

export const benchPostgres = async (): Promise<readonly Measurement[]> => {
  const server = await startPostgres({ durable: true });
  const url = server.url('sealpost');
  const store = await openStore(url, 'write');
  try {
    const filled = await fill(store);
    const reads = await measureReads(store, server.base);
    const other = await openStore(url, 'read');
    const fed = await measureFeed(store, other).finally(other.close);
    const { reports, fileBytes } = await store.reports.stats();
    return [...filled, ...reads, ...fed, { name: 'disk per report', value: fileBytes / reports, unit: 'bytes' }];
  } finally {
    await store.close();
    await server.stop();
  }
};
