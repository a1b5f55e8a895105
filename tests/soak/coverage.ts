// Which reports a reader of live streams got: each stream has one for every second, so that a second that was skipped is missing until it is read.

export type StreamCoverage = {
  readonly first: number;
  readonly newest: number;
  /** Seconds between them that did not come. */
  readonly missing: readonly number[];
};

export type Coverage = {
  /** Adds a live report; false if it is not newer than those before. */
  readonly add: (feedId: string, second: number) => boolean;
  /** Adds a report that was read to fill a gap. */
  readonly fill: (feedId: string, second: number) => void;
  readonly newestOf: (feedId: string) => number | undefined;
  readonly missingOf: (feedId: string) => readonly number[];
  readonly list: () => Readonly<Record<string, StreamCoverage>>;
};

export const createCoverage = (): Coverage => {
  const streams = new Map<string, { readonly first: number; newest: number; readonly missing: Set<number> }>();
  return {
    add: (feedId, second) => {
      const stream = streams.get(feedId);
      if (stream === undefined) {
        streams.set(feedId, { first: second, newest: second, missing: new Set() });
        return true;
      }
      if (second <= stream.newest) return false;
      for (let skipped = stream.newest + 1; skipped < second; skipped++) stream.missing.add(skipped);
      stream.newest = second;
      return true;
    },
    fill: (feedId, second) => void streams.get(feedId)?.missing.delete(second),
    newestOf: (feedId) => streams.get(feedId)?.newest,
    missingOf: (feedId) => [...(streams.get(feedId)?.missing ?? [])],
    list: () =>
      Object.fromEntries(
        [...streams].map(([feedId, { first, newest, missing }]) => [feedId, { first, newest, missing: [...missing] }]),
      ),
  };
};

/** Acknowledged reports that a reader of these streams did not get, from the first that it got on; all of a stream of which it got none. */
export const countUndelivered = (
  feedIds: readonly string[],
  got: Readonly<Record<string, StreamCoverage>>,
  acknowledged: ReadonlyMap<string, ReadonlyMap<number, string>>,
): number =>
  feedIds.reduce((sum, feedId) => {
    const sent = acknowledged.get(feedId) ?? new Map<number, string>();
    const stream = got[feedId];
    if (stream === undefined) return sum + sent.size;
    const missing = new Set(stream.missing);
    return sum + [...sent.keys()].filter((second) => second > stream.newest || missing.has(second)).length;
  }, 0);
