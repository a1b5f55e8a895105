// The administrative records in memory, complete, and reloaded when any process changes them.
import type { FeedId, Stream } from '@sealpost/protocol';
import type { Account, AdminStore, RegisteredSignerSet } from './store.ts';

/** What is registered, as of the last change that was seen (at most a second old). */
export type AdminSnapshot = {
  readonly streams: ReadonlyMap<FeedId, Stream>;
  readonly signerSets: ReadonlyMap<string, RegisteredSignerSet>;
  /** By user id in lower case. */
  readonly accounts: ReadonlyMap<string, Account>;
};

export type AdminView = {
  readonly current: () => AdminSnapshot;
  /** Calls back after a reload. Returns the way to stop. */
  readonly onReload: (wake: () => void) => () => void;
  readonly close: () => void;
};

const load = async (admin: AdminStore): Promise<AdminSnapshot> => {
  const [streams, signerSets, accounts] = await Promise.all([
    admin.list('stream'),
    admin.list('signerSet'),
    admin.list('account'),
  ]);
  return {
    streams: new Map(streams.map((stream) => [stream.feedId, stream])),
    signerSets: new Map(signerSets.map((set) => [set.configDigest, set])),
    accounts: new Map(accounts.map((account) => [account.userId, account])),
  };
};

/** After a reload that failed, the next one. */
const retryMs = 1_000;

/** Loads the records and keeps them fresh. A reload that fails leaves the last good ones, is reported to `onFailure`, and is tried again. */
export const openAdminView = async (admin: AdminStore, onFailure: (error: unknown) => void): Promise<AdminView> => {
  const listeners = new Set<() => void>();
  let snapshot: AdminSnapshot;
  let isStale = true;
  let isLoading = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  // One at a time: an answer from before a change must not come after the one from after it.
  const reload = async (): Promise<void> => {
    isLoading = true;
    try {
      while (isStale) {
        isStale = false;
        snapshot = await load(admin);
        for (const wake of [...listeners]) wake();
      }
    } finally {
      isLoading = false;
    }
  };
  const reloadSoon = (): void => {
    isStale = true;
    if (isLoading || isClosed) return;
    clearTimeout(timer);
    reload().catch((error: unknown) => {
      onFailure(error);
      timer = setTimeout(reloadSoon, retryMs).unref();
    });
  };
  const stop = admin.onChanged(reloadSoon); // before the first load: none comes between
  const close = (): void => {
    isClosed = true;
    clearTimeout(timer);
    stop();
  };
  try {
    await reload();
  } catch (error) {
    close();
    throw error;
  }
  return {
    current: () => snapshot,
    onReload: (wake) => {
      listeners.add(wake);
      return () => listeners.delete(wake);
    },
    close,
  };
};
