// Runs a whole node: write path, read path in this process or in workers, private listener, log and metrics. It stops without failed requests.
import { openSecretBox } from './access/key.ts';
import { announceKeys } from './access/key-announcement.ts';
import { createSharedLimiters } from './access/limit-exchange.ts';
import { createMissingKeys } from './access/missing-keys.ts';
import { createLimitSharing, type ShareLimits } from './access/node-limits.ts';
import type { SecretBox } from './access/secrets.ts';
import {
  type LiveView,
  type NodeSettings,
  openReadPath,
  openWritePath,
  type ReadExtras,
  type ReadPath,
  type WritePath,
} from './app.ts';
import { keepCertificate, openWorkers } from './cluster/primary.ts';
import type { Settings } from './config/config.ts';
import { type MirrorRequest, resumeMirror } from './ingest/mirror.ts';
import { createIngestHandler } from './ingest/sources/listener.ts';
import { type Log, openLog } from './observe/log.ts';
import {
  createMetrics,
  type MetricValues,
  type Readings,
  readyMaxMs,
  renderMetrics,
  sumMetrics,
} from './observe/metrics.ts';
import { createObserver, type Listener } from './observe/observe.ts';
import { type TroubleWatch, watchFollowing, watchTroubles } from './observe/troubles.ts';
import { findReasons, type OpsListener, type OpsOptions, openOpsListener } from './ops/ops.ts';
import { closeFailedStart, type StartWatch, unwatchedStart } from './runtime/start-watch.ts';
import { describeCertificate, type TlsPair } from './runtime/tls-files.ts';
import type { AdminView } from './store/admin-snapshot.ts';
import { lateReason, readFreshness, type Silence, silenceOf } from './store/freshness.ts';
import { limitsOf } from './store/retention.ts';
import type { Damage, Store, WritingPart } from './store/store.ts';

export type Node = {
  readonly url: string;
  readonly opsUrl: string;
  /** Where /ingest is, if not at `opsUrl`. */
  readonly ingestUrl: string | undefined;
  readonly write: WritePath;
  /** Undefined with workers. */
  readonly live: LiveView | undefined;
  readonly reloadTls: () => void;
  /** Drains and closes everything; resolves when nothing is left. */
  readonly stop: (reason: string) => Promise<void>;
};

export type NodeOptions = ReadExtras & {
  readonly settings: Settings;
  readonly version: string;
  /** The token of POST /ingest; without one the path does not exist. */
  readonly ingestToken: string | undefined;
  /** Where log lines go; standard output when absent. */
  readonly logTo?: { readonly write: (line: string) => void };
  /** Says what the start waits for. */
  readonly starting?: StartWatch;
};

/** How long uploads on the private listener may take when the public one used all of `drainMs`. */
const lastUploadMs = 200;

