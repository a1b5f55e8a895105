// A server with many reports on a core of its own, and a load generator on another one.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { benchStreams, fill } from '../../bench/rekeyed-reports.ts';
import { openStore } from '../../server/src/store/open.ts';
import { addStreams } from '../faults/failover.ts';
import { buildPrograms } from '../faults/programs.ts';
import { ingestToken } from '../formats/senders.ts';
import { createWorld, processesOf, type Server, startServer, type World } from '../support/real-program.ts';
import { allowedCores } from './cores.ts';
import type { LoadPlan, LoadResult } from './generator.ts';

export type LoadedServer = {
  readonly world: World;
  readonly server: Server;
  readonly load: (
    plan: Pick<LoadPlan, 'rate' | 'seconds' | 'connections' | 'opensFirst'> & Partial<Pick<LoadPlan, 'patienceMs'>>,
  ) => Promise<LoadResult>;
  /** Requests per second that it answers at most. */
  readonly measureCapacity: (seconds: number, connections?: number) => Promise<number>;
  readonly memoryPids: () => readonly number[];
  /** Whether both have a core of their own. */
  readonly isPinned: boolean;
  readonly close: () => Promise<void>;
};

/** A user waits for no longer than this for a connection. */
const patienceMs = 2_000;
const capacityConnections = 32;

/** What readers ask for: of ten requests seven for the newest report, one for a moment, one for a page and one for several streams. */
const targetsOf = (now: number, seconds: number): readonly string[] => {
  const at = (i: number): string => benchStreams[i % benchStreams.length] as string; // below the length
  return Array.from({ length: 240 }, (_, i) => {
    const second = now - 5 - ((i * 37) % (seconds - 10)); // each has a report
    if (i % 10 === 7) return `/api/v1/reports?feedID=${at(i)}&timestamp=${second}`;
    if (i % 10 === 8) return `/api/v1/reports/page?feedID=${at(i)}&startTimestamp=${second}&limit=10`;
    if (i % 10 === 9) return `/api/v1/reports/bulk?feedIDs=${benchStreams.slice(0, 5).join(',')}&timestamp=${second}`;
    return `/api/v1/reports/latest?feedID=${at(i)}`;
  });
};

/** Two cores, for the server and the generator; undefined where there is only one. */
const twoCores = (): readonly [string, string] | undefined => {
  const [one, other] = allowedCores();
  return one === undefined || other === undefined ? undefined : [one, other];
};

/** Puts all threads of a process on some of the cores. */
const pin = (pid: number, cores: string): void =>
  void execFileSync('taskset', ['-a', '-c', '-p', cores, String(pid)], { stdio: 'ignore' });

/** Starts a process that has one core from the first moment: a server decides by it how it collects garbage. */
const startOnCore = async <T>(core: string, start: () => Promise<T>): Promise<T> => {
  const before = allowedCores().join(',');
  try {
    pin(process.pid, core);
    return await start();
  } finally {
    pin(process.pid, before);
  }
};

/** Starts both on a store with so many reports. With `pinned`, each on a core of its own. */
export const startLoadedServer = async (
  reports: number,
  pinned: boolean,
  args: readonly string[] = [],
): Promise<LoadedServer> => {
  const world = await createWorld();
  await addStreams(world, benchStreams);
  const seconds = Math.ceil(reports / benchStreams.length);
  const now = Math.floor(Date.now() / 1_000);
  const store = await openStore(world.store, 'write');
  await fill(store, now - seconds, seconds, 40);
  await store.close();
  const programs = await buildPrograms(['tests/load/generator-program.ts']);
  const start = (): Promise<Server> =>
    startServer(world, ['--log-level', 'warn', '--explorer', 'off', ...args], { SEALPOST_INGEST_TOKEN: ingestToken });
  const cores = pinned ? twoCores() : undefined;
  const server = await (cores ? startOnCore(cores[0], start) : start());
  const generator = spawn(process.execPath, [programs.fileOf('generator-program')], {
    cwd: tmpdir(),
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await once(generator, 'message');
  const memoryPids = () => processesOf(server.child);
  if (cores && generator.pid !== undefined) pin(generator.pid, cores[1]);
  const load: LoadedServer['load'] = async (plan) => {
    const told = once(generator, 'message');
    const { port } = server;
    const targets = targetsOf(now, seconds);
    generator.send({ patienceMs, ...plan, port, account: world, targets } satisfies LoadPlan);
    return (await told)[0] as LoadResult; // what the program sends
  };
  return {
    world,
    server,
    load,
    measureCapacity: async (forSeconds, connections = capacityConnections) => {
      const run = { rate: 0, seconds: forSeconds, connections };
      await load(run); // code is compiled, and what is read often is in memory
      const { answers, seconds: took } = await load(run);
      return (answers['200'] ?? 0) / took;
    },
    memoryPids,
    isPinned: cores !== undefined,
    close: async () => {
      generator.disconnect();
      await once(generator, 'exit');
      await server.stop();
      programs.remove();
      world.remove();
    },
  };
};
