// Watches whether the reports of a live stream keep coming, each feed ID by its own interval (D254). A server may answer pings and send nothing else.
import { type ReceivedReport, stepMsOf } from './received-report.ts';

/** A feed ID without a report for longer than it should be. */
export type StaleStream = {
  readonly feedId: string;
  /** Second of the last report that was delivered; undefined if there was none. */
  readonly lastTimestamp: number | undefined;
  /** How long there was none. */
  readonly silentMs: number;
};

/** As the server's: three windows of the newest report, and at least a minute. */
const windowsMax = 3;
const silentMinMs = 60_000;
/** After a connection was lost, its reports have this long to arrive. */
const settleMs = 10_000;

type Feed = {
  readonly receivedMs: number;
  readonly windowMs: number;
  readonly last: number | undefined;
  isReported: boolean;
};

/** How often to look. */
export const staleLookMs = 1_000;

export function createStaleWatch(
  feedIds: readonly string[],
  onStale: (stream: StaleStream) => void,
  monotonicMs: () => number,
) {
  const startMs = monotonicMs();
  const feeds = new Map<string, Feed>();
  for (const feedId of feedIds)
    feeds.set(feedId, { receivedMs: startMs, windowMs: 0, last: undefined, isReported: false });
  let liveMs: number | undefined;
  return {
    received: ({ report, validFromMs, observationsMs }: ReceivedReport): void => {
      const { feedID: feedId, observationsTimestamp: last } = report;
      const windowMs = observationsMs - validFromMs + stepMsOf(feedId);
      feeds.set(feedId, { receivedMs: monotonicMs(), windowMs, last, isReported: false });
    },
    /** Calls back once for each silence. `isLive`: reports could arrive now. */
    look: (isLive: boolean): void => {
      const nowMs = monotonicMs();
      liveMs = isLive ? (liveMs ?? nowMs) : undefined;
      if (liveMs === undefined || nowMs - liveMs < settleMs) return;
      for (const [feedId, feed] of feeds) {
        const silentMs = nowMs - feed.receivedMs;
        if (feed.isReported || silentMs <= Math.max(silentMinMs, windowsMax * feed.windowMs)) continue;
        feed.isReported = true;
        onStale({ feedId, lastTimestamp: feed.last, silentMs });
      }
    },
  };
}