/** Opens a node; it serves when this resolves. If a part fails to open, it closes those before it. */
export const openNode = async (options: NodeOptions): Promise<Node> => {
  const { settings, version, logTo, starting = unwatchedStart, sandbox } = options;
  const reportNowMs = sandbox?.reportNowMs ?? Date.now;
  const ofProcess = sandbox?.isEmbedded !== true;
  const log = openLog({
    level: settings.logLevel,
    nowMs: Date.now,
    slowMs: 1_000,
    complaintsPerSecondMax: 10,
    ...(logTo && { destination: logTo }),
    onLost: () => metrics.observe({ kind: 'warning', code: 'log_lines_dropped', message: 'Log lines were dropped.' }),
  });
  const parts: OpenedParts = {};
  let stopping: Promise<void> | undefined;
  const following = watchFollowing();
  const troubles = watchTroubles();
  const metrics = createMetrics({
    readings: createReadings(parts, reportNowMs),
    ofProcess,
  });
  const observe = createObserver([log.observe, metrics.observe, following.observe, troubles.observe]);
  const closing = new AbortController();
  const close = async (): Promise<void> => {
    const deadlineMs = performance.now() + settings.drainMs;
    await parts.front?.drain();
    closing.abort(); // a mirror's request does not end by itself
    await parts.ops?.close(Math.max(lastUploadMs, deadlineMs - performance.now()));
    await parts.write?.close();
  };
  const open = async (): Promise<Node> => {
    const box = openSecretBox(settings);
    const nodeSettings: NodeSettings = { ...withoutSecrets(settings), version };
    const opened = announced(await openWritePath(nodeSettings, observe, starting, sandbox), box, settings, observe);
    parts.write = opened;
    const looks = [troubles.describe, createMissingKeys(opened.view, box), opened.waitingRetention];
    const listening = await openFront(nodeSettings, opened, box, observe, log, starting, options);
    parts.front = listening;
    const checks = {
      draining: () => (stopping === undefined ? undefined : 'this node is shutting down'),
      ...checksOf(opened, listening, following, reportNowMs),
    };
    parts.checks = checks;
    const opsOptions = {
      ...opsOptionsOf(options, opened, observe, closing.signal),
      checks,
      degraded: () => [...describeDegradation(opened.store, listening, following), ...looks.flatMap((look) => look())],
      metrics: async () => renderMetrics(await sumMetrics([await metrics.values(), ...(await listening.values())])),
      observe,
    };
    const listeners = await starting.part('the private listener', () => openPrivate(settings, opsOptions));
    parts.ops = listeners;
    const { url: opsUrl, ingestUrl } = listeners;
    const addresses = { api: listening.url, private: opsUrl, ...(ingestUrl && { ingest: ingestUrl }) };
    observe({ kind: 'started', version, addresses });
    const stop = (reason: string) => (ofProcess ? stopLogged(reason, close, observe, log) : close().then(log.close));
    const { url, live } = listening;
    const reloadTls = (): void => {
      listening.reloadTls();
      listeners.reloadTls();
    };
    return { url, opsUrl, ingestUrl, write: opened, live, reloadTls, stop: (reason) => (stopping ??= stop(reason)) };
  };
  try {
    return await open();
  } catch (error) {
    await closeFailedStart(close);
    await log.close();
    throw error;
  }
};

/** Closes everything, and logs how it ended, also when the process exits before: at a second signal, or because a part failed to close. */
const stopLogged = async (reason: string, close: () => Promise<void>, observe: Listener, log: Log): Promise<void> => {
  const cutShort = (): void => {
    observe({ kind: 'stopped', clean: false });
    log.flushSync();
  };
  observe({ kind: 'draining', reason });
  process.once('exit', cutShort);
  await close();
  process.off('exit', cutShort);
  observe({ kind: 'stopped', clean: true });
  await log.close();
};

/** Secrets stay in this process; the other settings also go to workers. */
const withoutSecrets = ({ key, ingestToken, ...others }: Settings) => others;

/** A write path whose node announces its keys and its retention, for as long as it is open. */
const announced = (opened: WritePath, box: SecretBox, settings: Settings, observe: Listener): WritePath => {
  const onTrouble = (error: unknown) => observe(notAnnounced(error));
  const stop = announceKeys(opened.store.keyHolders, box, onTrouble, limitsOf(settings));
  return {
    ...opened,
    close: async () => {
      await stop();
      await opened.close();
    },
  };
};

const notAnnounced = (error: unknown) =>
  ({
    kind: 'warning',
    code: 'keys_not_announced',
    message:
      'This node could not announce its keys and its retention. `secret rewrap` may not wait for it, and other nodes may apply a shorter retention after a day.',
    error,
  }) as const;

const checksOf = (opened: WritePath, front: Front, following: TroubleWatch, reportNowMs: () => number) => ({
  store: () => checkStore(opened, front, following),
  writing: () => describeStops(opened.store, ['reports'])[0],
  ingest: () => checkLag(opened, reportNowMs()),
  workers: front.check,
});

