// Schedules of the rate limit that nodes on one database share: clients that take all they can get, at some or all nodes, while connections, nodes and the
// database fail. Together the nodes exceed the limit by at most a tenth, and grant no less than nine tenths of it.
import { createSharedLimiters, type SpentByTable } from '../../server/src/access/limit-exchange.ts';
import { createLimitSharing } from '../../server/src/access/node-limits.ts';
import { parseAddress } from '../../server/src/store/postgres/address.ts';
import { type Driver, openPool } from '../../server/src/store/postgres/connection.ts';
import { createNodeExchange } from '../../server/src/store/postgres/nodes.ts';
import { tablesOf } from '../../server/src/store/postgres/schema.ts';
import type { Random } from '../support/random.ts';
import { type Cluster, createCluster } from './database/cluster.ts';
import type { Trace } from './database/server.ts';
import { startTables } from './database/start.ts';
import { createNodeDriver, type NodeDriver } from './driver.ts';
import { createLatency } from './latency.ts';
import { type Action, type Begin, type Outcome, type Protocol, type Scene, Violation } from './schedule.ts';

export type LimitsVariant = { readonly alter?: (driver: Driver) => Driver; readonly trace?: Trace };

export type LimitsWorld = {
  readonly cluster: Cluster;
  readonly crashNode: (node: number, backMs: number) => void;
  readonly disturb: (node: number, holdMs: number | undefined) => void;
  readonly later: (ms: number, act: () => void) => void;
};

const nodesMax = 3;
/** Of two nodes: a bucket of each is granted at first, which takes a while to even out; with each further node that long again. */
const lengthMs = 8_000;
const checkedMs = 6_000;
/** Faults end this long before the end: by then every bucket knows of the others again. */
const tailMs = 5_000;
const askEveryMs = 40;
const key = 'latest someone';

const planFault = (random: Random): Action<LimitsWorld> => {
  const node = random(nodesMax);
  const ms = 1 + random([100, 800, 2_000][random(3)] as number); // within bounds
  const atMs = random(lengthMs - tailMs - ms); // it lasts for as long
  const kinds: readonly Action<LimitsWorld>[] = [
    { atMs, what: `connections of node ${node} are cut`, act: ({ disturb }) => disturb(node, undefined) },
    { atMs, what: `connections of node ${node} are held up for ${ms} ms`, act: ({ disturb }) => disturb(node, ms) },
    { atMs, what: `node ${node} is killed, and is back after ${ms} ms`, act: ({ crashNode }) => crashNode(node, ms) },
    {
      atMs,
      what: `the database crashes, and is back after ${ms} ms`,
      act: ({ cluster, later }) => {
        cluster.crash();
        later(ms, cluster.restart);
      },
    },
  ];
  return kinds[random(kinds.length)] as Action<LimitsWorld>; // within bounds
};

const plan = (random: Random): readonly Action<LimitsWorld>[] =>
  Array.from({ length: Math.max(0, random(5) - 2) }, () => ({ ...planFault(random), isFault: true }));

/** A process of a node: its own limiters, and what it takes part in. */
type Process = { readonly ask: () => number };

const address = parseAddress('postgres://sealpost@database/sealpost');

const tokensOf = ({ accounts }: SpentByTable): number => accounts.reduce((sum, [, , tokens]) => sum + tokens, 0);

const startProcess = (
  network: NodeDriver,
  limit: number,
  alter: (driver: Driver) => Driver,
  heard: (tokens: number) => void,
): Process => {
  const pool = openPool({ ...address, driver: alter(network.driver) }, 1, address.readMs, { isFleeting: true });
  const { limiters, drain, receive } = createSharedLimiters();
  createLimitSharing(createNodeExchange(pool.run, tablesOf('sealpost')), () => {})({
    collect: drain,
    receive: (spent) => {
      heard(tokensOf(spent));
      receive(spent);
    },
  });
  return {
    ask: () => {
      let granted = 0;
      while (limiters.accounts.take(key, limit, performance.now()).allowed) granted += 1;
      return granted;
    },
  };
};

