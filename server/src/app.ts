// The composition root of a running node, the only file that knows every part. It opens the parts in the order of the data flow and closes them in
// reverse.
import { setFlagsFromString } from 'node:v8';
import { createLongWork, type LongWork } from './access/long-work.ts';
import { viewOfNetwork } from './access/network-view.ts';
import type { SecretBox } from './access/secrets.ts';
import { createUsageCounter, type UsageCounter } from './access/usage.ts';
import { createUsedSignatures, type UseSignature } from './access/used-signatures.ts';
import type { Settings } from './config/config.ts';
import { connectionsWithin } from './connections/descriptors.ts';
import type { GuardRules } from './connections/guard.ts';
import { type ApiRules, createApi, type Limiters } from './http/api.ts';
import { explorerFolder, openExplorer } from './http/explorer.ts';
import { countedAddressOf } from './http/gate.ts';
import { type WatchedLoad, watchLoad } from './http/overload.ts';
import { type HttpListener, type ListenOptions, openHttpServer } from './http/server.ts';
import { type SignIn, withSignIn } from './http/sign-in.ts';
import { createIngest, type Ingest } from './ingest/ingest.ts';
import { openVerifier, type Verifier } from './ingest/verifier.ts';
import { type Live, openLive } from './live/live.ts';
import type { SharedCounts } from './live/shared-counts.ts';
import { createObserver, type Listener as Observe } from './observe/observe.ts';
import { createAddressSet } from './runtime/ip-address.ts';
import type { StartWatch } from './runtime/start-watch.ts';
import {
  certificateEndMsOf,
  describeCertificate,
  readTlsFiles,
  type TlsPair,
  tlsFilesOf,
  tlsReloadFailed,
} from './runtime/tls-files.ts';
import { hidePassword } from './runtime/urls.ts';
import type { FaultHooks } from './sandbox/faults/faults.ts';
import type { SandboxParts } from './sandbox/parts.ts';
import { type AdminView, openAdminView } from './store/admin-snapshot.ts';
import { openStore } from './store/open.ts';
import { startRetention } from './store/retention.ts';
import type { Store } from './store/store.ts';

/** The settings of a node but its secrets, and the server's version. Workers get them in a message, so they are plain values. */
export type NodeSettings = Omit<Settings, 'key' | 'ingestToken'> & { readonly version: string };

/** Those of the reading half. `tls` is the certificate in use where another process has it; the files may hold another one by now. */
type ReadSettings = NodeSettings & { readonly tls?: TlsPair | undefined };

/** The writing half of a node: the store and ingest. */
export type WritePath = {
  readonly store: Store;
  readonly view: AdminView;
  readonly ingest: Ingest;
  /** Lower limits and large deletions that wait. */
  readonly waitingRetention: () => readonly string[];
  readonly close: () => Promise<void>;
};

/** Who is connected for live reports, and how far they got them. */
export type LiveView = Pick<Live, 'opened' | 'position'>;

/** The reading half: the public listener over a store. */
export type ReadPath = {
  readonly url: string;
  /** Requests that are not answered yet. */
  readonly activeRequests: () => number;
  readonly live: LiveView;
  /** Accepts no new connections; open ones continue. */
  readonly stopListening: () => void;
  /** Completes running requests, rejects new ones, closes. */
  readonly drain: () => Promise<void>;
  /** When the certificate in use expires; undefined without TLS. */
  readonly certificateEndMs: () => number | undefined;
  /** Uses the given certificate and key, or reads the files again; keeps the old ones if that fails. */
  readonly reloadTls: (given?: TlsPair) => void;
};

/** Limits that a process shares with others. */
export type SharedLimits = Limiters & { readonly connections?: SharedCounts; readonly useSignature?: UseSignature };

const retentionEveryMs = 60_000;
/** Live connections are pinged after this long without a message. */
const keepAliveMs = 10_000;

/** A request runs through many small functions; by default V8 inlines fewer of them, which costs 5 % more CPU (D64). */
const inlining = '--max-inlined-bytecode-size-cumulative=3000';

