// Owns a whole node in one process: write path, read path, private listener, log and metrics, and how it stops without a client
// noticing. Commands say with which settings.
import { openSecretBox } from './access/key.ts';
import { type NodeSettings, openReadPath, openWritePath, type ReadPath, type WritePath } from './app.ts';
import type { Settings } from './config.ts';
import { createIngestHandler } from './ingest/sources/listener.ts';
import { openLog } from './log.ts';
import { createMetrics, renderMetrics } from './metrics.ts';
import { createObserver } from './observe.ts';
import { openOpsListener } from './ops.ts';

export type Node = {
  readonly url: string;
  readonly opsUrl: string;
  readonly write: WritePath;
  readonly reloadTls: () => void;
  /** Drains and closes everything; resolves when nothing is left. */
  readonly stop: (reason: string) => Promise<void>;
};

export type NodeOptions = {
  readonly settings: Settings;
  readonly version: string;
  /** What senders show at POST /ingest; without one the path does not exist. */
  readonly ingestToken: string | undefined;
  /** Where log lines go; standard output when absent. */
  readonly logTo?: { readonly write: (line: string) => void };
};

/** A stream is behind when its newest report is older than this. */
const staleAfterSeconds = 60;
/** Readiness fails when nothing at all has come in for this long. */
const ingestLagMaxMs = 60_000;

/** Opens a node; it answers when this resolves. */
export const openNode = async ({ settings, version, ingestToken, logTo }: NodeOptions): Promise<Node> => {
  const box = openSecretBox(settings);
  const nodeSettings = toNodeSettings(settings);
  const log = openLog({
    level: settings.logLevel,
    nowMs: Date.now,
    slowMs: 1_000,
    complaintsPerSecondMax: 10,
    ...(logTo && { destination: logTo }),
  });
  let write: WritePath | undefined;
  let read: ReadPath | undefined;
  const metrics = createMetrics({
    readings: createReadings(
      () => write,
      () => read,
    ),
    staleAfterSeconds,
  });
  const observe = createObserver([log.observe, metrics.observe]);
  write = await openWritePath(nodeSettings, observe);
  read = await openReadPath(nodeSettings, write.store, write.view, box, observe);
  let stopping: Promise<void> | undefined;
  const [opened, listening] = [write, read];
  const ops = await openOpsListener({
    ...settings.ingestListen,
    checks: {
      draining: () => (stopping === undefined ? undefined : 'this node is shutting down'),
      store: () => checkStore(opened),
      ingest: () => checkLag(opened),
    },
    metrics: async () => renderMetrics(await metrics.values()),
    ...(ingestToken !== undefined && { ingest: createIngestHandler(opened.ingest, ingestToken) }),
    observe,
  });
  observe({ kind: 'started', version, addresses: { api: listening.url, private: ops.url } });
  const stop = async (reason: string): Promise<void> => {
    observe({ kind: 'draining', reason });
    await listening.drain();
    await ops.close();
    await opened.close();
    observe({ kind: 'stopped', clean: true });
    log.close();
  };
  return {
    url: listening.url,
    opsUrl: ops.url,
    write: opened,
    reloadTls: listening.reloadTls,
    stop: (reason) => (stopping ??= stop(reason)),
  };
};

const dayMs = 86_400_000;

/** The settings as the parts of a node take them. */
const toNodeSettings = (settings: Settings): NodeSettings => ({
  store: settings.store,
  listen: settings.listen,
  ...(settings.tlsCert !== undefined &&
    settings.tlsKey !== undefined && { tls: { certFile: settings.tlsCert, keyFile: settings.tlsKey } }),
  api: {
    requestsPerSecond: settings.requestsPerSecond,
    anonymousRequestsPerSecond: settings.anonymousRequestsPerSecond,
    failuresPerSecond: settings.failuresPerSecond,
    trustedProxies: new Set(settings.trustedProxies ?? []),
    feedIdsMax: settings.feedIdsMax,
    retentionDays: settings.retentionDays,
    skewMaxMs: settings.skewMaxMs,
    origins: settings.origins ?? [],
  },
  ingest: {
    retentionMs: settings.retentionDays * dayMs,
    aheadMaxMs: settings.aheadMaxMs,
    linesInFlightMax: settings.linesInFlightMax,
    network: settings.network,
  },
  verifierThreads: settings.verifierThreads,
  retentionBytes: settings.retentionBytes,
  lagMaxMs: settings.lagMaxMs,
  drainMs: settings.drainMs,
});

const createReadings = (write: () => WritePath | undefined, read: () => ReadPath | undefined) => ({
  activeRequests: () => read()?.activeRequests() ?? 0,
  stalenessSeconds: () => (write() === undefined ? [] : stalenessOf(write() as WritePath)), // just looked at
  storeMapBytes: async () => (await write()?.store.reports.stats())?.fileBytes ?? 0,
  // Cleared in the writer's thread, which does not tell how many yet: no value is better than a wrong one.
  storeStaleReaders: () => {
    throw new Error('The number of stale readers is not known.');
  },
});

function* stalenessOf({ store, view }: WritePath): Generator<number> {
  const nowMs = Date.now();
  for (const { feedId, status } of view.current().streams.values()) {
    if (status !== 'live') continue;
    const newest = store.reports.latest(feedId)?.observationsMs;
    yield newest === undefined ? Number.POSITIVE_INFINITY : Math.max(0, nowMs - newest) / 1_000;
  }
}

const checkStore = async ({ store }: WritePath): Promise<string | undefined> => {
  await store.reports.position();
  return undefined;
};

// A node that was just set up, with no report at all, is ready: there is nothing to be late.
const checkLag = ({ store, view }: WritePath): string | undefined => {
  const newest = [...view.current().streams.keys()].map((feedId) => store.reports.latest(feedId)?.observationsMs ?? 0);
  const lagMs = Date.now() - Math.max(0, ...newest);
  if (newest.every((ms) => ms === 0) || lagMs <= ingestLagMaxMs) return undefined;
  return `the newest report is ${Math.round(lagMs / 1_000)} s old`;
};
