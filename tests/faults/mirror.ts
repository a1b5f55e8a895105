// A mirror under faults: real programs on both sides and between them, killed with -9 and cut off at random, while the source gets reports.
// At the end both stores are compared byte by byte.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FeedId, formatDate, type Stream } from '@sealpost/protocol';
import { createSimulation, type Simulation } from '@sealpost/simulator';
import { createSecret, createSecretBox } from '../../server/src/access/secrets.ts';
import { openStore } from '../../server/src/store/open.ts';
import type { ReportStore, StoredReport } from '../../server/src/store/store.ts';
import { type CuttingProxy, openCuttingProxy } from '../support/proxies/cutting-proxy.ts';
import { killGroup, type Program, type Server, startCommand, startServer } from '../support/real-program.ts';
import { act } from '../support/running-ingest.ts';

export type MirrorPlan = {
  /** Streams of the simulated network; all of them unless given. */
  readonly streams?: number;
  /** Seconds of reports that the source has when the mirror starts. */
  readonly pastSeconds: number;
  /** How long faults happen and reports come. */
  readonly durationMs: number;
  /** Seconds of reports that come in a second: history at more than its own speed. */
  readonly speed: number;
  /** `kill -9` of the source, the target or the mirror, in turn. */
  readonly kills: number;
  /** Connections cut, then silence for a moment, on either side of the mirror in turn. */
  readonly cuts: number;
  readonly random: () => number;
};

export type MirrorResult = {
  readonly streams: number;
  readonly reports: number;
  readonly kills: Readonly<Record<Side, number>>;
  readonly cuts: number;
  /** Reports of the source that the target does not have, or has with other bytes; reports that only the target has. */
  readonly lost: number;
  readonly altered: number;
  readonly extra: number;
  /** The comparison after one more report was stored at the source alone: must be 1. */
  readonly controlLost: number;
  readonly caughtUpSeconds: number;
};

const sides = ['target', 'source', 'mirror'] as const;
type Side = (typeof sides)[number];

const token = 'a-token-of-the-test';
const silenceMs = 2_000;

