// The watchlist: streams that the user has starred, kept in the browser.
import { computed, type ReadonlySignal } from '@preact/signals';
import type { BrowserStorage } from './browser-storage.ts';
import { createStoredSetting } from './stored-setting.ts';

export type Watchlist = {
  /** The feed IDs. */
  readonly feedIds: ReadonlySignal<ReadonlySet<string>>;
  /** Adds a stream, or removes it. `full`: nothing changed, since the list has as many as it may have. */
  readonly toggle: (feedId: string) => 'added' | 'removed' | 'full';
};

const storageKey = 'sealpost-watchlist';
/** Streams in a watchlist. */
export const watchlistMax = 500;

/** The feed IDs among what is stored, each once. */
const parse = (stored: unknown): readonly string[] =>
  Array.isArray(stored)
    ? [...new Set(stored.filter((one) => typeof one === 'string' && /^0x[0-9a-f]{64}$/.test(one)))].slice(
        0,
        watchlistMax,
      )
    : [];

export function createWatchlist(storage: BrowserStorage): Watchlist {
  const setting = createStoredSetting(storage, storageKey, parse);
  return {
    feedIds: computed(() => new Set(setting.value.value)),
    toggle: (feedId) => {
      const known = setting.value.peek();
      if (known.includes(feedId)) {
        setting.set(known.filter((other) => other !== feedId));
        return 'removed';
      }
      if (known.length >= watchlistMax) return 'full';
      setting.set([...known, feedId]);
      return 'added';
    },
  };
}
