// A whole deployment under load while everything happens to it that happens in a week, one event after the other in a seeded order; then what was
// acknowledged is asked for, and failures are judged.
import { type FeedId, toSignerSetsJson } from '@sealpost/protocol';
import { openStore } from '../../server/src/store/open.ts';
import { countLost } from '../faults/failover.ts';
import { type Acknowledged, type Load, startLoad } from '../faults/node-load.ts';
import { buildPrograms } from '../faults/programs.ts';
import { ingestToken } from '../formats/senders.ts';
import type { Random } from '../support/random.ts';
import { fetchSigned } from '../support/real-program.ts';
import { createSignedReports, type SignedReports, secondStream } from '../support/signed-reports.ts';
import { describeAnswer } from './answers.ts';
import { type Clients, type ClientsPlan, startClients, type Told } from './clients.ts';
import { countUndelivered } from './coverage.ts';
import { type Deployment, openDeployment } from './deployment.ts';
import { type EventName, type Scene, type SoakEvent, soakEvents } from './events.ts';
import { type AllowedRow, type Allowing, type Failure, judgeFailures } from './failures.ts';
import { copyOf, countMissing, newestOf } from './ledger.ts';

export type SoakPlan = {
  readonly seconds: number;
  readonly streams: number;
  readonly readsPerSecond: number;
  readonly clients: ClientsPlan['counts'];
  readonly pauseMs: number;
  /** Those that happen, each once before any happens again. */
  readonly events: readonly EventName[];
  /** After each event, on average. */
  readonly calmMs: number;
  readonly random: Random;
  readonly haproxy: string;
};

export type SoakResult = {
  readonly load: ReturnType<Load['counts']>;
  readonly told: Told;
  readonly events: Readonly<Record<string, number>>;
  readonly counted: Readonly<Record<string, number>>;
  /** Acknowledged reports that a node, or the second deployment, does not give back. */
  readonly lost: number;
  readonly lostAtSecond: number;
  /** Reports that left the retention and are still served, and those within it that are not. */
  readonly servedTooLong: number;
  readonly deletedTooEarly: number;
  /** Reports that readers of live streams did not get, though they read what they missed. */
  readonly undelivered: number;
  /** Failures of clients that the documents do not allow, and those that they do. */
  readonly forbidden: readonly string[];
  readonly allowed: readonly AllowedRow[];
  readonly ended: readonly string[];
};

const [agingStream, ballastStream] = [secondStream(900), secondStream(901)];
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const anyMs = 120_000;
const boundsMs = { latest: anyMs, at: anyMs, page: anyMs, bulk: anyMs, ingest: anyMs, livez: anyMs, readyz: anyMs };

/** The networks that sign, one after the other. */
const createNetworks = async () => {
  let current = await createSignedReports(); // which the world has registered
  let count = 0;
  const digestOf = ({ signerSets }: SignedReports): string => [...signerSets.keys()][0] ?? '';
  return {
    report: ((...args) => current.report(...args)) satisfies SignedReports['report'],
    renewSigners: async () => {
      count += 1;
      const next = await createSignedReports(`soak ${count}`);
      const use = (): string => {
        const old = digestOf(current);
        current = next;
        return old;
      };
      return { file: toSignerSetsJson(next.signerSets), use };
    },
  };
};

const createBallast = (): Scene['ballast'] => {
  let next = Math.floor(Date.now() / 1_000) - 80_000;
  const take = (count: number): readonly number[] => Array.from({ length: count }, () => next++);
  return { feedId: ballastStream, take };
};

/** An event that was. */
type Occurrence = { readonly name: EventName; readonly fromMs: number; readonly toMs: number };

/** Every event once in a random order, then again in another one. */
const nextEvents = function* (names: readonly EventName[], random: Random): Generator<EventName> {
  for (;;) {
    const left = [...names];
    while (left.length > 0) yield left.splice(random(left.length), 1)[0] as EventName; // not empty
  }
};

/** Runs one event after the other until the time is up. */
const runEvents = async (plan: SoakPlan, scene: Scene): Promise<readonly Occurrence[]> => {
  const occurred: Occurrence[] = [];
  const end = Date.now() + plan.seconds * 1_000;
  const possible = plan.events.filter((name) => {
    const { isPossible }: SoakEvent = soakEvents[name];
    return isPossible?.(scene.deployment) ?? true;
  });
  for (const name of nextEvents(possible, plan.random)) {
    const { act }: SoakEvent = soakEvents[name];
    await pause(plan.calmMs * (0.5 + plan.random(1_000) / 1_000));
    if (Date.now() >= end) return occurred;
    const fromMs = Date.now();
    await act(scene);
    occurred.push({ name, fromMs, toMs: Date.now() });
  }
  return occurred;
};

/** Seconds after the end of the retention, which moves while it is looked at. */
const edgeSeconds = 120;

/** What has left the retention is out of bounds; all within it is there. */
const checkRetention = async ({ aging, balancer, steady }: Deployment) => {
  const oldest = Math.floor(Date.now() / 1_000) - 86_400;
  const get = (target: string): Promise<Response> => fetchSigned(balancer.url, `/api/v1/reports${target}`, steady);
  const expired = aging.seconds.filter((second) => second < oldest).slice(-5);
  const statuses = await Promise.all(
    expired.map(async (second) => (await get(`?feedID=${aging.feedId}&timestamp=${second}`)).status),
  );
  const served = new Set<number>();
  for (let from = oldest + edgeSeconds, more = true; more; ) {
    const response = await get(`/page?feedID=${aging.feedId}&startTimestamp=${from}&limit=1000`);
    const { reports } = (await response.json()) as { reports: { observationsTimestamp: number }[] };
    for (const { observationsTimestamp } of reports) served.add(observationsTimestamp);
    more = reports.length === 1_000;
    from = (reports.at(-1)?.observationsTimestamp ?? 0) + 1;
  }
  return {
    servedTooLong: statuses.filter((status) => status !== 400).length,
    deletedTooEarly: aging.seconds.filter((second) => second >= oldest + edgeSeconds && !served.has(second)).length,
  };
};

