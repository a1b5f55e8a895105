// A worker process: serves the public API from a store that is open for reading only. The primary starts and stops it; it reports granted
// tokens, log lines and metrics (D63). It exits when the primary is gone.
import '../runtime/one-core.ts';

import { openSecretBox } from '../access/key.ts';
import { createAskedSignatures, type UseSignature } from '../access/used-signatures.ts';
import { type DescriptorWatch, watchDescriptors } from '../connections/descriptors.ts';
import { openReadPath, type ReadPath } from '../node/read-path.ts';
import type { NodeSettings } from '../node/write-path.ts';
import { openLog } from '../observe/log.ts';
import { createMetrics } from '../observe/metrics.ts';
import { createObserver } from '../observe/observe.ts';
import { watchFollowing, watchTroubles } from '../observe/troubles.ts';
import { openAdminView } from '../store/admin-snapshot.ts';
import { openStore } from '../store/open.ts';
import { createWorkerLimits, machineMs } from './limits.ts';
import {
  type FromWorker,
  type ToWorker,
  workerKeyVariable,
  workerReadStoreVariable,
  workerStoreVariable,
} from './messages.ts';

process.stderr.on('error', () => {}); // a warning of Node's that cannot be written must not end this process

/** How often a worker reports; a limit is off by what is granted meanwhile. */
const newsEveryMs = 50;
/** Log lines that wait for a busy primary; more are dropped and counted. */
const linesWaitingMax = 50_000;

/** Resolves when the message is sent. Without a primary it sends nothing, and this process exits by itself. */
const tell = (message: FromWorker): Promise<void> =>
  new Promise((resolve) => {
    if (process.connected) process.send?.(message, () => resolve());
    else resolve();
  });

/** Collects the lines of the log; the primary writes them, so that lines of several processes never mix. */
const createLines = (onDropped: (count: number) => void) => {
  let lines: string[] = [];
  let dropped = 0;
  return {
    write: (line: string): void => {
      if (lines.length < linesWaitingMax) lines.push(line);
      else dropped += 1;
    },
    drain: (): readonly string[] => {
      const drained = lines;
      lines = [];
      if (dropped > 0) onDropped(dropped);
      dropped = 0;
      return drained;
    },
  };
};

const known = (): never => {
  throw new Error('The primary knows.');
};

type WorkerLimits = ReturnType<typeof createWorkerLimits>;

/** Log and metrics of this process, and how their news and those of its limits reach the primary. */
const createReporting = (logLevel: NodeSettings['logLevel'], limits: WorkerLimits, activeRequests: () => number) => {
  const lines = createLines((count) =>
    observe({ kind: 'warning', code: 'log_lines_dropped', message: `${count} log lines were dropped.` }),
  );
  const log = openLog({
    level: logLevel,
    nowMs: Date.now,
    slowMs: 1_000,
    complaintsPerSecondMax: 10,
    destination: { write: lines.write },
  });
  const metrics = createMetrics({
    readings: { activeRequests, silences: known, isReady: known, certificateEndMs: known, storeMapBytes: known },
  });
  const observe = createObserver([log.observe, metrics.observe]);
  let underWay: Promise<void> | undefined;
  // One message at a time: while the primary is busy, tokens and lines add up here.
  const tellNews = (): void => {
    const news = { kind: 'news', limits: limits.drain(), lines: lines.drain() } as const;
    const { accounts, addresses, connections } = news.limits;
    if (news.lines.length + accounts.length + addresses.length + connections.length === 0) return;
    underWay = tell(news).finally(() => {
      underWay = undefined;
    });
  };
  const timer = setInterval(() => underWay ?? tellNews(), newsEveryMs);
  return {
    observe,
    metrics,
    close: async (): Promise<void> => {
      clearInterval(timer);
      await log.close();
      await underWay;
      tellNews();
      await underWay;
      await tell({ kind: 'metrics', values: await metrics.values() });
    },
  };
};

