// Which streams of a list are watched: those in view and some around them, so that a short scroll needs no new connection. They change when the list
// rests, and once a second while it moves slowly enough to read.
import type { CatalogEntry } from '@sealpost/protocol';
import type { Live } from '../state/live-prices.ts';

/** The streams of a list, in its order, and which of them are in view. */
export type WatchCandidates = {
  readonly streams: readonly Pick<CatalogEntry, 'feedId'>[];
  readonly inView: readonly [number, number];
  /** Streams to watch, if they are enough for the view. */
  readonly watchedMax: number;
  /** Too fast to read: nothing new is watched before the list is slower. */
  readonly isFast?: boolean;
};

export type WatchedRows = {
  readonly show: (rows: WatchCandidates) => void;
  /** Loads the newest reports of the rows in view that are not current. */
  readonly refresh: () => void;
  readonly close: () => void;
};

/** Rows are watched once the list has not changed for this long, so that scrolling past a row loads no price. */
export const restMs = 200;
/** Rows of a list that does not rest are watched after this. */
export const patienceMs = 1_000;

/** Those in view, then the nearest around them. */
export function nearestTo({ streams, inView: [first, end], watchedMax }: WatchCandidates): readonly string[] {
  const spare = Math.max(0, watchedMax - (end - first));
  const before = Math.min(first, Math.max(Math.floor(spare / 2), spare - (streams.length - end)));
  const idsOf = (from: number, to: number): readonly string[] => streams.slice(from, to).map(({ feedId }) => feedId);
  return [...idsOf(first, end), ...idsOf(end, end + spare - before), ...idsOf(first - before, first).toReversed()];
}

const nothing: WatchCandidates = { streams: [], inView: [0, 0], watchedMax: 0 };

export function createWatchedRows(live: Pick<Live, 'watch' | 'load'>): WatchedRows {
  let candidates = nothing;
  let watched: ReadonlySet<string> = new Set();
  let unwatch = (): void => {};
  let timer: ReturnType<typeof setTimeout> | undefined;
  let waitsSinceMs: number | undefined;
  const inView = (): readonly string[] => candidates.streams.slice(...candidates.inView).map(({ feedId }) => feedId);
  const refresh = (): void => live.load(inView());
  const watch = (feedIds: readonly string[]): void => {
    const before = unwatch;
    watched = new Set(feedIds);
    unwatch = feedIds.length === 0 ? () => {} : live.watch(feedIds);
    before(); // after the new watch, so that streams in both stay as they are
  };
  const settle = (): void => {
    timer = undefined;
    waitsSinceMs = undefined;
    if (!inView().every((feedId) => watched.has(feedId))) watch(nearestTo(candidates));
    refresh();
  };
  return {
    show: (rows) => {
      candidates = rows;
      clearTimeout(timer);
      if (rows.isFast === true) {
        waitsSinceMs = undefined;
        return;
      }
      const nowMs = performance.now();
      waitsSinceMs ??= nowMs;
      timer = setTimeout(settle, Math.max(0, Math.min(restMs, waitsSinceMs + patienceMs - nowMs)));
    },
    refresh,
    close: () => {
      clearTimeout(timer);
      candidates = nothing;
      watch([]);
    },
  };
}
