// The public listener of a node, wherever it runs, and the rate limits that it shares with other nodes.
import { createSharedLimiters } from '../access/limit-exchange.ts';
import { createLimitSharing } from '../access/node-limits.ts';
import type { SecretBox } from '../access/secrets.ts';
import { openWorkers } from '../cluster/primary.ts';
import type { Log } from '../observe/log.ts';
import type { MetricValues } from '../observe/metrics.ts';
import type { Listener as Observe } from '../observe/observe.ts';
import type { StartWatch } from '../runtime/start-watch.ts';
import type { Damage } from '../store/store.ts';
import type { NodeHooks } from './hooks.ts';
import { type LiveView, openReadPath, type ReadPath } from './read-path.ts';
import type { NodeSettings, WritePath } from './write-path.ts';

export type PublicListener = Pick<ReadPath, 'url' | 'activeRequests' | 'drain' | 'certificateEndMs'> & {
  readonly live: LiveView | undefined;
  readonly check: () => string | undefined;
  /** What is wrong with other processes that still answer. */
  readonly degraded: () => readonly string[];
  /** Damaged records that other processes found. */
  readonly damage: () => readonly Damage[];
  /** Metrics of other processes. */
  readonly values: () => Promise<readonly (readonly MetricValues[])[]>;
  readonly reloadTls: () => void;
};

type PublicParts = {
  readonly settings: NodeSettings;
  readonly key: string | undefined;
  readonly hooks: NodeHooks;
  readonly write: WritePath;
  readonly box: SecretBox;
  readonly observe: Observe;
  readonly writeLog: Log['pass'];
  readonly starting: StartWatch;
};

/** Opens the public listener in this process, or in workers. */
export async function openPublicListener(parts: PublicParts): Promise<PublicListener> {
  const { settings, key, write, observe, writeLog, starting } = parts;
  const { store } = write;
  const shareLimits =
    store.nodes &&
    createLimitSharing(store.nodes, (message, error) =>
      observe({ kind: 'warning', code: 'limits_not_shared', message, error }),
    );
  if (settings.workers === 0) {
    const read = await starting.part('the API to listen', () => openInThisProcess(parts, shareLimits));
    return { ...read, check: () => undefined, degraded: () => [], damage: () => [], values: async () => [] };
  }
  const { onAppended } = store.reports;
  const workers = await openWorkers({ settings, key, observe, shareLimits, writeLog, starting, onAppended });
  return { ...workers, live: undefined, activeRequests: () => 0 };
}

const openInThisProcess = async (
  { settings, hooks, write: { store, view }, box, observe }: PublicParts,
  shareLimits: ReturnType<typeof createLimitSharing> | undefined,
): Promise<ReadPath> => {
  const shared = shareLimits && createSharedLimiters();
  const read = await openReadPath({ settings, store, view, box, observe, limiters: shared?.limiters, hooks });
  if (shared === undefined) return read;
  const stopSharing = shareLimits?.({ collect: shared.drain, receive: shared.receive });
  return {
    ...read,
    drain: async () => {
      await read.drain();
      await stopSharing?.();
    },
  };
};
