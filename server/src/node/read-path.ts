// The reading half of a node: the public listener over a store, with live delivery, limits and usage.
import { setFlagsFromString } from 'node:v8';
import { createLongWork } from '../access/long-work.ts';
import type { SecretBox } from '../access/secrets.ts';
import { onlyStreamsOf } from '../access/streams-of-network.ts';
import { createUsageCounter, type UsageCounter } from '../access/usage.ts';
import { createUsedSignatures, type UseSignature } from '../access/used-signatures.ts';
import type { ConnectionRules } from '../connections/connection-limits.ts';
import { connectionsWithin } from '../connections/descriptors.ts';
import { countedAddressOf } from '../http/admission-control.ts';
import { type ApiRules, createApi, type Limiters } from '../http/api.ts';
import { explorerFolder, openExplorer } from '../http/explorer.ts';
import { watchLoad } from '../http/overload.ts';
import { type ListenOptions, openHttpServer } from '../http/server.ts';
import { withSignIn } from '../http/sign-in.ts';
import { type Live, openLive } from '../live/live.ts';
import type { SharedCounts } from '../live/shared-counts.ts';
import { createObserver, type Listener as Observe } from '../observe/observe.ts';
import { createAddressSet } from '../runtime/ip-address.ts';
import {
  certificateEndMsOf,
  describeCertificate,
  readTlsFiles,
  type TlsPair,
  tlsFilesOf,
  tlsReloadFailed,
} from '../runtime/tls-files.ts';
import type { AdminView } from '../store/admin-snapshot.ts';
import type { Store } from '../store/store.ts';
import type { NodeHooks, Wrapping } from './hooks.ts';
import type { NodeSettings } from './write-path.ts';

/** Who is connected for live reports, and how far they got them. */
export type LiveView = Pick<Live, 'opened' | 'position'>;

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

export type ReadPathParts = {
  /** `tls` is the certificate in use where another process has it; the files may hold another one by now. */
  readonly settings: NodeSettings & { readonly tls?: TlsPair | undefined };
  /** The caller closes it. */
  readonly store: Store;
  readonly view: AdminView;
  readonly box: SecretBox;
  readonly observe: Observe;
  /** Its own limits when absent. */
  readonly limiters?: SharedLimits | undefined;
  readonly hooks?: NodeHooks;
};

/** Live connections are pinged after this long without a message. */
const keepAliveMs = 10_000;

/** A request runs through many small functions; by default V8 inlines fewer of them, which costs 5 % more CPU (D64). */
const inlining = '--max-inlined-bytecode-size-cumulative=3000';

const monotonicMs = (): number => performance.now();

/** Opens the public listener. If a part fails to open, it closes those before it. */
export async function openReadPath(parts: ReadPathParts): Promise<ReadPath> {
  const { settings, store, observe, limiters, hooks = {} } = parts;
  setFlagsFromString(inlining);
  const longWork = createLongWork(monotonicMs);
  const view = onlyStreamsOf(parts.view, settings.network);
  const wrapping = hooks.wrap?.({ reports: store.reports, view, monotonicMs });
  const live = await openLive({
    store,
    view,
    rules: { ...settings, keepAliveMs },
    longWork,
    nowMs: hooks.reportNowMs ?? Date.now,
    monotonicMs,
    observe,
    shared: limiters?.connections,
    openInterceptor: wrapping?.openInterceptor,
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
    return await openListener({ ...parts, view, hooks, longWork, live, usage, wrapping });
  } catch (error) {
    wrapping?.drain();
    await live.drain(0);
    await usage.stop();
    throw error;
  }
}

type ListenerParts = ReadPathParts & {
  readonly hooks: NodeHooks;
  readonly longWork: ReturnType<typeof createLongWork>;
  readonly live: Live;
  readonly usage: UsageCounter;
  readonly wrapping: Wrapping | undefined;
};

const openListener = async (parts: ListenerParts): Promise<ReadPath> => {
  const { settings, store, view, box, observe, limiters, hooks, longWork, live, usage, wrapping } = parts;
  const load = watchLoad(settings.eventLoopLagMaxMs);
  let draining = false;
  const tlsFiles = tlsFilesOf(settings);
  const rules = apiRulesOf(settings);
  const { handle, activeRequests, newRequestId } = createApi({
    store,
    view,
    box,
    rules,
    nowMs: Date.now,
    reportNowMs: hooks.reportNowMs,
    status: hooks.status,
    monotonicMs,
    isDraining: () => draining,
    load,
    longWork,
    isTls: tlsFiles !== undefined,
    observe: createObserver([observe, usage.observe]),
    // What wraps a request may set the clock off that signatures are compared with; what is stored stays right.
    onSigned: wrapping ? (userId, secretId) => usage.noteSecret(userId, secretId, Date.now()) : usage.noteSecret,
    live: live.handlers,
    findFile: settings.explorer ? openExplorer(explorerFolder, (error) => observe(missingExplorer(error))) : undefined,
    intercept: wrapping?.intercept,
    ...(limiters && { limiters }),
    useSignature: limiters?.useSignature ?? createUsedSignatures(settings, monotonicMs),
  });
  const readTls = (): ListenOptions['tls'] => tlsFiles && readTlsFiles(tlsFiles);
  let tls = settings.tls ?? readTls();
  const listener = await openHttpServer(
    {
      ...settings.listen,
      keepsProcess: hooks.isEmbedded !== true,
      ...(tls && { tls }),
      connections: {
        ...settings,
        connectionsMax: allowedConnections(settings, observe),
        addressOf: peerAddressOf(rules),
      },
      onAccepted: load.accepted,
    },
    hooks.signIn === undefined ? handle : withSignIn(handle, hooks.signIn, newRequestId, observe),
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
      wrapping?.drain();
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
  ({ trustedProxies }: ApiRules): ConnectionRules['addressOf'] =>
  (peer) =>
    trustedProxies.has(peer) ? undefined : countedAddressOf(peer);

const missingExplorer = (error: unknown) =>
  ({
    kind: 'warning',
    code: 'explorer_not_built',
    message: 'There is no page at /: the explorer is not built. Run `npm run build`, or use `--explorer off`.',
    error,
  }) as const;
