// The engine on PostgreSQL, with a database of its own on this machine: taking in, reading beside the same statements through the bare
// driver, `latest` beside the embedded engine's, and the way of a report from one node into another's memory.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import postgres from 'postgres';
import { createDamageLog } from '../server/src/store/damage.ts';
import { openStore } from '../server/src/store/open.ts';
import type { Parameter, Run } from '../server/src/store/postgres/connection.ts';
import { createPartitions } from '../server/src/store/postgres/partitions.ts';
import { createReportReads } from '../server/src/store/postgres/reads.ts';
import { tablesOf } from '../server/src/store/postgres/schema.ts';
import type { Store } from '../server/src/store/store.ts';
import { startPostgres } from '../tests/support/running-postgres.ts';
import { benchLatestOn } from './http.ts';
import { createIngestLoad, linesOf, secondsToTakeIn, warmUp } from './ingest.ts';
import { cpuPerCall, type Measurement, median } from './measure.ts';
import { benchStreams, firstSecond, rekeyedReports } from './rekeyed-reports.ts';

const filledSeconds = 4_000;
const batchSeconds = 10;
const ingestSeconds = 900;
/** Readings under way at once. */
const width = 32;
const rounds = 5;
const schema = 'sealpost';

const cpuMicroseconds = (since: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(since);
  return user + system;
};

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
  return [
    {
      name: 'append, durable, batches of 240',
      value: (count * 1_000) / (performance.now() - started),
      unit: 'reports/s',
    },
    { name: 'append, node', value: cpuMicroseconds(cpu) / count, unit: 'µs CPU' },
  ];
};

/** The same signed lines through ingest on PostgreSQL and on the embedded engine. */
const measureIngest = async (url: string): Promise<readonly Measurement[]> => {
  const load = await createIngestLoad(ingestSeconds);
  const takeIn = async (open?: () => Promise<Store>) => {
    const running = await load.openFor(open);
    const batches = await warmUp(running, load.batches);
    const cpu = process.cpuUsage();
    const seconds = await secondsToTakeIn(running, batches);
    const taken = { perSecond: linesOf(batches) / seconds, cpu: cpuMicroseconds(cpu) / linesOf(batches) };
    await running.close();
    return taken;
  };
  const own = await takeIn(() => openStore(url, 'write'));
  const embedded = await takeIn();
  return [
    { name: 'verified and durable ingest, all cores', value: own.perSecond, unit: 'reports/s' },
    { name: 'verified and durable ingest, embedded engine', value: embedded.perSecond, unit: 'reports/s' },
    { name: 'ingest, node', value: own.cpu, unit: 'µs CPU' },
    { name: 'ingest, embedded engine', value: embedded.cpu, unit: 'µs CPU' },
    { name: 'ingest, times the embedded engine’s CPU', value: own.cpu / embedded.cpu, unit: 'ratio' },
  ];
};

type Act = (i: number) => Promise<unknown>;

/** Calls per second with many under way, and what one costs this process. */
const callAll = async (calls: number, act: Act): Promise<{ readonly perSecond: number; readonly cpu: number }> => {
  const [started, cpu] = [performance.now(), process.cpuUsage()];
  let i = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (i < calls) await act(i++);
    }),
  );
  return { perSecond: (calls * 1_000) / (performance.now() - started), cpu: cpuMicroseconds(cpu) / calls };
};

/** By turns, after a round for the compilers. */
const compareCalls = async (name: string, calls: number, own: Act, bare: Act): Promise<readonly Measurement[]> => {
  const taken: Record<'own' | 'bare', Awaited<ReturnType<typeof callAll>>[]> = { own: [], bare: [] };
  for (let round = 0; round <= rounds; round++) {
    const [one, other] = [await callAll(calls, own), await callAll(calls, bare)];
    if (round === 0) continue;
    taken.own.push(one);
    taken.bare.push(other);
  }
  const of = (whose: keyof typeof taken, figure: 'perSecond' | 'cpu') => median(taken[whose].map((one) => one[figure]));
  const [speed, bareSpeed] = [of('own', 'perSecond'), of('bare', 'perSecond')];
  const [cpu, bareCpu] = [of('own', 'cpu'), of('bare', 'cpu')];
  return [
    { name, value: speed, unit: '/s' },
    { name: `${name}, bare driver`, value: bareSpeed, unit: '/s' },
    { name: `${name}, share of the bare driver’s speed`, value: speed / bareSpeed, unit: 'ratio' },
    { name: `${name}, node`, value: cpu, unit: 'µs CPU' },
    { name: `${name}, bare driver`, value: bareCpu, unit: 'µs CPU' },
    { name: `${name}, times the bare driver’s CPU`, value: cpu / bareCpu, unit: 'ratio' },
  ];
};