/** What the second deployment lacks once it has caught up. */
const checkSecond = async ({ second }: Deployment, acknowledged: Acknowledged): Promise<number> => {
  let lost = Number.POSITIVE_INFINITY;
  for (let left = 60; lost > 0 && left > 0; left--) {
    const store = await openStore(second.store, 'read');
    lost = await countMissing(store.reports, acknowledged);
    await store.close();
    if (lost > 0) await pause(1_000);
  }
  return lost;
};

const countEvents = (occurred: readonly Occurrence[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { name } of occurred) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};

type Found = {
  readonly startedMs: number;
  readonly deployment: Deployment;
  readonly load: Load;
  readonly told: Told;
  /** Of what was sent to nodes directly. */
  readonly direct: readonly Failure[];
  readonly occurred: readonly Occurrence[];
  readonly counted: Readonly<Record<string, number>>;
};

const judge = async (found: Found): Promise<SoakResult> => {
  const { deployment, load, told, direct, occurred, counted } = found;
  const allowing = occurred.map(({ name, fromMs, toMs }): Allowing => {
    const { allows = [] }: SoakEvent = soakEvents[name];
    return { name, fromMs, toMs, allows };
  });
  const { forbidden, allowed } = judgeFailures([...told.failures, ...direct], allowing);
  const lastEvent = (atMs: number): string => {
    const event = occurred.findLast(({ fromMs }) => fromMs <= atMs);
    const seconds = ((atMs - (event?.fromMs ?? found.startedMs)) / 1_000).toFixed(1);
    return `${seconds} s after the ${event === undefined ? 'start' : `begin of ${event.name}`}`;
  };
  const lost: number[] = [];
  for (const node of deployment.nodes)
    lost.push(await countLost(node, { ...deployment.world, ...deployment.steady }, load.acknowledged));
  const programs = [...deployment.nodes, deployment.second.server, deployment.second.mirror];
  return {
    load: load.counts(),
    told,
    events: countEvents(occurred),
    counted,
    lost: Math.max(...lost),
    lostAtSecond: await checkSecond(deployment, load.acknowledged),
    ...(await checkRetention(deployment)),
    undelivered: told.readers.reduce(
      (sum, { feedIds, got }) => sum + countUndelivered(feedIds, got, load.acknowledged),
      0,
    ),
    forbidden: forbidden.map(({ kind, text, atMs }) => `${kind}: ${text} (${lastEvent(atMs)})`),
    allowed,
    ended: programs.filter(({ child }) => child.exitCode !== null).map(({ output }) => output().slice(-2_000)),
  };
};

/** Starts everything, lets it happen, and judges it. */
export const runSoak = async (plan: SoakPlan): Promise<SoakResult> => {
  const networks = await createNetworks();
  const streams: readonly FeedId[] = Array.from({ length: plan.streams }, (_, i) => secondStream(i + 1));
  const programs = await buildPrograms(['tests/soak/client-program.ts']);
  const { report } = networks;
  const deployment = await openDeployment({ ...plan, streams, agingStream, ballastStream, report });
  try {
    return await soak(plan, deployment, networks, streams, programs);
  } finally {
    programs.remove();
    await deployment.close();
  }
};

const soak = async (
  plan: SoakPlan,
  deployment: Deployment,
  networks: Awaited<ReturnType<typeof createNetworks>>,
  streams: readonly FeedId[],
  programs: Awaited<ReturnType<typeof buildPrograms>>,
): Promise<SoakResult> => {
  const { nodes, world } = deployment;
  const { report, renewSigners } = networks;
  const direct: Failure[] = [];
  const startedMs = Date.now();
  const load = await startLoad({
    nodes,
    world,
    report,
    streams,
    readsPerSecond: plan.readsPerSecond,
    token: ingestToken,
    boundsMs,
    inOrder: true,
    onFailure: (kind, node, { status, body }) => {
      const text = `node ${node + 1}: ${describeAnswer(status, body)}`;
      direct.push({ atMs: Date.now(), kind: `direct ${kind}`, text });
    },
  });
  await checkSecond(deployment, copyOf(load.acknowledged)); // its clients find a report of every stream
  const clients = await beginClients(plan, deployment, streams, programs);
  const counted: Record<string, number> = {};
  try {
    const occurred = await runEvents(plan, {
      deployment,
      clients,
      acknowledged: load.acknowledged,
      renewSigners,
      report,
      stream: streams[0] as FeedId, // there is one
      ballast: createBallast(),
      count: (name, value) => {
        counted[name] = (counted[name] ?? 0) + value;
      },
    });
    await load.stop();
    const told = await clients.stop(newestOf(load.acknowledged));
    return await judge({ startedMs, deployment, load, told, direct, occurred, counted });
  } finally {
    clients.child.kill('SIGKILL');
    await load.stop();
  }
};

const beginClients = (
  { clients: counts, pauseMs }: SoakPlan,
  { balancer, second, steady, world: { userId, secret } }: Deployment,
  feedIds: readonly FeedId[],
  programs: Awaited<ReturnType<typeof buildPrograms>>,
): Promise<Clients> =>
  startClients(
    programs,
    { url: balancer.url, tlsUrl: second.server.url, steady, feedIds, counts, pauseMs },
    { userId, secret },
  );
