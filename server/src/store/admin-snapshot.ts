// Owns the administrative records as the running process knows them: whole, in memory, reloaded when any process changes them.
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

/** Loads the records and keeps them fresh. A reload that fails leaves the last good ones and is reported to `onFailure`. */
export const openAdminView = async (admin: AdminStore, onFailure: (error: unknown) => void): Promise<AdminView> => {
  let snapshot = await load(admin);
  const listeners = new Set<() => void>();
  const reload = async (): Promise<void> => {
    try {
      snapshot = await load(admin);
      for (const wake of [...listeners]) wake();
    } catch (error) {
      onFailure(error);
    }
  };
  const stop = admin.onChanged(() => void reload());
  return {
    current: () => snapshot,
    onReload: (wake) => {
      listeners.add(wake);
      return () => listeners.delete(wake);
    },
    close: stop,
  };
};