/** What of a node is open so far. */
type OpenedParts = {
  write?: WritePath;
  front?: Front;
  ops?: PrivateListeners;
  checks?: OpsOptions['checks'];
};

type PrivateListeners = Pick<OpsListener, 'url' | 'close'> & {
  readonly ingestUrl: string | undefined;
  readonly reloadTls: () => void;
  readonly certificateEndMs: () => number | undefined;
};

/** The private listener, and the one of /ingest where it has its own address. If the second fails to open, it closes the first. */
const openPrivate = async (settings: Settings, { ingest, ...options }: OpsOptions): Promise<PrivateListeners> => {
  const { opsTlsCert: tlsCert, opsTlsKey: tlsKey, ingestListen } = settings;
  const certificate = keepCertificate({ tlsCert, tlsKey }, options.observe);
  const shared = { ...options, tls: certificate.inUse() };
  const ops = await openOpsListener(ingestListen || ingest === undefined ? shared : { ...shared, ingest });
  const second = { ...shared, ...ingestListen, ...(ingest && { ingest }), isForIngest: true };
  const own =
    ingestListen && (await openOpsListener(second).catch((error) => ops.close(0).then(() => Promise.reject(error))));
  const all = own === undefined ? [ops] : [ops, own];
  return {
    url: ops.url,
    ingestUrl: own?.url,
    close: async (ms) => void (await Promise.all(all.map((one) => one.close(ms)))),
    certificateEndMs: certificate.endMs,
    reloadTls: () => {
      if (certificate.inUse() === undefined || !certificate.renew()) return;
      const renewed = certificate.inUse() as TlsPair; // checked above
      for (const one of all) one.useTls(renewed);
      const shown = describeCertificate(renewed.cert);
      options.observe({ kind: 'reloaded', settings: ['opsTlsCert', 'opsTlsKey'], certificate: shown });
    },
  };
};

/** Where the private listener is, and what answers /ingest and /sandbox there. */
const opsOptionsOf = (
  { settings: { opsListen, opsHosts, retentionDays }, ingestToken, sandbox }: NodeOptions,
  { store, ingest }: WritePath,
  observe: Listener,
  stopping: AbortSignal,
) => {
  const message = 'A sender of reports presented a wrong ingest token.';
  const rejected = (address: string) => observe({ kind: 'warning', code: 'ingest_token_rejected', message, address });
  const nowMs = sandbox?.reportNowMs ?? Date.now;
  const resume = (request: MirrorRequest) =>
    resumeMirror({ store, nowMs: nowMs(), retentionDays, actor: 'private listener' }, request);
  return {
    ...opsListen,
    keepsProcess: sandbox?.isEmbedded !== true,
    hosts: opsHosts,
    ...(ingestToken !== undefined && {
      ingest: createIngestHandler({ ingest, token: ingestToken, rejected, resume, stopping }),
    }),
    ...(sandbox?.control && { sandbox: sandbox.control }),
  };
};

/** The public listener, wherever it runs. */
type Front = {
  readonly url: string;
  readonly live: LiveView | undefined;
  readonly activeRequests: () => number;
  readonly check: () => string | undefined;
  /** What is wrong with other processes that still answer. */
  readonly degraded: () => readonly string[];
  /** Damaged records that other processes found. */
  readonly damage: () => readonly Damage[];
  /** Metrics of other processes. */
  readonly values: () => Promise<readonly (readonly MetricValues[])[]>;
  readonly drain: () => Promise<void>;
  readonly certificateEndMs: () => number | undefined;
  readonly reloadTls: () => void;
};