/** Opens everything; returns the way to answer messages. */
const open = async (
  { settings, tls }: Extract<ToWorker, { kind: 'start' }>,
  limits: WorkerLimits,
  useSignature: UseSignature,
) => {
  let read: ReadPath | undefined;
  const box = openSecretBox({ key: process.env[workerKeyVariable] || undefined, keyFile: settings.keyFile });
  const reporting = createReporting(settings.logLevel, limits, () => read?.activeRequests() ?? 0);
  const { observe, metrics } = reporting;
  let descriptors: DescriptorWatch | undefined;
  const following = watchFollowing(() => tellDegraded());
  const troubles = watchTroubles(() => tellDegraded());
  const tellDegraded = (): void => {
    const behind = following.describe();
    const reasons = [...(descriptors?.describe() ?? []), ...behind, ...troubles.describe()];
    void tell({ kind: 'degraded', reasons, isLeftBehind: behind.length > 0 });
  };
  const store = await openStore(process.env[workerStoreVariable] ?? '', 'read', {
    tell: (event) => {
      observe(event);
      following.observe(event);
      troubles.observe(event);
      if (event.kind !== 'damaged') return;
      const { kind, total: _, ...damage } = event;
      void tell({ kind, damage });
    },
    share: settings.workers + 1,
    replicas: JSON.parse(process.env[workerReadStoreVariable] ?? '[]') as readonly string[], // the primary's own list
  });
  const view = await openAdminView(store.admin, (event) => {
    observe(event);
    troubles.observe(event);
  });
  const limiters = { ...limits.limiters, useSignature };
  read = await openReadPath({ settings: { ...settings, tls }, store, view, box, observe, limiters });
  const listening = read;
  const watched = watchDescriptors(observe, tellDegraded);
  descriptors = watched;
  return {
    url: listening.url,
    checkAppended: store.reports.checkAppended,
    tellMetrics: async () => tell({ kind: 'metrics', values: await metrics.values() }),
    reloadTls: listening.reloadTls,
    stopListening: listening.stopListening,
    drain: async (): Promise<void> => {
      await listening.drain();
      watched.stop();
      view.close();
      await store.close();
      await reporting.close();
    },
  };
};

type Opened = Awaited<ReturnType<typeof open>>;

const fail = async (error: unknown): Promise<void> => {
  const { message, code, syscall } = error as NodeJS.ErrnoException; // what parts throw is an Error
  await tell({
    kind: 'failed',
    message,
    ...(code !== undefined && { code }),
    ...(syscall !== undefined && { syscall }),
  });
  process.exit(1);
};

const answer = async (
  opened: Opened,
  message: Exclude<ToWorker, { kind: 'start' | 'limits' | 'signaturesUsed' | 'ping' }>,
): Promise<void> => {
  switch (message.kind) {
    case 'appended':
      return opened.checkAppended();
    case 'tellMetrics':
      return opened.tellMetrics();
    case 'reloadTls':
      return opened.reloadTls(message.tls);
    case 'stopListening':
      opened.stopListening();
      return tell({ kind: 'stoppedListening' });
    case 'drain':
      await opened.drain();
      process.exit(0);
  }
};

// Terminals and supervisors signal the whole process group; only the primary acts on it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('disconnect', () => process.exit(1));

const listenToPrimary = (): void => {
  const limits = createWorkerLimits(machineMs);
  const signatures = createAskedSignatures((handshakes) => void tell({ kind: 'useSignatures', handshakes }));
  let opened: Promise<Opened> | undefined;
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'start' || message.kind === 'limits') limits.receive(message.limits); // at once: opening may take longer than tokens count
    if (message.kind === 'limits') return;
    if (message.kind === 'signaturesUsed') signatures.receive(message.refusals);
    else if (message.kind === 'ping') void tell({ kind: 'pong' });
    else if (message.kind === 'start') {
      opened = open(message, limits, signatures.use);
      opened.then(({ url }) => tell({ kind: 'ready', url }), fail);
    }
    // What comes before `start` needs no answer: nothing has been read that could be read again.
    else void opened?.then((running) => answer(running, message)).catch(fail);
  });
  void tell({ kind: 'hello' });
};
listenToPrimary();
