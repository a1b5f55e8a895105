// Schedules of appending and following: nodes on one database, with every fault between them and it. What a node acknowledged is stored, positions
// have one meaning, no follower misses a report, and `latest` never goes back.
import type { FeedId } from '@sealpost/protocol';
import type { Driver } from '../../server/src/store/postgres/connection.ts';
import { type StoredReport, StoreError } from '../../server/src/store/store.ts';
import type { Random } from '../support/random.ts';
import {
  checkPromised,
  checkWindows,
  createLatestWatch,
  createMeanings,
  keyOf,
  readPositions,
} from './append-invariants.ts';
import { type Process, startProcess } from './append-node.ts';
import { type Cluster, createCluster, type Replication } from './database/cluster.ts';
import type { Trace } from './database/server.ts';
import { startTables } from './database/start.ts';
import { createNodeDriver } from './driver.ts';
import { createLatency } from './latency.ts';
import { samples, secondsCount, streams } from './sample-reports.ts';
import { type Action, type Begin, type Outcome, type Protocol, type Scene, Violation } from './schedule.ts';

/** What a planted bug changes; nothing, where the product is tested. */
export type AppendVariant = {
  readonly alter?: (driver: Driver) => Driver;
  readonly replication?: Replication;
  readonly trace?: Trace;
  /** Without faults and long waits, which a comparison with PostgreSQL could not repeat. */
  readonly isCalm?: boolean;
};

export type AppendWorld = {
  readonly cluster: Cluster;
  readonly append: (node: number, batch: readonly StoredReport[]) => void;
  readonly crashNode: (node: number, isNoticed: boolean, backMs: number) => void;
  readonly disturb: (node: number, ratio: number, holdMs: number | undefined) => void;
  readonly later: (ms: number, act: () => void) => void;
};

const nodesMax = 3;
const workMs = 1_500;
/** Some faults come after writes have reached their time limit. */
const lateMs = 9_000;
/** The longest time that a fault has an effect: a write that waits for its time limit, then for the one before it. */
const calmMs = 30_000;
const triesMax = 3;

const pickBatch = (random: Random): readonly StoredReport[] => {
  const kind = random(10);
  const { plain, wide, other } = samples[random(samples.length)] as (typeof samples)[number]; // within bounds
  const from = random(secondsCount);
  if (kind === 0) return wide.slice(from, from + 1);
  if (kind === 1) return other.slice(from, from + 1);
  const count = 1 + random(3);
  const both = kind === 2 ? samples.flatMap((one) => one.plain.slice(from, from + 1)) : [];
  return [...plain.slice(from, from + count), ...both].filter((one, i, all) => all.indexOf(one) === i);
};

const planAppends = (random: Random): Action<AppendWorld>[] =>
  Array.from({ length: 2 + random(5) }, () => {
    const [node, batch] = [random(nodesMax), pickBatch(random)];
    const what = `node ${node} is asked to append ${batch.map(keyOf).join(' ')}`;
    return { atMs: random(workMs), what, act: ({ append }) => append(node, batch) };
  });

const planFault = (random: Random): Action<AppendWorld> => {
  const atMs = random(random(8) === 0 ? lateMs : workMs);
  const node = random(nodesMax);
  const spanMs = [20, 300, 1_500, 7_000][random(4)] as number; // within bounds
  const ms = 1 + random(spanMs);
  switch (random(8)) {
    case 0:
    case 1:
      return {
        atMs,
        what: `connections of node ${node} are cut`,
        act: ({ disturb }) => disturb(node, 1 + random(2), undefined),
      };
    case 2:
      return {
        atMs,
        what: `connections of node ${node} are held up for ${ms} ms`,
        act: ({ disturb }) => disturb(node, 1 + random(2), ms),
      };
    case 3: {
      const isNoticed = random(3) > 0;
      return {
        atMs,
        what: `node ${node} is killed${isNoticed ? '' : ' unnoticed'}`,
        act: ({ crashNode }) => crashNode(node, isNoticed, ms),
      };
    }
    case 4:
      return {
        atMs,
        what: `the database crashes, and is back after ${ms} ms`,
        act: ({ cluster, later }) => {
          cluster.crash();
          later(ms, cluster.restart);
        },
      };
    case 5:
      return { atMs, what: `replication stalls for ${ms} ms`, act: ({ cluster }) => cluster.stall(atMs + ms) };
    default: {
      const isOldAlive = random(2) === 0;
      return {
        atMs,
        what: `the standby is promoted; the old primary ${isOldAlive ? `stays for ${ms} ms` : 'is down'}`,
        act: ({ cluster, later }) => {
          cluster.failOver(isOldAlive);
          later(ms, cluster.retire);
        },
      };
    }
  }
};

/**
 * Faults that together replace history: what waits for the standby becomes visible when the primary restarts, nodes follow it, the standby is promoted
 * without it, and other reports take its positions while a node looks away. Faults by chance do that once in many thousands of schedules.
 */