/** Runs the plan. The mirror must still run at the end, and must have caught up within two minutes. */
export const runMirrorFaults = async (plan: MirrorPlan): Promise<MirrorResult> => {
  const root = mkdtempSync(join(tmpdir(), 'sealpost-mirror-'));
  try {
    const world = await createWorlds(root, plan);
    const running = await start(world);
    try {
      return await run(plan, world, running);
    } finally {
      for (const program of [running.mirror, running.source, running.target]) killGroup(program);
      await running.sourceProxy.close();
      await running.targetProxy.close();
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
};

type Worlds = {
  readonly root: string;
  readonly simulation: Simulation;
  readonly feedIds: readonly FeedId[];
  readonly source: { readonly folder: string; readonly store: string; readonly keyFile: string };
  readonly target: { readonly folder: string; readonly store: string; readonly keyFile: string };
  readonly access: NodeJS.ProcessEnv;
  /** First second of the source's past. */
  readonly from: number;
};

const createWorlds = async (root: string, plan: MirrorPlan): Promise<Worlds> => {
  const whole = await createSimulation({ seed: 'mirror' });
  const chosen = whole.streams
    .filter(({ stream }) => stream.status === 'live' && !stream.hidden)
    .slice(0, plan.streams);
  const feedIds = chosen.map(({ stream }) => stream.feedId);
  const simulation = await createSimulation({ seed: 'mirror', feedIds });
  const [userId, secret] = [randomUUID(), createSecret()];
  const place = async (name: string) => {
    const key = Buffer.alloc(32, 7);
    const [store, keyFile] = [join(root, name), join(root, `${name}.key`)];
    writeFileSync(keyFile, key.toString('hex'), { mode: 0o600 });
    await register(store, simulation, { userId, sealed: createSecretBox(key).seal(userId, secret) });
    return { folder: root, store, keyFile };
  };
  // At its own speed the source stays at the present; faster, all of it is so far back that the mirror reads pages before it is live.
  const ahead = plan.speed === 1 ? 0 : Math.ceil((plan.durationMs / 1_000) * plan.speed) + 1_200;
  const from = Math.floor(Date.now() / 1_000) - plan.pastSeconds - ahead;
  const access = { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret };
  return { root, simulation, feedIds, source: await place('source'), target: await place('target'), access, from };
};

const register = async (
  address: string,
  { network, streams }: Simulation,
  { userId, sealed }: { readonly userId: string; readonly sealed: string },
): Promise<void> => {
  const createdAt = formatDate(Date.now());
  const catalog = streams.map(({ stream }): Stream => stream);
  const account = {
    userId,
    name: 'mirror',
    createdAt,
    disabledAt: null,
    secrets: [{ id: '1', sealed, createdAt, revokedAt: null }],
    entitlements: ['public'],
    rateLimits: {},
  };
  const store = await openStore(address, 'write');
  const feedIds = catalog.map(({ feedId }) => feedId);
  await store.admin.update('stream', feedIds, () => catalog, act);
  const set = { ...network.signerSet, addedAt: createdAt, retiredAt: null };
  await store.admin.update('signerSet', [set.configDigest], () => [set], act);
  await store.admin.update('account', [userId], () => [account], act);
  await store.close();
};

type Running = {
  source: Server;
  target: Server;
  mirror: Program;
  readonly sourceProxy: CuttingProxy;
  readonly targetProxy: CuttingProxy;
};

const serve = (world: Worlds['source'], network: string): Promise<Server> =>
  startServer(world, ['--network', network, '--log-level', 'error'], { SEALPOST_INGEST_TOKEN: token }, true);

const networkOf = ({ simulation }: Worlds): string => simulation.streams[0]?.stream.networkType ?? '';

const start = async (world: Worlds): Promise<Running> => {
  const [source, target] = await Promise.all([
    serve(world.source, networkOf(world)),
    serve(world.target, networkOf(world)),
  ]);
  const sourceProxy = await openCuttingProxy(source.port);
  const targetProxy = await openCuttingProxy(Number(new URL(target.opsUrl).port));
  const mirror = startMirror(world, sourceProxy, targetProxy);
  return { source, target, mirror, sourceProxy, targetProxy };
};

const startMirror = ({ root, access, from }: Worlds, source: CuttingProxy, target: CuttingProxy): Program =>
  startCommand(
    ['follow', source.url, '--to', target.url, '--from', String(from)],
    root,
    { ...access, SEALPOST_INGEST_TOKEN: token },
    true,
  );

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const run = async (plan: MirrorPlan, world: Worlds, running: Running): Promise<MirrorResult> => {
  const feed = startFeed(plan, world, running);
  const kills = { source: 0, target: 0, mirror: 0 };
  const faults = Array.from({ length: plan.kills + plan.cuts }, (_, i) => ({
    atMs: plan.random() * plan.durationMs,
    act: i < plan.kills ? () => kill(sides[i % 3] as Side, world, running, kills) : () => cut(i, running),
  })).sort((a, b) => a.atMs - b.atMs);
  const startedMs = performance.now();
  for (const { atMs, act: fault } of faults) {
    await sleep(Math.max(0, atMs - (performance.now() - startedMs)));
    await fault();
  }
  await feed.finished;
  const caughtUpSeconds = await waitUntilEqual(world, running);
  running.mirror.child.kill('SIGINT');
  const { code, stderr } = await running.mirror.finished;
  if (code !== 130) throw new Error(`The mirror ended with ${code}: ${stderr}`);
  await Promise.all([running.source.stop(), running.target.stop()]);
  return { streams: world.feedIds.length, kills, cuts: plan.cuts, caughtUpSeconds, ...(await compare(world)) };
};

const kill = async (side: Side, world: Worlds, running: Running, kills: Record<Side, number>): Promise<void> => {
  kills[side] += 1;
  killGroup(running[side]);
  await running[side].finished;
  if (side === 'mirror') running.mirror = startMirror(world, running.sourceProxy, running.targetProxy);
  else {
    const server = await serve(world[side], networkOf(world));
    running[side] = server;
    if (side === 'source') running.sourceProxy.upstreamPort = server.port;
    else running.targetProxy.upstreamPort = Number(new URL(server.opsUrl).port);
  }
};

/** Breaks every connection on one side, and lets nothing through for a while. */
const cut = async (i: number, { sourceProxy, targetProxy }: Running): Promise<void> => {
  const proxy = i % 2 === 0 ? targetProxy : sourceProxy;
  proxy.freeze();
  await sleep(silenceMs);
  proxy.drop('');
  proxy.thaw();
};

/** Delivers reports to the source in order, each until it is acknowledged. */
const startFeed = ({ pastSeconds, durationMs, speed }: MirrorPlan, world: Worlds, running: Running) => {
  const { simulation, from } = world;
  const startedMs = performance.now();
  const deliver = async (): Promise<void> => {
    let second = from;
    const end = from + pastSeconds + Math.ceil((durationMs / 1_000) * speed);
    while (second < end) {
      const due = from + pastSeconds + Math.floor(((performance.now() - startedMs) / 1_000) * speed);
      const lines: string[] = [];
      for (; second < Math.min(due, end) && lines.length < 2_000; second += 1)
        for (const { report } of simulation.deliverAt(second)) lines.push(JSON.stringify(report));
      await sendUntilStored(lines, running);
      await sleep(100);
    }
  };
  const finished = deliver();
  finished.catch(() => {}); // awaited after the faults
  return { finished };
};

const sendUntilStored = async (lines: readonly string[], running: Running): Promise<void> => {
  for (let tries = 0; lines.length > 0; tries += 1) {
    const results = await fetch(`${running.source.opsUrl}/ingest`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: `${lines.join('\n')}\n`,
    })
      .then((response) => response.text())
      .catch(() => ''); // killed meanwhile
    const stored = results.split('\n').filter((line) => /"result":"(stored|duplicate)"/.test(line)).length;
    if (stored === lines.length) return;
    if (tries > 600) throw new Error(`The source does not take its reports: ${results.slice(0, 500)}`);
    await sleep(100);
  }
};

const pageOf = async (reports: ReportStore, feedId: FeedId, start: number): Promise<readonly StoredReport[]> =>
  (await reports.page(feedId, start, 1_000)).reports;

/** Seconds until the target has the newest report of every stream. */
const waitUntilEqual = async (world: Worlds, running: Running): Promise<number> => {
  const startedMs = performance.now();
  for (;;) {
    const [there, here] = await Promise.all([newestOf(world.source.store, world), newestOf(world.target.store, world)]);
    const seconds = (performance.now() - startedMs) / 1_000;
    if (there.join() === here.join()) return Number(seconds.toFixed(1));
    if (seconds > 120) {
      const behind = there.map((at, i) => `${at} ${here[i]}`).filter((pair) => new Set(pair.split(' ')).size > 1);
      throw new Error(`The mirror did not catch up: ${behind.join(', ')}: ${running.mirror.output()}`);
    }
    await sleep(200);
  }
};

const newestOf = async (address: string, { feedIds }: Worlds): Promise<readonly (number | undefined)[]> => {
  const store = await openStore(address, 'read');
  const newest = feedIds.map((feedId) => store.reports.latest(feedId)?.observationsMs);
  await store.close();
  return newest;
};

const compare = async (world: Worlds) => {
  const source = await openStore(world.source.store, 'write');
  const target = await openStore(world.target.store, 'read');
  const count = async () => {
    const found = { reports: 0, lost: 0, altered: 0, extra: 0 };
    for (const feedId of world.feedIds) await compareStream(feedId, source.reports, target.reports, found);
    return found;
  };
  try {
    const found = await count();
    const [feedId] = world.feedIds as [FeedId];
    const [oldest] = (await pageOf(source.reports, feedId, 0)) as [StoredReport];
    const before = oldest.validFromMs - 1_000;
    await source.reports.append([{ ...oldest, validFromMs: before, observationsMs: before }]);
    return { ...found, controlLost: (await count()).lost };
  } finally {
    await source.close();
    await target.close();
  }
};

const compareStream = async (
  feedId: FeedId,
  source: ReportStore,
  target: ReportStore,
  found: { reports: number; lost: number; altered: number; extra: number },
): Promise<void> => {
  const read = async (reports: ReportStore): Promise<Map<number, string>> => {
    const all = new Map<number, string>();
    for (let start = 0; ; ) {
      const page = await pageOf(reports, feedId, start);
      for (const { observationsMs, fullReport } of page)
        all.set(observationsMs, Buffer.from(fullReport).toString('hex'));
      const last = page.at(-1);
      if (last === undefined) return all;
      start = Math.floor(last.observationsMs / 1_000) + 1;
    }
  };
  const [there, here] = [await read(source), await read(target)];
  found.reports += there.size;
  for (const [at, bytes] of there) {
    if (!here.has(at)) found.lost += 1;
    else if (here.get(at) !== bytes) found.altered += 1;
  }
  found.extra += [...here.keys()].filter((at) => !there.has(at)).length;
};
