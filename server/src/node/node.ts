// Starts a node and stops it without failed requests: the write path, the public listener in this process or in workers, the private listener, log and metrics.
import { openSecretBox } from '../access/key.ts';
import { announceKeys, createMissingKeys } from '../access/key-announcement.ts';
import type { Settings } from '../config/config.ts';
import { type Log, openLog } from '../observe/log.ts';
import { createMetrics, renderMetrics, sumMetrics } from '../observe/metrics.ts';
import { createObserver, type Listener as Observe } from '../observe/observe.ts';
import { watchFollowing, watchTroubles } from '../observe/troubles.ts';
import { closeFailedStart, type StartWatch, unwatchedStart } from '../runtime/start-watch.ts';
import { limitsOf } from '../store/retention.ts';
import { openPublicListener } from './api-listener.ts';
import { checksOf, createReadings, describeDegradation, type OpenedParts } from './health.ts';
import type { NodeHooks } from './hooks.ts';
import { openPrivateListeners } from './private-listener.ts';
import type { LiveView } from './read-path.ts';
import { type NodeSettings, openWritePath, type WritePath } from './write-path.ts';

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

export type NodeOptions = {
  readonly settings: Settings;
  readonly version: string;
  /** The token of POST /ingest; without one the path does not exist. */
  readonly ingestToken: string | undefined;
  /** Where log lines go; standard output when absent. */
  readonly logTo?: { readonly write: (line: string) => void };
  /** Says what the start waits for. */
  readonly starting?: StartWatch;
  /** Not with workers, except for `memory`. */
  readonly hooks?: NodeHooks;
};

/** How long uploads on the private listener may take when the public one used all of `drainMs`. */
const lastUploadMs = 200;

/** Opens a node; it serves when this resolves. If a part fails to open, it closes those before it. */
export async function openNode(options: NodeOptions): Promise<Node> {
  const { version, ingestToken, logTo, starting = unwatchedStart, hooks = {} } = options;
  const { key, ingestToken: _, ...plainSettings } = options.settings; // secrets stay in this process; the other settings also go to workers
  const settings: NodeSettings = { ...plainSettings, version };
  const { reportNowMs = Date.now } = hooks;
  const ofProcess = hooks.isEmbedded !== true;
  const opened: OpenedParts = {};
  const log = openLog({
    level: settings.logLevel,
    nowMs: Date.now,
    slowMs: 1_000,
    complaintsPerSecondMax: 10,
    ...(logTo && { destination: logTo }),
    onLost: () => metrics.observe({ kind: 'warning', code: 'log_lines_dropped', message: 'Log lines were dropped.' }),
  });
  const metrics = createMetrics({ readings: createReadings(opened, reportNowMs), ofProcess });
  const following = watchFollowing();
  const troubles = watchTroubles();
  const observe = createObserver([log.observe, metrics.observe, following.observe, troubles.observe]);
  const stopping = new AbortController();
  let stopped: Promise<void> | undefined;
  let withdrawKeys = async (): Promise<void> => {};

  // The public listener first, so that probes see a node that drains; the store last.
  const close = async (): Promise<void> => {
    const deadlineMs = performance.now() + settings.drainMs;
    await opened.publicListener?.drain();
    stopping.abort(); // a mirror's request does not end by itself
    await opened.privateListeners?.close(Math.max(lastUploadMs, deadlineMs - performance.now()));
    await withdrawKeys();
    await opened.write?.close();
  };

  try {
    const box = openSecretBox(options.settings);
    const write = await openWritePath({ settings, hooks, observe, starting });
    opened.write = write;
    withdrawKeys = announceKeys(
      write.store.keyHolders,
      box,
      (error) => observe(notAnnounced(error)),
      limitsOf(settings),
    );
    const publicParts = { settings, key, hooks, write, box, observe, writeLog: log.pass, starting };
    const publicListener = await openPublicListener(publicParts);
    opened.publicListener = publicListener;
    const checks = {
      draining: () => (stopped === undefined ? undefined : 'this node is shutting down'),
      ...checksOf(write, publicListener, following, reportNowMs),
    };
    opened.checks = checks;
    const looks = [troubles.describe, createMissingKeys(write.view, box), write.waitingRetention];
    const privateParts = {
      settings: options.settings,
      hooks,
      write,
      ingestToken,
      observe,
      checks,
      stopping: stopping.signal,
      degraded: () => [
        ...describeDegradation(write.store, publicListener, following),
        ...looks.flatMap((look) => look()),
      ],
      metrics: async () =>
        renderMetrics(await sumMetrics([await metrics.values(), ...(await publicListener.values())])),
    };
    const privateListeners = await starting.part('the private listener', () => openPrivateListeners(privateParts));
    opened.privateListeners = privateListeners;
    const { url, live } = publicListener;
    const { url: opsUrl, ingestUrl } = privateListeners;
    observe({
      kind: 'started',
      version,
      addresses: { api: url, private: opsUrl, ...(ingestUrl && { ingest: ingestUrl }) },
    });
    const reloadTls = (): void => {
      publicListener.reloadTls();
      privateListeners.reloadTls();
    };
    const stop = (reason: string): Promise<void> => {
      stopped ??= ofProcess ? stopLogged(reason, close, observe, log) : close().then(log.close);
      return stopped;
    };
    return { url, opsUrl, ingestUrl, write, live, reloadTls, stop };
  } catch (error) {
    await closeFailedStart(close);
    await log.close();
    throw error;
  }
}

/** Closes everything, and logs how it ended, also when the process exits before: at a second signal, or because a part failed to close. */
const stopLogged = async (reason: string, close: () => Promise<void>, observe: Observe, log: Log): Promise<void> => {
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

const notAnnounced = (error: unknown) =>
  ({
    kind: 'warning',
    code: 'keys_not_announced',
    message:
      'This node could not announce its keys and its retention. `secret rewrap` may not wait for it, and other nodes may apply a shorter retention after a day.',
    error,
  }) as const;
