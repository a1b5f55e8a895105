// A node on either engine beside what one would write instead, from public packages (bench/peers): CPU per request, of the database too, memory, disk,
// lines of code, alternating in one run; and live delivery beside `ws`.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { signRequest } from '@sealpost/protocol';
import { openStore } from '../../server/src/store/open.ts';
import { type RunningPostgres, startPostgres } from '../../tests/support/running-postgres.ts';
import {
  type Account,
  type Api,
  bulkPath,
  cpuPerRequest,
  cycle,
  latestPath,
  pagePath,
  startTarget,
  type Target,
} from '../http.ts';
import { anonymousMegabytes, cpuOfTree, type Measurement, median } from '../measure.ts';
import {
  type LiveTarget,
  measureDelays,
  type RoundRules,
  startLiveTarget,
  stopLiveTarget,
} from '../processes/live-readers.ts';
import { startProgram } from '../processes/target.ts';
import { benchStreams, fill } from '../rekeyed-reports.ts';

const seconds = 1_200;
const rounds = 5;
/** Rounds before those that count: until then V8 compiles, and the larger server has more to compile. */
const warmUpRounds = 8;

/** Requests by name: as many different ones, each so many times. They are spread over all streams and all of the time. */
const workloadsOf = (api: Api) => {
  const spread = (count: number, path: (feedId: string, at: number) => string): readonly string[] =>
    Array.from({ length: count }, (_, i) =>
      path(api.feedIds[i % api.feedIds.length] ?? '', api.from + ((i * 37) % (seconds - 150))),
    );
  return [
    { name: 'latest', paths: spread(24, latestPath), times: 100 },
    { name: 'at', paths: spread(480, (id, at) => `/api/v1/reports?feedID=${id}&timestamp=${at}`), times: 5 },
    { name: 'bulk of 24', paths: spread(120, (_, at) => bulkPath(api, at)), times: 5 },
    { name: 'page of 100', paths: spread(240, pagePath), times: 2 },
  ];
};

type Peer = Target & Account;

const startPeer = (kind: string, address: string, from: number): Promise<Peer> =>
  startProgram<Peer>('peer-target', [kind, address, String(from), String(seconds)]);

/** A node on a store that is filled before it starts. */
const startFilled = async (address: string, from: number): Promise<Api> => {
  const store = await openStore(address, 'write');
  await fill(store, from, seconds);
  await store.close();
  return startTarget<Api>('api', String(seconds), address, String(from));
};

const answerOf = async ({ url, userId, secret }: Peer, path: string): Promise<unknown> => {
  const headers = signRequest({ method: 'GET', target: path, userId, timestampMs: Date.now() }, secret);
  const { report, reports } = (await (await fetch(`${url}${path}`, { headers })).json()) as Record<string, unknown>; // either of them
  return report ?? reports;
};

/** The role that the peer connects as: processes of the database are named after roles. */
const peerRole = 'fastify';

/** CPU in µs that each connection of a role has used in the database so far, by process. Each has one thread, whose time the kernel counts in ns. */
const cpuOfConnections = ({ folder }: RunningPostgres, role: string): ReadonlyMap<string, number> => {
  const server = readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[0];
  const children = readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim().split(' ');
  const cpu = new Map<string, number>();
  for (const pid of children) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(`postgres: ${role} `)) continue;
      cpu.set(pid, Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000);
    } catch {} // it has ended
  }
  return cpu;
};

/** CPU in µs of a role's connections while `act` runs. */
const measureDatabase = async <T>(database: RunningPostgres, role: string, act: () => Promise<T>) => {
  const before = cpuOfConnections(database, role);
  const result = await act();
  const after = cpuOfConnections(database, role);
  return { result, cpu: [...after].reduce((sum, [pid, cpu]) => sum + cpu - (before.get(pid) ?? 0), 0) };
};

/** CPU of each workload, the database included, and the memory afterwards, for each of the servers by turns. */
const compareReads = async (
  database: RunningPostgres,
  api: Api,
  others: Readonly<Record<string, Peer>>,
  only: readonly string[] | undefined,
): Promise<readonly Measurement[]> => {
  const servers = Object.entries({ 'Sealpost, embedded engine': api, ...others });
  const figures: Measurement[] = [];
  for (const { name, paths, times } of workloadsOf(api)) {
    if (only?.includes(name) === false) continue;
    const expected = await answerOf(api, paths.at(-1) ?? '');
    for (const [, server] of servers) assert.deepEqual(await answerOf(server, paths.at(-1) ?? ''), expected);
    const count = paths.length * times;
    const taken = servers.map((): number[] => []);
    const ofDatabase = servers.map((): number[] => []);
    for (let round = -warmUpRounds; round < rounds; round++)
      for (const [i, [whose, server]] of servers.entries()) {
        const role = whose.startsWith('Fastify') ? peerRole : 'postgres';
        const { result: cpu, cpu: cpuOfDatabase } = await measureDatabase(database, role, () =>
          cpuPerRequest(server, count, cycle(server, paths, times)),
        );
        const part = whose.endsWith('PostgreSQL') ? cpuOfDatabase / count : 0;
        if (round < 0) continue;
        taken[i]?.push(cpu + part);
        ofDatabase[i]?.push(part);
      }
    for (const [i, [whose]] of servers.entries()) {
      const part = median(ofDatabase[i] ?? []);
      const note = part === 0 ? {} : { note: `${part.toFixed(0)} of them the database` };
      figures.push({ name: `${name}: ${whose}`, value: median(taken[i] ?? []), unit: 'µs CPU', ...note });
    }
  }
  for (const [whose, { child }] of servers)
    figures.push({ name: `RssAnon: ${whose}`, value: anonymousMegabytes(child.pid), unit: 'MB' });
  return figures;
};