/** Opens the store for writing, ingest, and retention. If a part fails to open, it closes those before it. */
export const openWritePath = async (
  settings: NodeSettings,
  observe: Observe,
  starting: StartWatch,
  sandbox?: SandboxParts,
): Promise<WritePath> => {
  // Its threads start while the store opens.
  const verifier = openVerifier(settings.verifierThreads, (why) =>
    observe({ kind: 'threadEnded', thread: 'verifier', reason: why }),
  );
  let store: Store | undefined;
  try {
    store = await starting.part(`the store ${hidePassword(settings.store)}`, () =>
      openStore(settings.store, 'write', {
        tell: observe,
        share: settings.workers + 1,
        replicas: settings.readStore ?? [],
        starting,
        keepsProcess: sandbox?.isEmbedded !== true,
        memory: sandbox?.memory,
      }),
    );
    return await openIngest(settings, store, verifier, observe, starting, sandbox?.reportNowMs ?? Date.now);
  } catch (error) {
    await verifier.close();
    await store?.close();
    throw error;
  }
};

const openIngest = async (
  settings: NodeSettings,
  store: Store,
  verifier: Verifier,
  observe: Observe,
  starting: StartWatch,
  reportNowMs: () => number,
): Promise<WritePath> => {
  const view = await starting.part('the catalog and the accounts', () => openAdminView(store.admin, observe));
  try {
    await starting.part('the threads that verify signatures', verifier.ready);
  } catch (error) {
    view.close();
    throw error;
  }
  const ingest = createIngest({ store, view, verifier, rules: settings, nowMs: reportNowMs, observe });
  const rules = { ...settings, everyMs: retentionEveryMs };
  const streams = () => view.current().streams.values();
  const retention = startRetention(store, streams, rules, reportNowMs, {
    failed: (error) =>
      observe({ kind: 'warning', code: 'trim_failed', message: 'Old reports could not be removed.', error }),
    waits: (message) => observe({ kind: 'warning', code: 'retention_waits', message }),
    deleted: (count, endMs) => observe({ kind: 'reportsDeleted', count, endMs }),
  });
  return {
    store,
    view,
    ingest,
    waitingRetention: retention.waiting,
    close: async () => {
      await retention.stop();
      await ingest.close();
      view.close();
      await store.close();
    },
  };
};

/** What some nodes without workers have, in addition. */
export type ReadExtras = {
  /** Signs browsers in by a code. */
  readonly signIn?: SignIn;
  /** Makes it a sandbox. */
  readonly sandbox?: SandboxParts;
  /** Of a demo, for /status.json. */
  readonly historyLoaded?: () => number | undefined;
};

/** Opens the public listener over a store that the caller closes. If a part fails to open, it closes those before it. */
export const openReadPath = async (
  settings: ReadSettings,
  store: Store,
  view: AdminView,
  box: SecretBox,
  observe: Observe,
  limiters?: SharedLimits,
  extras: ReadExtras = {},
): Promise<ReadPath> => {
  const { sandbox } = extras;
  setFlagsFromString(inlining);
  const monotonicMs = () => performance.now();
  const load = watchLoad(settings.eventLoopLagMaxMs);
  const longWork = createLongWork(monotonicMs);
  const shown = viewOfNetwork(view, settings.network);
  const hooks = sandbox?.faults?.attach({ reports: store.reports, view: shown, monotonicMs });
  const live = await openLive({
    store,
    view: shown,
    rules: { ...settings, keepAliveMs },
    longWork,
    nowMs: sandbox?.reportNowMs ?? Date.now,
    monotonicMs,
    observe,
    shared: limiters?.connections,
    openTap: hooks?.openTap,
    onTrouble: (error) =>
      observe({
        kind: 'warning',
        code: 'live_not_read',
        message: 'New reports could not be read for live delivery.',
        error,
      }),
  });
  const usage = createUsageCounter({
    usage: store.usage,
    nowMs: Date.now,
    secretsInUse: live.opened,
    onTrouble: (message, error) => observe({ kind: 'warning', code: 'usage_not_stored', message, error }),
  });
  try {
    const parts = { load, longWork, usage, live, extras, hooks };
    return await openListener(settings, store, shown, box, observe, parts, limiters);
  } catch (error) {
    hooks?.drain();
    await live.drain(0);
    await usage.stop();
    throw error;
  }
};

type ReadParts = {
  readonly load: WatchedLoad;
  readonly longWork: LongWork;
  readonly usage: UsageCounter;
  readonly live: Live;
  readonly extras: ReadExtras;
  readonly hooks: FaultHooks | undefined;
};