const streamAt = (i: number): FeedId => benchStreams[i % benchStreams.length] as FeedId; // there are 24
const secondAt = (i: number): number => firstSecond + ((i * 7_919) % (filledSeconds - 200));

type Statement = { readonly text: string; readonly parameters: readonly Parameter[] };
type Readings = Pick<Store['reports'], 'renderedAt' | 'renderedPage'>;
type Reading = (reads: Readings, i: number) => Promise<unknown>;

/** The statements that the engine itself sends, the first of each reading. */
const recordStatements = async (run: Run, count: number, read: Reading): Promise<readonly Statement[]> => {
  const tables = tablesOf(schema);
  const partitions = createPartitions(run, tables, 86_400_000);
  await partitions.refresh();
  let sent: Statement | undefined;
  const record: Run = async (text, parameters = []) => {
    sent ??= { text, parameters };
    return [];
  };
  const reads = createReportReads(record, tables, partitions, createDamageLog());
  const statements: Statement[] = [];
  for (let i = 0; i < count; i++) {
    sent = undefined;
    await read(reads, i);
    if (sent !== undefined) statements.push(sent);
  }
  return statements;
};

const measureReads = async (store: Store, base: string): Promise<readonly Measurement[]> => {
  const bigint = { to: 20, from: [20], parse: Number, serialize: String };
  const bare = postgres(base, { max: 10, fetch_types: false, types: { bigint } });
  const run = ((text, parameters = []) => bare.unsafe(text, [...parameters], { prepare: true })) as Run; // rows are plain objects
  const compare = async (name: string, calls: number, read: Reading): Promise<readonly Measurement[]> => {
    const statements = await recordStatements(run, calls, read);
    const send: Act = (i) => run((statements[i] as Statement).text, (statements[i] as Statement).parameters); // one for each call
    return compareCalls(name, calls, (i) => read(store.reports, i), send);
  };
  const figures = [
    ...(await compare('at', 4_000, (reads, i) => reads.renderedAt([streamAt(i)], secondAt(i)))),
    ...(await compare('page of 100', 1_000, (reads, i) => reads.renderedPage(streamAt(i), secondAt(i), 100))),
  ];
  await bare.end();
  return figures;
};

/** `latest` of the store itself and of a whole request, beside the embedded engine's. */
const measureLatest = async (store: Store, otherUrl: string): Promise<readonly Measurement[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-bench-'));
  const embedded = await openStore(folder, 'write');
  for (const batch of rekeyedReports(firstSecond, batchSeconds)) await embedded.reports.append(batch);
  const taken: readonly [number[], number[]] = [[], []];
  let i = 0;
  // Each is written out, or the compiler would make one of them the faster for coming first.
  const [ask, askOther] = [() => store.reports.latest(streamAt(i++)), () => embedded.reports.latest(streamAt(i++))];
  for (let round = 0; round <= rounds; round++) {
    const [cpu, otherCpu] = [cpuPerCall(ask), cpuPerCall(askOther)];
    if (round === 0) continue;
    taken[0].push(cpu);
    taken[1].push(otherCpu);
  }
  await embedded.close();
  rmSync(folder, { recursive: true, force: true });
  const [own, other] = [median(taken[0]), median(taken[1])];
  const [request, otherRequest] = await benchLatestOn(otherUrl);
  return [
    { name: 'latest', value: own, unit: 'µs CPU' },
    { name: 'latest, embedded engine', value: other, unit: 'µs CPU' },
    { name: 'latest, times the embedded engine’s CPU', value: own / other, unit: 'ratio' },
    { name: 'request of latest, node', value: request, unit: 'µs CPU' },
    { name: 'request of latest, embedded engine', value: otherRequest, unit: 'µs CPU' },
    { name: 'request of latest, times the embedded engine’s CPU', value: request / otherRequest, unit: 'ratio' },
  ];
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
  const url = server.url(schema);
  const store = await openStore(url, 'write');
  try {
    const filled = await fill(store);
    const reads = await measureReads(store, server.base);
    const latest = await measureLatest(store, server.url('node'));
    const other = await openStore(url, 'read');
    const fed = await measureFeed(store, other).finally(other.close);
    const { reports, fileBytes } = await store.reports.stats();
    const ingested = await measureIngest(server.url('ingest'));
    const disk = { name: 'disk per report', value: fileBytes / reports, unit: 'bytes' };
    return [...ingested, ...filled, ...reads, ...latest, ...fed, disk];
  } finally {
    await store.close();
    await server.stop();
  }
};
