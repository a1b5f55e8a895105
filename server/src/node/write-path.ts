// The writing half of a node: the store, ingest and retention.
import type { Settings } from '../config/config.ts';
import { createIngest, type Ingest } from '../ingest/ingest.ts';
import { openVerifier, type Verifier } from '../ingest/verifier.ts';
import type { Listener as Observe } from '../observe/observe.ts';
import type { StartWatch } from '../runtime/start-watch.ts';
import { hidePassword } from '../runtime/urls.ts';
import { type AdminView, openAdminView } from '../store/admin-snapshot.ts';
import { openStore } from '../store/open.ts';
import { startRetention } from '../store/retention.ts';
import type { Store } from '../store/store.ts';
import type { NodeHooks } from './hooks.ts';

/** The settings of a node but its secrets, and the server's version. Workers get them in a message, so they are plain values. */
export type NodeSettings = Omit<Settings, 'key' | 'ingestToken'> & { readonly version: string };

export type WritePath = {
  readonly store: Store;
  readonly view: AdminView;
  readonly ingest: Ingest;
  /** Lower limits and large deletions that wait. */
  readonly waitingRetention: () => readonly string[];
  readonly close: () => Promise<void>;
};

export type WritePathParts = {
  readonly settings: NodeSettings;
  readonly hooks: NodeHooks;
  readonly observe: Observe;
  readonly starting: StartWatch;
};

const retentionEveryMs = 60_000;

/** Opens the store for writing, ingest, and retention. If a part fails to open, it closes those before it. */
export async function openWritePath(parts: WritePathParts): Promise<WritePath> {
  const { settings, hooks, observe, starting } = parts;
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
        keepsProcess: hooks.isEmbedded !== true,
        memory: hooks.memory,
      }),
    );
    return await openIngest(parts, store, verifier);
  } catch (error) {
    await verifier.close();
    await store?.close();
    throw error;
  }
}

const openIngest = async (
  { settings, hooks: { reportNowMs = Date.now }, observe, starting }: WritePathParts,
  store: Store,
  verifier: Verifier,
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