/** Bytes of disk for a report, with indexes and whatever else is kept. */
const measureDisk = async (database: RunningPostgres): Promise<readonly Measurement[]> => {
  const sql = database.connect();
  const rows = await sql<{ schema: string; bytes: number }[]>`
    SELECT nspname AS schema, sum(pg_total_relation_size(c.oid))::float8 AS bytes FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE nspname IN ('node', 'public') AND c.relkind = 'r' GROUP BY nspname ORDER BY nspname`;
  const count = seconds * benchStreams.length;
  return rows.map(({ schema, bytes }) => ({
    name: `disk of a report: ${schema === 'node' ? 'Sealpost, PostgreSQL' : 'Fastify, PostgreSQL'}`,
    value: bytes / count,
    unit: 'bytes',
  }));
};

const liveRules: RoundRules = { readers: 200, every: 1, request: 'send', rounds: 20, roundMs: 50 };

/** CPU for each message that arrives at a reader, and the memory afterwards. */
const measureLive = async (whose: string, target: LiveTarget): Promise<readonly Measurement[]> => {
  const { child, feedIds } = target;
  const { readers, rounds } = liveRules;
  let cpu = 0;
  await measureDelays(target, {
    ...liveRules,
    onMeasured: (when) => {
      cpu = cpuOfTree(child.pid ?? 0) - (when === 'begun' ? 0 : cpu);
    },
  });
  const note = `${readers} readers of ${feedIds.length} streams`;
  const memory = anonymousMegabytes(child.pid);
  await stopLiveTarget(target);
  return [
    { name: `live message: ${whose}`, value: cpu / (rounds * readers * feedIds.length), unit: 'µs CPU', note },
    { name: `RssAnon, live: ${whose}`, value: memory, unit: 'MB' },
  ];
};

const compareLive = async (): Promise<readonly Measurement[]> => [
  ...(await measureLive('Sealpost, storing included', await startLiveTarget('api'))),
  ...(await measureLive('ws', await startProgram<LiveTarget>('peer-target', ['ws']))),
];

const root = fileURLToPath(new URL('..', import.meta.url));

/** Lines of code below a folder, or of files: neither blank nor only a comment, and none of tests. */
const linesOf = (paths: readonly string[]): number => {
  const files = paths.flatMap((path) =>
    /\.mjs$/.test(path)
      ? [join(root, path)]
      : readdirSync(join(root, path), { recursive: true, encoding: 'utf8' })
          .filter((name) => /\.ts$/.test(name) && !/\.(test|contract|fuzz|bench|fixture)\.ts$/.test(name))
          .map((name) => join(root, path, name)),
  );
  const isCode = (line: string): boolean => !/^\s*($|\/\/|\/\*|\*)/.test(line);
  return files.reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').filter(isCode).length, 0);
};

const countLines = (): readonly Measurement[] => {
  const peer = (...names: readonly string[]) => linesOf(names.map((name) => `bench/peers/${name}.mjs`));
  const line = (whose: string, value: number): Measurement => ({
    name: `lines of code: ${whose}`,
    value,
    unit: 'lines',
  });
  return [
    line('Sealpost, server and protocol', linesOf(['server/src', 'protocol/src'])),
    line(
      'Sealpost, of these HTTP, access and store',
      linesOf(['http', 'access', 'store'].map((part) => `server/src/${part}`)),
    ),
    line('Fastify and PostgreSQL', peer('authenticate', 'fastify-server', 'postgres-reports')),
    line('Fastify and SQLite', peer('authenticate', 'fastify-server', 'sqlite-reports')),
    line('ws', peer('authenticate', 'ws-fanout')),
  ];
};

/** `--only NAME`: these requests alone, without live delivery and lines, as `--reads`. */
export const benchPeers = async (args: readonly string[]): Promise<readonly Measurement[]> => {
  const server = await startPostgres({ durable: true });
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-bench-'));
  const children: Target['child'][] = [];
  const kept = <T extends Target>(target: T): T => {
    children.push(target.child);
    return target;
  };
  try {
    await server.connect().unsafe(`CREATE ROLE ${peerRole} SUPERUSER LOGIN`);
    const api = kept(await startTarget<Api>('api', String(seconds)));
    const others = {
      'Sealpost, PostgreSQL': kept(await startFilled(server.url('node'), api.from)),
      'Fastify, PostgreSQL': kept(
        await startPeer('postgres', server.base.replace('postgres@', `${peerRole}@`), api.from),
      ),
      'Fastify, SQLite': kept(await startPeer('sqlite', join(folder, 'reports.db'), api.from)),
    };
    const only = args.includes('--only') ? args[args.indexOf('--only') + 1]?.split(',') : undefined;
    const reads = await compareReads(server, api, others, only);
    const disk = await measureDisk(server);
    if (args.includes('--reads') || only !== undefined) return [...reads, ...disk];
    return [...reads, ...disk, ...(await compareLive()), ...countLines()];
  } finally {
    for (const child of children) child.kill('SIGTERM');
    await sleep(200);
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
};