const planReplaced = (random: Random): readonly Action<AppendWorld>[] => {
  const atMs = 300 + random(workMs);
  const [node, other] = [random(nodesMax), random(nodesMax)];
  const [visibleMs, promotedMs] = [atMs + 20 + random(200), atMs + 300 + random(600)];
  const heldMs = 1 + random(2_000);
  const appendAt = (ms: number): Action<AppendWorld> => {
    const [asked, batch] = [random(nodesMax), pickBatch(random)];
    const what = `node ${asked} is asked to append ${batch.map(keyOf).join(' ')}`;
    return { atMs: ms, what, act: ({ append }) => append(asked, batch) };
  };
  return [
    { atMs, what: 'replication stalls', act: ({ cluster }) => cluster.stall(atMs + lateMs) },
    appendAt(atMs + random(20)),
    {
      atMs: visibleMs,
      what: 'the database restarts',
      act: ({ cluster }) => {
        cluster.crash();
        cluster.restart();
      },
    },
    { atMs: promotedMs, what: 'the standby is promoted', act: ({ cluster }) => cluster.failOver(false) },
    ...[node, other].map((held) => ({
      atMs: promotedMs + random(100),
      what: `connections of node ${held} are held up for ${heldMs} ms`,
      act: ({ disturb }: AppendWorld) => disturb(held, 1, heldMs),
    })),
    appendAt(promotedMs + random(200)),
    appendAt(promotedMs + random(400)),
  ];
};

const plan = (random: Random): readonly Action<AppendWorld>[] => {
  const planned = [
    ...planAppends(random),
    ...Array.from({ length: random(4) }, () => ({ ...planFault(random), isFault: true })),
  ];
  const replaced = random(8) === 0 ? planReplaced(random) : [];
  return [...planned, ...replaced.map((action) => ({ ...action, isFault: true }))];
};

