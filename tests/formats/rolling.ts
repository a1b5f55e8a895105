// Nodes are replaced by another release, one after the other, while reports come in and are read: what was acknowledged is asked for at the end.
import { createClient } from '@sealpost/client';
import type { FeedId } from '@sealpost/protocol';
import { addStreams, countLost } from '../faults/failover.ts';
import { type Load, startLoad } from '../faults/node-load.ts';
import { freePort } from '../support/free-port.ts';
import { createWorld, fetchSigned, runCommand, type Server, startServer, type World } from '../support/real-program.ts';
import { startPostgres } from '../support/running-postgres.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { ingestToken } from './senders.ts';

type Version = 'released' | 'present';

export type RollingPlan = {
  /** Nodes on one PostgreSQL; one node has a store in a folder. */
  readonly nodes: number;
  /** Which node is replaced by what, in order. */
  readonly steps: readonly { readonly node: number; readonly by: Version; readonly args?: readonly string[] }[];
  /** Between two steps. */
  readonly seconds: number;
  readonly streams: number;
  readonly readsPerSecond: number;
};

/** Both nodes upgraded, then one rolled back: in between, and at the end, two releases share a store. */
export const rollingSteps: RollingPlan['steps'] = [
  { node: 0, by: 'present' },
  { node: 1, by: 'present' },
  { node: 1, by: 'released' },
];

const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

/** Far beyond what is needed: what is slow is not what is tested here. */
const anyMs = 60_000;
const boundsMs = { latest: anyMs, at: anyMs, page: anyMs, bulk: anyMs, ingest: anyMs, livez: anyMs, readyz: anyMs };

/** A stream that has lost its connection several times in a row waits for up to 30 s before it tries again. */
const lastReportsSeconds = 60;

/** A program with the SDK that knows all nodes: a stream, and `latest` in a loop. */
const startReader = (urls: readonly string[], { userId, secret }: World, feedIds: readonly FeedId[], from: number) => {
  const client = createClient({ baseUrls: urls, userId, secret, onWarning: () => {} });
  const [ending, failures] = [new AbortController(), [] as string[]];
  const received = new Map<FeedId, Map<number, string>>(feedIds.map((feedId) => [feedId, new Map()]));
  const counts = { reads: 0, outOfOrder: 0 };
  const reading = async (): Promise<void> => {
    for (let i = 0; !ending.signal.aborted; i++) {
      const feedId = feedIds[i % feedIds.length] as FeedId; // never empty
      await client.latest(feedId).catch((error: unknown) => failures.push(String(error)));
      counts.reads += 1;
      await pause(0.02);
    }
  };
  const streaming = async (): Promise<void> => {
    const reports = client.stream(feedIds, { from, signal: ending.signal });
    const newest = new Map<string, number>();
    for await (const { feedID, observationsTimestamp, fullReport } of reports) {
      if (observationsTimestamp <= (newest.get(feedID) ?? 0)) counts.outOfOrder += 1;
      newest.set(feedID, observationsTimestamp);
      received.get(feedID as FeedId)?.set(observationsTimestamp, fullReport); // one of those asked for
    }
  };
  const running: Promise<unknown>[] = [streaming().catch((error: unknown) => failures.push(String(error)))];
  return {
    received,
    failures,
    counts,
    /** Begins to read `latest`: every stream has a report. */
    readLatest: (): void => void running.push(reading()),
    stop: async () => {
      ending.abort();
      await Promise.all(running);
    },
  };
};

/** Requests that an account gets from two nodes at once, for each that its limit allows. */
const measureLimit = async (nodes: readonly Server[], world: World, seconds: number): Promise<number> => {
  const limit = 10;
  const created = await runCommand(
    ['account', 'create', '--name', 'limited', '--entitle', 'public', '--limit', `feeds=${limit}`, '--json'],
    world.folder,
    { SEALPOST_STORE: world.store, SEALPOST_KEY_FILE: world.keyFile },
  );
  const account = JSON.parse(created.stdout) as { userId: string; secret: string };
  const statusOf = async ({ url }: Server) => (await fetchSigned(url, '/api/v1/feeds', account)).status;
  for (const node of nodes) while ((await statusOf(node)) === 401) await pause(0.1);
  const began = performance.now();
  const counts = await Promise.all(
    nodes.map(async (node) => {
      let allowed = 0;
      while (performance.now() - began < seconds * 1_000) if ((await statusOf(node)) === 200) allowed += 1;
      return allowed;
    }),
  );
  const rightful = limit * (1 + (performance.now() - began) / 1_000);
  return counts.reduce((sum, count) => sum + count) / rightful;
};