const run = async (
  { executor, random, note }: Scene,
  variant: LimitsVariant,
  setup: Random,
  begin: Begin<LimitsWorld>,
): Promise<Outcome> => {
  const count = 2 + setup(nodesMax - 1);
  const limit = [5, 20, 100][setup(3)] as number; // within bounds
  const length = lengthMs * (count - 1);
  const latencyMs = createLatency(random, setup(2) === 0 ? 0 : 3);
  const cluster = createCluster({
    executor,
    start: startTables(false),
    replication: 'single',
    latencyMs,
    trace: variant.trace,
  });
  const networks: NodeDriver[] = [];
  const processes: (Process | undefined)[] = [];
  /** By the running process of each node. */
  const [granted, heard]: [number[], number[]] = [[], []];
  let [total, atTail, owners, isDisturbed] = [0, 0, 0, false];
  const start = (node: number): void => {
    const owner = owners++;
    const network = createNodeDriver({ executor, cluster, latencyMs, random, dropsNotification: () => false }, owner);
    networks[node] = network;
    executor.after(
      random(200),
      () => {
        [granted[node], heard[node]] = [0, 0];
        processes[node] = startProcess(network, limit, variant.alter ?? ((driver) => driver), (tokens) => {
          heard[node] = (heard[node] ?? 0) + tokens;
        });
      },
      { owner },
    );
  };
  const later = (ms: number, act: () => void): void => void executor.after(ms, act);
  const world: LimitsWorld = {
    cluster,
    later,
    crashNode: (wanted, backMs) => {
      const node = wanted % count;
      const killed = networks[node];
      killed?.kill(true);
      processes[node] = undefined;
      later(backMs, () => networks[node] === killed && start(node)); // unless it is back already
    },
    disturb: (wanted, holdMs) => {
      const network = networks[wanted % count];
      for (const line of network?.lines() ?? []) {
        if (holdMs === undefined) network?.cut(line);
        else network?.hold(line, executor.nowMs() + holdMs);
      }
    },
  };
  const rightful = (ms: number): number => limit * (ms / 1_000 + 1);
  const check = (): void => {
    const nowMs = executor.nowMs();
    const now = () => `${total} tokens after ${Math.round(nowMs)} ms, ${limit} a second at ${count} nodes`;
    for (const [node, tokens] of heard.entries())
      if ((tokens ?? 0) > total - (granted[node] ?? 0)) throw new Violation('tokens counted twice', now());
    if (isDisturbed || nowMs < checkedMs * (count - 1)) return;
    if (total > 1.1 * rightful(nowMs) + 1) throw new Violation('limit exceeded', now());
    if (total < 0.9 * rightful(nowMs) - limit - 1) throw new Violation('limit too strict', now());
  };
  const ask = (from: number): void => {
    executor.after(
      askEveryMs,
      () => {
        for (let i = 0; i < count; i++) {
          const node = (from + i) % count;
          const tokens = processes[node]?.ask() ?? 0;
          total += tokens;
          granted[node] = (granted[node] ?? 0) + tokens;
        }
        if (executor.nowMs() < length - tailMs) atTail = total;
        check();
        ask(random(count));
      },
      { isQuiet: true },
    );
  };
  for (let node = 0; node < count; node++) start(node);
  isDisturbed = begin(world) > 0;
  ask(0);
  await executor.run(length, check);
  note(`${total} tokens granted`);
  // While something is down each node may grant the whole limit; afterwards it holds again.
  const tail = total - atTail;
  const exceeds = tail > 1.1 * rightful(tailMs) + 1;
  if (exceeds)
    throw new Violation(
      'limit exceeded',
      `${tail} tokens in the last ${tailMs} ms, ${limit} a second at ${count} nodes`,
    );
  return { tokens: total, events: executor.events() };
};

export const limitsProtocol: Protocol<LimitsWorld, LimitsVariant> = { plan, run };
