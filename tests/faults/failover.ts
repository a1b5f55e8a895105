// A fail-over of the database under two real nodes that take reports in and are read: the primary is killed, its standby takes its
// place, and everything that was acknowledged is asked for again.
import type { FeedId } from '@sealpost/protocol';
import { openStore } from '../../server/src/store/open.ts';
import { createWorld, fetchSigned, type Server, startServer, type World } from '../support/real-program.ts';
import { act, testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { type Acknowledged, startLoad } from './node-load.ts';
import { openPostgresPair } from './postgres-pair.ts';

export type FailoverPlan = {
  /** Under load, the fail-over in the middle. */
  readonly seconds: number;
  readonly writesPerSecond: number;
  readonly readsPerSecond: number;
  /** Is the primary killed, which the network tells everyone, or does it fall silent, which nobody is told? */
  readonly end: 'killed' | 'silent';
  /** From the end of the primary until the standby is told to take its place: whoever decides that needs time. */
  readonly awaySeconds: number;
  /** Is the standby waited for? One that is not is taken away two seconds before the primary ends: the control that must lose. */
  readonly isSynchronous: boolean;
};

const full: FailoverPlan = {
  seconds: 60,
  writesPerSecond: 200,
  readsPerSecond: 300,
  end: 'killed',
  awaySeconds: 0,
  isSynchronous: true,
};

/** How fail-overs at full figures differ, by turns. */
const turns: readonly Partial<FailoverPlan>[] = [
  { end: 'killed', awaySeconds: 0 },
  { end: 'killed', awaySeconds: 3 },
  { end: 'silent', awaySeconds: 3 },
];

/** What fail-overs are run: one that takes a few seconds, or several at full figures. */
export const failoverPlans = (count: number): readonly FailoverPlan[] =>
  count === 1
    ? [{ ...full, seconds: 16, writesPerSecond: 10, readsPerSecond: 15, awaySeconds: 1 }]
    : Array.from({ length: count }, (_, i) => ({ ...full, ...turns[i % turns.length] }));

const token = 'a-token-for-two-nodes';
const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
/** The bounds that an address has unless it names others (D80). */
const [readMs, writeMs] = [1_000, 5_000];
/** After this everything is expected to go well again. */
const settledSeconds = 3;
/** What a machine with more to do than it has cores for may add to any answer. */
const slackMs = 1_000;
const historyMs = readMs + slackMs;
/** A report is looked for by a reading, waits for one before it, and is written. */
const ingestMs = readMs + 2 * writeMs + slackMs;
const boundsMs = {
  latest: slackMs,
  at: historyMs,
  page: historyMs,
  bulk: historyMs,
  ingest: ingestMs,
  livez: slackMs,
  readyz: 2_000 + slackMs,
};

/** One fail-over at a plan's figures, and all that came of it. */
export const runFailover = async (plan: FailoverPlan) => {
  const { report } = await createSignedReports();
  const streams = Array.from({ length: plan.writesPerSecond }, (_, i) => secondStream(i + 1));
  const pair = await openPostgresPair(plan.isSynchronous);
  // Nodes know both servers: a proxy in this process would have to share its turns with the load.
  const world = await createWorld(pair.hostsUrl);
  const nodes: Server[] = [];
  try {
    await addStreams(world, streams);
    for (let i = 0; i < 2; i++)
      nodes.push(await startServer(world, ['--log-level', 'warn'], { SEALPOST_INGEST_TOKEN: token }));
    const { readsPerSecond } = plan;
    const load = await startLoad({ nodes, world, report, streams, readsPerSecond, token, boundsMs });
    await pause(plan.seconds / 2 - 2);
    if (!plan.isSynchronous) await pair.cutOff();
    await pause(2);
    const ended = performance.now();
    if (plan.end === 'killed') await pair.kill();
    else pair.silence();
    await pause(plan.awaySeconds);
    await pair.promote();
    const awayMs = Math.round(performance.now() - ended);
    await pause(settledSeconds);
    load.tally.settle();
    await pause(plan.seconds / 2 - plan.awaySeconds - settledSeconds);
    const longestWithoutMs = await load.stop();
    const { answers, slowestMs, beyondBound, failedOnceSettled } = load.tally;
    const standing = nodes.filter(({ child }) => child.exitCode === null && child.signalCode === null);
    const lost = await Promise.all(standing.map((node) => countLost(node, world, load.acknowledged)));
    return {
      ...load.counts(),
      lost: Math.max(...lost),
      answers,
      awayMs,
      longestWithoutMs,
      slowestMs,
      beyondBound,
      failedOnceSettled,
      nodesEnded: nodes.length - standing.length,
    };
  } finally {
    await Promise.all(nodes.map(({ stop }) => stop()));
    world.remove();
    await pair.close();
  }
};

/** Adds streams to a store, under any nodes. */
export const addStreams = async ({ store }: World, streams: readonly FeedId[]): Promise<void> => {
  const opened = await openStore(store, 'write');
  await opened.admin.update('stream', streams, () => streams.map((feedId) => testStream(feedId)), act);
  await opened.close();
};

const pageMax = 1_000;

/** Acknowledged reports that a node does not give back, byte for byte. */
export const countLost = async ({ url }: Server, world: World, acknowledged: Acknowledged): Promise<number> => {
  let lost = 0;
  for (const [feedId, sent] of acknowledged) {
    const found = new Set<string>();
    for (let from = Math.min(...sent.keys()), more = true; more; ) {
      const target = `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${from}&limit=${pageMax}`;
      const response = await fetchSigned(url, target, world);
      if (response.status !== 200) throw new Error(`${target}: ${response.status} ${await response.text()}`);
      const { reports } = (await response.json()) as {
        reports: { fullReport: string; observationsTimestamp: number }[];
      };
      for (const { fullReport } of reports) found.add(fullReport);
      more = reports.length === pageMax;
      from = (reports.at(-1)?.observationsTimestamp ?? 0) + 1;
    }
    lost += [...sent.values()].filter((fullReport) => !found.has(fullReport)).length;
  }
  return lost;
};