/** Replaces nodes as planned; `released` is the command of the other release. At the end one report is lost on purpose: the control. */
export const runRolling = async (released: string, plan: RollingPlan) => {
  const { report } = await createSignedReports();
  const streams = Array.from({ length: plan.streams }, (_, i) => secondStream(i + 1));
  const postgres = plan.nodes > 1 ? await startPostgres() : undefined;
  const address = postgres?.url('rolling');
  if (address !== undefined)
    await runCommand(['store', 'migrate'], '/', { SEALPOST_STORE: address, HOME: '/nonexistent' }, released);
  const world = await createWorld(address);
  const ports = await Promise.all(Array.from({ length: plan.nodes }, () => freePort()));
  const start = (port: number, by: Version, args: readonly string[] = []): Promise<Server> =>
    startServer(
      { ...world, ...(by === 'released' && { command: released }) },
      ['--log-level', 'warn', '--explorer', 'off', '--listen', `127.0.0.1:${port}`, ...args],
      { SEALPOST_INGEST_TOKEN: ingestToken },
    );
  const nodes: Server[] = [];
  const codes: (number | null)[] = [];
  try {
    await addStreams(world, streams);
    for (const port of ports) nodes.push(await start(port, 'released'));
    const from = Math.floor(Date.now() / 1_000);
    const { readsPerSecond } = plan;
    const reader = startReader(
      nodes.map(({ url }) => url),
      world,
      streams,
      from,
    ); // before the load: it has to get all of it
    const load = await startLoad({ nodes, world, report, streams, readsPerSecond, token: ingestToken, boundsMs });
    reader.readLatest();
    await pause(plan.seconds);
    for (const { node, by, args } of plan.steps) {
      const { code } = await (nodes[node] as Server).stop(); // as planned
      codes.push(code);
      nodes[node] = await start(ports[node] as number, by, args); // one each
      await pause(plan.seconds);
    }
    await load.stop();
    const limitShare = plan.nodes > 1 ? await measureLimit(nodes, world, plan.seconds * 2) : 0;
    const missing = () => countMissing(load, reader.received, from);
    for (let i = 0; missing() > 0 && i < lastReportsSeconds * 20; i++) await pause(0.05);
    await reader.stop();
    const lost = await Promise.all(nodes.map((node) => countLost(node, world, load.acknowledged)));
    const { answers } = load.tally;
    const notStreamed = missing();
    return {
      ...load.counts(),
      lost: Math.max(...lost),
      notStreamed,
      controlNotStreamed: countWithoutOne(load, reader.received, from) - notStreamed,
      ...reader.counts,
      failures: reader.failures,
      statuses: [...new Set(['latest', 'at', 'page', 'bulk'].flatMap((kind) => Object.keys(answers[kind] ?? {})))],
      codes,
      limitShare,
      controlLost:
        postgres === undefined ? undefined : await loseOne(postgres.connect(), nodes[0] as Server, world, load),
    };
  } finally {
    await Promise.all(nodes.map(({ stop }) => stop()));
    world.remove();
    await postgres?.stop();
  }
};

type Sent = ReadonlyMap<FeedId, ReadonlyMap<number, string>>;

/**
 * Acknowledged reports from `from` on that the live stream did not deliver, or with other bytes. It delivers in order of observation: a report that was
 * sent again, and may have been stored after the next one that was delivered, is not among them.
 */
const countMissing = ({ acknowledged, isStoredBefore }: Load, received: Sent, from: number): number =>
  [...acknowledged].reduce((sum, [feedId, reports]) => {
    const came = received.get(feedId) ?? new Map<number, string>();
    const seconds = [...came.keys()].sort((a, b) => a - b);
    const missing = [...reports].filter(([second, fullReport]) => {
      if (came.has(second)) return came.get(second) !== fullReport;
      const next = seconds.find((other) => other > second);
      return second >= from && (next === undefined || isStoredBefore(feedId, second, next));
    });
    return sum + missing.length;
  }, 0);

/** Counts again without a report that was delivered and that comes before another one on any stream. */
const countWithoutOne = (load: Load, received: Sent, from: number): number => {
  const [feedId, came] = [...received].find(([, reports]) => reports.size > 2) ?? [];
  if (feedId === undefined || came === undefined) return 0;
  const seconds = [...came.keys()].filter((second) => second >= from).sort((a, b) => a - b);
  const one = seconds.find((second, i) => load.isStoredBefore(feedId, second, seconds[i + 1] ?? second));
  const others = new Map([...came].filter(([second]) => second !== one));
  return countMissing(load, new Map([...received, [feedId, others]]), from);
};

/** Removes one report behind the back of the nodes, and counts again. */
const loseOne = async (
  database: ReturnType<Awaited<ReturnType<typeof startPostgres>>['connect']>,
  node: Server,
  world: World,
  { acknowledged }: { readonly acknowledged: Sent },
): Promise<number> => {
  await database`DELETE FROM rolling.reports WHERE (feed_id, observations) IN
    (SELECT feed_id, max(observations) - 1000 FROM rolling.reports GROUP BY feed_id ORDER BY feed_id LIMIT 1)`;
  return countLost(node, world, acknowledged);
};
