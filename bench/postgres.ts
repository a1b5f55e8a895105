// The engine on PostgreSQL, with a database of its own on this machine: taking in, reading beside the same statements through the bare
// driver, `latest` beside the embedded engine's, and the way of a report from one node into another's memory.
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { dayMs, type FeedId } from '@sealpost/protocol';
import postgres from 'postgres';
import { createDamageLog } from '../server/src/store/damage.ts';
import { openStore } from '../server/src/store/open.ts';
import type { Parameter, Run } from '../server/src/store/postgres/connection.ts';
import { createPartitionLookup, createPartitions } from '../server/src/store/postgres/partitions.ts';
import { createReportReads } from '../server/src/store/postgres/reads.ts';
import { tablesOf } from '../server/src/store/postgres/schema.ts';
import type { Store, StoredReport } from '../server/src/store/store.ts';
import { type RunningPostgres, startPostgres } from '../tests/support/running-postgres.ts';
import { benchLatestOn } from './http.ts';
import { createIngestLoad, linesOf, secondsToTakeIn, warmUp } from './ingest.ts';
import { cpuPerCall, type Measurement, median } from './measure.ts';
import { startProgram } from './processes/target.ts';
import type { FollowerState } from './programs/postgres-follower.ts';
import { benchStreams, firstSecond, rekeyedReports } from './rekeyed-reports.ts';

const filledSeconds = 4_000;
const batchSeconds = 10;
const ingestSeconds = 900;
/** Readings under way at once. */
const width = 32;
const rounds = 5;
const schema = 'sealpost';
const followerCount = 2;
const warmUpSeconds = 500;
const followedSeconds = 4_000;

const cpuMicroseconds = (since: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(since);
  return user + system;
};

type Batches = readonly Parameters<Store['reports']['append']>[0][];

const batchesOf = (from: number, seconds: number): Batches => {
  const batches: StoredReport[][] = [];
  let second = 0;
  for (const reports of rekeyedReports(from, seconds)) {
    if (second++ % batchSeconds === 0) batches.push([]);
    batches.at(-1)?.push(...reports);
  }
  return batches;
};

