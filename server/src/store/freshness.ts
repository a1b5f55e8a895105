// How fresh the store is: the age of the newest observation, which streams are behind, and when that is too much.
import type { Stream } from '@sealpost/protocol';
import type { ReportStore } from './store.ts';

/** A live stream is behind when its newest observation is older than this. */
const behindAfterMs = 60_000;
/** Reports are late when nothing at all was observed for this long. */
const lagMaxMs = 60_000;
/** Streams per slice; other work runs in between. */
const sliceSize = 50;

export type Freshness = {
  /** Age of the newest observation of all streams; undefined when there is none. */
  readonly lagMs: number | undefined;
  /** Live streams whose newest observation is too old, or that have none. */
  readonly behind: readonly Stream[];
};

/** Looks at the newest report of each stream, in slices, so that no request waits for many streams. */
export const readFreshness = async (
  reports: ReportStore,
  streams: Iterable<Stream>,
  nowMs: number,
): Promise<Freshness> => {
  const behind: Stream[] = [];
  let newestMs: number | undefined;
  let seen = 0;
  for (const stream of streams) {
    if (++seen % sliceSize === 0) await new Promise((resolve) => setImmediate(resolve));
    const observedMs = reports.newestMs(stream.feedId);
    if (observedMs !== undefined) newestMs = Math.max(newestMs ?? 0, observedMs);
    if (stream.status === 'live' && (observedMs === undefined || nowMs - observedMs > behindAfterMs))
      behind.push(stream);
  }
  return { lagMs: newestMs === undefined ? undefined : Math.max(0, nowMs - newestMs), behind };
};

/** Why reports are late; undefined when they are not. Where there is no report at all, there is nothing to be late. */
export const lateReason = ({ lagMs }: Pick<Freshness, 'lagMs'>): string | undefined =>
  lagMs === undefined || lagMs <= lagMaxMs ? undefined : `the newest report is ${Math.round(lagMs / 1_000)} s old`;
