// The administrative records in memory, complete, and reloaded when any process changes them.
import type { FeedId, Stream } from '@sealpost/protocol';
import { createFailureState } from '../runtime/failure-state.ts';
import type { Account, AdminStore, RegisteredSignerSet } from './store.ts';
import { createListeners } from './wake.ts';

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

/** A reload failed, which is news once, and again when there is another cause; reloads work again, after `seconds`. */
export type AdminReloadEvent =
  | { readonly kind: 'adminReloadFailed'; readonly error: Error; readonly isNews: boolean }
  | { readonly kind: 'adminReloadRecovered'; readonly seconds: number };

export type AdminViewTimes = {
  /** After a reload that failed, the next one. */
  readonly retryMs?: number;
  readonly nowMs?: () => number;
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

/** Loads the records and keeps them fresh. A reload that fails leaves the last good ones, and is tried again. */
export async function openAdminView(
  admin: AdminStore,
  tell: (event: AdminReloadEvent) => void,
  { retryMs = 1_000, nowMs }: AdminViewTimes = {},
): Promise<AdminView> {
  const report = (error: Error, isNews: boolean): void => tell({ kind: 'adminReloadFailed', error, isNews });
  const state = createFailureState<Error>({
    began: (error) => report(error, true),
    continued: report,
    ended: (seconds) => tell({ kind: 'adminReloadRecovered', seconds }),
    nowMs,
  });
  const listeners = createListeners();
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
        listeners.wake();
      }
    } finally {
      isLoading = false;
    }
  };
  const reloadSoon = (): void => {
    isStale = true;
    if (isLoading || isClosed) return;
    clearTimeout(timer);
    reload().then(state.worked, (error: unknown) => {
      if (isClosed) return;
      timer = setTimeout(reloadSoon, retryMs).unref();
      state.failed(error instanceof Error ? error : new Error(String(error)));
    });
  };
  const stop = admin.onChanged(reloadSoon); // before the first load: none comes between
  const close = (): void => {
    isClosed = true;
    state.close();
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
    onReload: listeners.listen,
    close,
  };
}