const fill = async (store: Store): Promise<readonly Measurement[]> => {
  const batches = batchesOf(firstSecond, filledSeconds);
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

/** By turns, after a round for the compilers: the node, and the bare driver with statements by name. */
const compareCalls = async (
  name: string,
  calls: number,
  own: Act,
  bare: Readonly<Record<string, Act>>,
): Promise<readonly Measurement[]> => {
  const acts = Object.entries({ node: own, ...bare });
  const taken = acts.map((): Awaited<ReturnType<typeof callAll>>[] => []);
  for (let round = 0; round <= rounds; round++)
    for (const [i, [, act]] of acts.entries()) {
      const figures = await callAll(calls, act);
      if (round > 0) taken[i]?.push(figures);
    }
  const of = (i: number, figure: 'perSecond' | 'cpu') => median((taken[i] ?? []).map((one) => one[figure]));
  return acts.flatMap(([whose], i) => [
    { name: `${name}, ${whose}`, value: of(i, 'perSecond'), unit: '/s' },
    { name: `${name}, ${whose}`, value: of(i, 'cpu'), unit: 'µs CPU' },
    ...(i === 0 ? [] : [{ name: `${name}, times ${whose}`, value: of(0, 'cpu') / of(i, 'cpu'), unit: 'ratio of CPU' }]),
  ]);
};

const streamAt = (i: number): FeedId => benchStreams[i % benchStreams.length] as FeedId; // there are 24
const secondAt = (i: number): number => firstSecond + ((i * 7_919) % (filledSeconds - 200));

type Statement = { readonly text: string; readonly parameters: readonly Parameter[] };
type Readings = Pick<Store['reports'], 'renderedAt' | 'renderedPage'>;
type Reading = (reads: Readings, i: number) => Promise<unknown>;

/** The statements that the engine itself sends, the first of each reading. */
const recordStatements = async (run: Run, count: number, read: Reading): Promise<readonly Statement[]> => {
  const tables = tablesOf(schema);
  const partitions = createPartitions(run, tables, dayMs);
  await partitions.refresh();
  let sent: Statement | undefined;
  const record: Run = async (text, parameters = []) => {
    sent ??= { text, parameters };
    return [];
  };
  const reads = createReportReads({ run: record, runRaw: record }, tables, partitions, createDamageLog());
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
  const compare = async (name: string, calls: number, read: Reading, others: Readonly<Record<string, Act>> = {}) => {
    const statements = await recordStatements(run, calls, read);
    const send: Act = (i) => run((statements[i] as Statement).text, (statements[i] as Statement).parameters); // one for each call
    return compareCalls(name, calls, (i) => read(store.reports, i), { ...others, 'bare driver, same statement': send });
  };
  const { reports: leaf } = createPartitionLookup(tablesOf(schema), dayMs)(firstSecond * 1_000);
  // What one would write by hand: a row for each report.
  const selectRows: Act = (i) =>
    run(
      `SELECT observations, valid_from, record FROM ${leaf} WHERE feed_id = $1::bytea AND observations >= $2::bigint
       ORDER BY observations LIMIT $3::int`,
      [Buffer.from(streamAt(i).slice(2), 'hex'), secondAt(i) * 1_000, 101],
    );
  const figures = [
    ...(await compare('at', 4_000, async (reads, i) => reads.renderedAt([streamAt(i)], secondAt(i)))),
    ...(await compare('page of 100', 1_000, async (reads, i) => reads.renderedPage(streamAt(i), secondAt(i), 100), {
      'bare driver, rows': selectRows,
    })),
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

type Follower = { readonly child: ChildProcess; readonly state: () => Promise<FollowerState> };

const startFollower = async (url: string): Promise<Follower> => {
  const { child } = await startProgram('postgres-follower', [url]);
  const state = (): Promise<FollowerState> =>
    new Promise((resolve) => {
      child.once('message', (told) => resolve(told as FollowerState)); // what the program answers
      child.send('state');
    });
  return { child, state };
};

/** Appends while other nodes follow: until all is durable, and until every follower has delivered all of it. */
const measureFollowed = async (url: string): Promise<readonly Measurement[]> => {
  const store = await openStore(url, 'write');
  const followers = await Promise.all(Array.from({ length: followerCount }, () => startFollower(url)));
  try {
    for (const batch of batchesOf(firstSecond, warmUpSeconds)) await store.reports.append(batch);
    const batches = batchesOf(firstSecond + warmUpSeconds, followedSeconds);
    const count = followedSeconds * benchStreams.length;
    const states = () => Promise.all(followers.map(({ state }) => state()));
    const cpuOf = (all: readonly FollowerState[]) => all.reduce((sum, { cpu }) => sum + cpu, 0) / all.length;
    const before = cpuOf(await states());
    const [started, cpu] = [performance.now(), process.cpuUsage()];
    for (const batch of batches) await store.reports.append(batch);
    const [storedMs, ownCpu] = [performance.now() - started, cpuMicroseconds(cpu)];
    const end = await store.reports.position();
    while ((await states()).some(({ position }) => position < end)) await sleep(1);
    const followedMs = performance.now() - started;
    const after = cpuOf(await states());
    return [
      { name: 'append while two nodes follow', value: (count * 1_000) / storedMs, unit: 'reports/s' },
      { name: 'the same, delivered by both', value: (count * 1_000) / followedMs, unit: 'reports/s' },
      { name: 'append while two nodes follow, node', value: ownCpu / count, unit: 'µs CPU' },
      { name: 'following, one node', value: (after - before) / count, unit: 'µs CPU' },
    ];
  } finally {
    for (const { child } of followers) child.kill('SIGTERM');
    await store.close();
  }
};

type Parts = { readonly server: RunningPostgres; readonly store: Store; readonly url: string };

/** What is measured, in this order; `--only followed,reads` picks some. All but `followed` and `ingest` need what `append` fills. */
const rows: Readonly<Record<string, (parts: Parts) => Promise<readonly Measurement[]>>> = {
  append: ({ store }) => fill(store),
  followed: ({ server }) => measureFollowed(server.url('followed')),
  reads: ({ store, server }) => measureReads(store, server.base),
  latest: ({ store, server }) => measureLatest(store, server.url('node')),
  feed: async ({ store, url }) => {
    const other = await openStore(url, 'read');
    return measureFeed(store, other).finally(other.close);
  },
  disk: async ({ store }) => {
    const { reports, fileBytes } = await store.reports.stats();
    return [{ name: 'disk per report', value: fileBytes / reports, unit: 'bytes' }];
  },
  ingest: ({ server }) => measureIngest(server.url('ingest')),
};

export const benchPostgres = async (args: readonly string[]): Promise<readonly Measurement[]> => {
  const picked = args[args.indexOf('--only') + 1]?.split(',') ?? [];
  const wanted = args.includes('--only') ? picked : Object.keys(rows);
  const server = await startPostgres({ durable: true });
  const url = server.url(schema);
  const store = await openStore(url, 'write');
  try {
    const figures: Measurement[] = [];
    for (const [name, measure] of Object.entries(rows))
      if (wanted.includes(name)) figures.push(...(await measure({ server, store, url })));
    return figures;
  } finally {
    await store.close();
    await server.stop();
  }
};