const openFront = async (
  settings: NodeSettings,
  { store, view }: WritePath,
  box: SecretBox,
  observe: Listener,
  log: Log,
  starting: StartWatch,
  { settings: { key }, ...extras }: NodeOptions,
): Promise<Front> => {
  const shareLimits =
    store.nodes &&
    createLimitSharing(store.nodes, (message, error) =>
      observe({ kind: 'warning', code: 'limits_not_shared', message, error }),
    );
  if (settings.workers === 0) {
    const read = await starting.part('the API to listen', () =>
      openSingle(settings, store, view, box, observe, shareLimits, extras),
    );
    return { ...read, check: () => undefined, degraded: () => [], damage: () => [], values: async () => [] };
  }
  const workers = await openWorkers({
    settings,
    key,
    observe,
    shareLimits,
    writeLog: log.pass,
    starting,
    onAppended: store.reports.onAppended,
  });
  return { ...workers, live: undefined, activeRequests: () => 0 };
};

/** The read path in this process. */
const openSingle = async (
  settings: NodeSettings,
  store: Store,
  view: AdminView,
  box: SecretBox,
  observe: Listener,
  shareLimits: ShareLimits | undefined,
  extras: ReadExtras,
): Promise<ReadPath> => {
  if (shareLimits === undefined) return openReadPath(settings, store, view, box, observe, undefined, extras);
  const { limiters, drain, receive } = createSharedLimiters();
  const read = await openReadPath(settings, store, view, box, observe, limiters, extras);
  const stopSharing = shareLimits({ collect: drain, receive });
  return {
    ...read,
    drain: async () => {
      await read.drain();
      await stopSharing();
    },
  };
};

const createReadings = (parts: OpenedParts, reportNowMs: () => number): Readings => ({
  activeRequests: () => parts.front?.activeRequests() ?? 0,
  silences: () => silencesOf(opened(parts.write), reportNowMs()),
  isReady: async () => (await findReasons(opened(parts.checks), readyMaxMs)).length === 0,
  certificateEndMs: () =>
    Math.min(...[parts.front, parts.ops].map((part) => part?.certificateEndMs() ?? Number.POSITIVE_INFINITY)),
  storeMapBytes: async () => (await parts.write?.store.reports.stats())?.fileBytes ?? 0,
});

/** A reading of what there is not, or not yet, has no value. */
const opened = <T>(part: T | undefined): T => {
  if (part === undefined) throw new Error('There is nothing to read.');
  return part;
};

function* silencesOf({ store, view }: WritePath, nowMs: number): Generator<Silence> {
  for (const stream of view.current().streams.values()) {
    const silence = stream.status === 'live' ? silenceOf(store.reports, stream, nowMs) : undefined;
    if (silence !== undefined) yield silence;
  }
}

/** Damaged records, the first few by name. One in a stream is no reason to take a node away from all others. */
const describeDamage = (damage: readonly Damage[]): readonly string[] => {
  const named = damage.slice(0, 5).map(({ table, key, reason }) => `store: ${table} ${key}: ${reason}`);
  return damage.length > named.length ? [...named, `store: ${damage.length} damaged records in all`] : named;
};

/** Why a part of the store cannot be written to. Without its administrative part everything is served, and only counts wait. */
const describeStops = (store: Store, parts: readonly WritingPart[]): readonly string[] =>
  store
    .stops()
    .flatMap(({ part, code, reason }) =>
      parts.includes(part) ? [`writing to ${part} has stopped (${code}): ${reason}`] : [],
    );

const describeDegradation = (store: Store, front: Front, following: TroubleWatch): readonly string[] => {
  const all = new Map([...store.damage(), ...front.damage()].map((one) => [`${one.table} ${one.key}`, one]));
  const stops = describeStops(store, ['administration']);
  const behind = front.live === undefined ? following.describe() : [];
  return [...stops, ...behind, ...describeDamage([...all.values()]), ...front.degraded()];
};

/** What workers serve is as new as what they read themselves. */
const checkStore = async (
  { store }: WritePath,
  { live }: Front,
  following: TroubleWatch,
): Promise<string | undefined> => {
  await store.reports.position();
  return live === undefined ? undefined : following.describe()[0];
};

const checkLag = async ({ store, view }: WritePath, nowMs: number): Promise<string | undefined> =>
  lateReason(await readFreshness(store.reports, view.current().streams.values(), nowMs));