const run = async (
  { executor, random, note }: Scene,
  variant: AppendVariant,
  setup: Random,
  begin: Begin<AppendWorld>,
): Promise<Outcome> => {
  const count = 2 + setup(nodesMax - 1);
  const replication = variant.replication ?? (['single', 'sync', 'sync'] as const)[setup(3)] ?? 'single';
  const latencyMs = createLatency(random, variant.isCalm ? 0 : setup(3));
  const lossPercent = [0, 50, 100][setup(3)] as number; // within bounds
  const dropsNotification = (): boolean => random(100) < lossPercent;
  const cluster = createCluster({
    executor,
    start: startTables(variant.isCalm || setup(2) === 0),
    replication,
    latencyMs,
    trace: variant.trace,
  });
  const meanings = createMeanings();
  const promised = new Map<string, StoredReport>();
  const watches = Array.from({ length: count }, (_, node) => createLatestWatch(node));
  const processes: (Process | undefined)[] = [];
  const tally = { acknowledged: 0, unknown: 0, delivered: 0, failed: 0 };
  let [owners, pending] = [0, 0];
  let violation: Violation | undefined;
  const attempt = (act: () => void): void => {
    try {
      act();
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      violation ??= error;
    }
  };
  const isStrict = (): boolean => !cluster.hasLostVisible();
  const received = (
    node: number,
    from: number,
    next: {
      readonly positions: readonly number[];
      readonly reports: readonly StoredReport[];
      readonly missed: boolean;
    },
  ): void => {
    tally.delivered += next.positions.length;
    if (next.positions.length > 0)
      note(
        `node ${node} delivers ${next.positions.map((at, i) => `${at}=${keyOf(next.reports[i] as StoredReport)}`).join(' ')}`,
      );
    attempt(() => {
      let last = from;
      for (const [i, position] of next.positions.entries()) {
        if (position <= last) throw new Violation('delivered twice', `node ${node}: ${position} after ${last}`);
        if (isStrict() && position !== last + 1)
          throw new Violation('a follower missed a report', `node ${node}: ${position} after ${last}`);
        last = position;
        if (isStrict()) meanings.see(position, keyOf(next.reports[i] as StoredReport)); // one each
      }
      // A server that is no longer the primary is behind: a follower that reads from it is told so, and begins again.
      if (isStrict() && !cluster.hadTwoPrimaries() && next.missed)
        throw new Violation('a follower missed a report', `node ${node}: told so at ${from}`);
    });
  };
  const start = (node: number): void => {
    const owner = owners++;
    const network = createNodeDriver({ executor, cluster, latencyMs, random, dropsNotification }, owner);
    processes[node] = startProcess({
      node,
      owner,
      network,
      executor,
      alter: variant.alter ?? ((driver) => driver),
      opened: () => {
        note(`node ${node} is open`);
        // A new process knows nothing of what was lost, or of what the old primary that it finds does not have.
        if (!isStrict() || cluster.hadTwoPrimaries()) watches[node]?.forget();
      },
      received: (from, next) => received(node, from, next),
    });
  };
  const acknowledge = (node: number, report: StoredReport, outcome: string): void => {
    if (outcome !== 'stored' && outcome !== 'duplicate') return;
    tally.acknowledged += 1;
    promised.set(keyOf(report), report);
    // What a node acknowledged, it shows.
    const shown = processes[node]?.store()?.reports.newestMs(report.feedId);
    if (shown === undefined || shown < report.observationsMs)
      throw new Violation('latest is older than what was acknowledged', `node ${node}: ${shown}`);
  };
  const append = (wanted: number, batch: readonly StoredReport[], tries = 0): void => {
    const node = wanted % count;
    const process = processes[node];
    const store = process?.store();
    const retry = (): void => {
      pending -= 1;
      if (tries < triesMax) later(20 + random(500), () => append(random(count), batch, tries + 1));
    };
    pending += 1;
    if (store === undefined) {
      retry();
      return;
    }
    let isOver = false;
    store.reports.append(batch).then(
      (outcomes) => {
        isOver = true;
        pending -= 1;
        note(`node ${node} answers ${batch.map((one, i) => `${keyOf(one)} ${outcomes[i]}`).join(', ')}`);
        attempt(() => {
          for (const [i, report] of batch.entries()) acknowledge(node, report, outcomes[i] as string); // one each
        });
      },
      (error: unknown) => {
        isOver = true;
        if (!(error instanceof StoreError)) violation ??= new Violation('an append failed unnamed', String(error));
        else if (error.code === 'store_outcome_unknown') tally.unknown += 1;
        else tally.failed += 1;
        note(`node ${node} answers ${String(error)}`);
        retry();
      },
    );
    // A killed node answers no more.
    const watch = (): void => {
      if (isOver) return;
      if (processes[node] === process) {
        later(1_000, watch);
        return;
      }
      isOver = true;
      retry();
    };
    later(1_000, watch);
  };
  const later = (ms: number, act: () => void): void => void executor.after(ms, act);
  const world: AppendWorld = {
    cluster,
    later,
    append,
    crashNode: (wanted, isNoticed, backMs) => {
      const node = wanted % count;
      processes[node]?.network.kill(isNoticed);
      processes[node] = undefined;
      later(backMs, () => processes[node] === undefined && start(node));
    },
    disturb: (wanted, ratio, holdMs) => {
      const network = processes[wanted % count]?.network;
      for (const line of network?.lines() ?? []) {
        if (random(ratio) !== 0) continue;
        if (holdMs === undefined) network?.cut(line);
        else network?.hold(line, executor.nowMs() + holdMs);
      }
    },
  };
  const afterEvent = (): void => {
    if (violation !== undefined) throw violation;
    if (cluster.hasLostVisible() && violation === undefined) checkPromised(cluster.committed(), promised);
    for (const [node, process] of processes.entries()) {
      const store = process?.store();
      if (store === undefined) continue;
      for (const stream of streams)
        (watches[node] as (typeof watches)[number]).see(stream, store.reports.newestMs(stream)); // one each
    }
  };
  const hasConverged = (): boolean => {
    if (executor.nowMs() < lastMs || pending > 0) return false;
    const position = Number(cluster.committed().counters.get('position')?.value);
    return processes.every((one) => one !== undefined && (one.position() ?? -1) >= position && isNewest(one));
  };
  const newestPromised = (stream: FeedId): number =>
    Math.max(0, ...[...promised.values()].map((one) => (one.feedId === stream ? one.observationsMs : 0)));
  const isNewest = ({ store }: Process): boolean =>
    streams.every((stream) => (store()?.reports.newestMs(stream) ?? 0) >= newestPromised(stream));
  for (let node = 0; node < count; node++) start(node);
  const lastMs = begin(world);
  await executor.run(lastMs + 8_000, afterEvent, hasConverged);
  if (!hasConverged()) {
    cluster.restart();
    cluster.retire();
    await executor.run(lastMs + calmMs, afterEvent, hasConverged);
  }
  checkPromised(cluster.committed(), promised);
  checkWindows(cluster.committed());
  const stored = readPositions(cluster.committed());
  if (isStrict()) meanings.compare(stored);
  for (const [node, process] of processes.entries()) {
    if ((process?.position() ?? -1) < stored.length)
      throw new Violation(
        'a follower missed a report',
        `node ${node} is at ${process?.position()} of ${stored.length}`,
      );
    if (process === undefined || !isNewest(process)) throw new Violation('latest is old', `node ${node}`);
  }
  return { ...tally, lost: cluster.hasLostVisible() ? 1 : 0, events: executor.events() };
};

export const appendProtocol: Protocol<AppendWorld, AppendVariant> = { plan, run };