const openListener = async (
  settings: ReadSettings,
  store: Store,
  view: AdminView,
  box: SecretBox,
  observe: Observe,
  { load, longWork, usage, live, extras: { signIn, sandbox, historyLoaded }, hooks }: ReadParts,
  limiters: SharedLimits | undefined,
): Promise<ReadPath> => {
  let draining = false;
  const tlsFiles = tlsFilesOf(settings);
  const rules = apiRulesOf(settings);
  const { handle, activeRequests, newRequestId } = createApi({
    store,
    view,
    box,
    rules,
    nowMs: Date.now,
    ...(sandbox && { reportNowMs: sandbox.reportNowMs, sandbox: sandbox.status }),
    historyLoaded,
    monotonicMs: () => performance.now(),
    isDraining: () => draining,
    load,
    longWork,
    isTls: tlsFiles !== undefined,
    observe: createObserver([observe, usage.observe]),
    // A fault may set the clock off that signatures are compared with; what is stored stays right.
    onSigned: hooks ? (userId, secretId) => usage.noteSecret(userId, secretId, Date.now()) : usage.noteSecret,
    live: live.handlers,
    findFile: settings.explorer ? openExplorer(explorerFolder, (error) => observe(missingExplorer(error))) : undefined,
    intercept: hooks?.intercept,
    ...(limiters && { limiters }),
    useSignature: limiters?.useSignature ?? createUsedSignatures(settings, () => performance.now()),
  });
  const readTls = (): ListenOptions['tls'] => tlsFiles && readTlsFiles(tlsFiles);
  let tls = settings.tls ?? readTls();
  const listener: HttpListener = await openHttpServer(
    {
      ...settings.listen,
      keepsProcess: sandbox?.isEmbedded !== true,
      ...(tls && { tls }),
      connections: {
        ...settings,
        connectionsMax: allowedConnections(settings, observe),
        addressOf: peerAddressOf(rules),
      },
      onAccepted: load.accepted,
    },
    signIn === undefined ? handle : withSignIn(handle, signIn, newRequestId, observe),
    newRequestId,
    observe,
  );
  return {
    url: listener.url,
    activeRequests,
    live,
    stopListening: listener.stopListening,
    drain: async () => {
      draining = true;
      hooks?.drain();
      load.drain();
      // Stop listening first: a client that is sent away must not reconnect here.
      await Promise.all([listener.close(settings.drainMs), live.drain(settings.drainMs)]);
      await usage.stop();
    },
    certificateEndMs: () => tls && certificateEndMsOf(tls),
    reloadTls: (given) => {
      try {
        const renewed = given ?? readTls();
        if (renewed === undefined) return observe({ kind: 'reloaded', settings: [] });
        listener.useTls(renewed);
        tls = renewed;
        observe({ kind: 'reloaded', settings: ['tlsCert', 'tlsKey'], certificate: describeCertificate(renewed.cert) });
      } catch (error) {
        observe(tlsReloadFailed(error));
      }
    },
  };
};

/** `connectionsMax`, or what the descriptors of the process allow. */
const allowedConnections = ({ connectionsMax }: NodeSettings, observe: Observe): number => {
  const { max, limit } = connectionsWithin(connectionsMax, 'public');
  const message = `The limit of ${limit} file descriptors allows ${max} connections, not ${connectionsMax} (connectionsMax). Raise it (ulimit -n, LimitNOFILE).`;
  if (max < connectionsMax) observe({ kind: 'warning', code: 'few_descriptors', message });
  return max;
};

const apiRulesOf = (settings: NodeSettings): ApiRules => ({
  ...settings,
  origins: settings.origins ?? [],
  trustedProxies: createAddressSet(settings.trustedProxies ?? []),
});

/** What connections are counted by; a trusted proxy is not limited, since it forwards for many clients. */
const peerAddressOf =
  ({ trustedProxies }: ApiRules): GuardRules['addressOf'] =>
  (peer) =>
    trustedProxies.has(peer) ? undefined : countedAddressOf(peer);

const missingExplorer = (error: unknown) =>
  ({
    kind: 'warning',
    code: 'explorer_not_built',
    message: 'There is no page at /: the explorer is not built. Run `npm run build`, or use `--explorer off`.',
    error,
  }) as const;
