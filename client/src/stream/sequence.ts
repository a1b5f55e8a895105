// Orders a stream: reports from any number of connections become one series per feed ID, each report once. What a connection may
// have missed is read over REST before anything later is delivered.
import { backOffMs, type ReconnectRules, sleep } from '../backoff.ts';
import { type ReceivedReport, windowStartMs } from './received-report.ts';
import type { StreamGap } from './state.ts';

/** Identifies one connection from its opening, also when it is resumed. Compared by identity. */
export type ConnectionKey = { readonly origin: string | undefined };

export type SequenceParts = {
  readonly feedIds: readonly string[];
  /** The second from which a stream is delivered; undefined: from the first live report. */
  readonly fromOf: (feedId: string) => number | undefined;
  readonly nowMs: () => number;
  /** Pages of what is stored after `lastMs`; `onGap` is called for what is no longer retained. */
  readonly readAfter: (
    feedId: string,
    lastMs: number,
    onGap: (gap: StreamGap) => void,
  ) => AsyncIterable<readonly ReceivedReport[]>;
  /** Called once for each gap. */
  readonly onGap: (gap: StreamGap) => void;
  /** Feed IDs that are backfilled concurrently. */
  readonly fillsMax: number;
  readonly deliver: (report: ReceivedReport) => void;
  /** Resolves when the queue is not full. */
  readonly drained: () => Promise<void>;
  /** True for an error that a retry cannot fix: it ends the stream. */
  readonly isFinal: (error: unknown) => boolean;
  readonly retryAfterMsOf: (error: unknown) => number;
  readonly fail: (error: unknown) => void;
  readonly reconnect: ReconnectRules;
  readonly random: () => number;
  readonly signal: AbortSignal;
};

export type Sequence = {
  /** A connection has opened; `resumed` when the server continues where the same connection was cut. */
  readonly opened: (connection: ConnectionKey, resumed: boolean) => void;
  readonly closed: (connection: ConnectionKey) => void;
  readonly receive: (connection: ConnectionKey, report: ReceivedReport) => void;
  /** The server cannot resume where a connection ended. */
  readonly missed: () => void;
};

/** Live reports held per feed ID during its backfill; later ones are read over REST instead. */
const bufferedMax = 256;
/** A window that begins later than this after the last observation leaves a gap; milliseconds. */
const gapMs = 1_000;

type FeedState = {
  readonly feedId: string;
  /** When the last delivered report was observed. */
  lastMs: number | undefined;
  /** Connections that have overlapped with what was delivered, so that nothing lies between it and their next report. */
  readonly joined: WeakSet<ConnectionKey>;
  buffered: { readonly connection: ConnectionKey; readonly report: ReceivedReport }[];
  filling: boolean;
  again: boolean;
};

/** What the functions below share. */
type SequenceState = {
  readonly parts: SequenceParts;
  readonly feeds: ReadonlyMap<string, FeedState>;
  readonly live: Set<ConnectionKey>;
  /** Waiting for a backfill, in order. */
  readonly waiting: FeedState[];
  /** Where the backfill of a feed ID starts that has delivered nothing yet; set by the first connection. */
  startMs: number | undefined;
  fills: number;
};

export function createSequence(parts: SequenceParts): Sequence {
  const feeds = new Map<string, FeedState>();
  for (const feedId of parts.feedIds) {
    const from = parts.fromOf(feedId);
    const lastMs = from === undefined ? undefined : from * 1_000 - 1;
    feeds.set(feedId, { feedId, lastMs, joined: new WeakSet(), buffered: [], filling: false, again: false });
  }
  const state: SequenceState = { parts, feeds, live: new Set(), waiting: [], startMs: undefined, fills: 0 };
  return {
    opened: (connection, resumed) => {
      const isAlone = state.live.size === 0;
      const isFirst = state.startMs === undefined;
      state.startMs ??= Math.floor(parts.nowMs() / 1_000) * 1_000 - 1;
      state.live.add(connection);
      if (resumed) return;
      for (const feed of feeds.values()) {
        // Nothing came before the first connection of all, unless a start was asked for.
        if (isFirst && feed.lastMs === undefined) feed.joined.add(connection);
        // While another connection is live it delivers; the first report over the new one shows whether it joins.
        else if (isAlone) fill(state, feed);
      }
    },
    closed: (connection) => void state.live.delete(connection),
    receive: (connection, report) => {
      const feed = feeds.get(report.report.feedID);
      if (feed !== undefined) take(state, feed, connection, report, gapMs);
    },
    missed: () => {
      for (const feed of feeds.values()) fill(state, feed);
    },
  };
}

/** Delivers a live report, drops it, or holds it until everything before it was read. */
const take = (
  state: SequenceState,
  feed: FeedState,
  connection: ConnectionKey,
  report: ReceivedReport,
  gapMaxMs: number,
): void => {
  const { lastMs, joined } = feed;
  // The same report as the last delivered one: this connection also delivers everything after it. An older one may just be late.
  if (report.observationsMs === lastMs) joined.add(connection);
  if (lastMs !== undefined && report.observationsMs <= lastMs) return;
  const leavesGap = lastMs !== undefined && windowStartMs(report) > lastMs + gapMaxMs;
  if (!feed.filling && joined.has(connection) && !leavesGap) pass(state, feed, report);
  else {
    if (!feed.filling) fill(state, feed);
    if (feed.buffered.length < bufferedMax) feed.buffered.push({ connection, report });
    // It will be read over REST instead.
    else feed.again = true;
  }
};

const pass = ({ parts }: SequenceState, feed: FeedState, report: ReceivedReport): void => {
  if (feed.lastMs !== undefined && report.observationsMs <= feed.lastMs) return;
  feed.lastMs = report.observationsMs;
  parts.deliver(report);
};

/** Skips what is no longer retained; reported once, because it is not requested again. */
const skip = ({ parts }: SequenceState, feed: FeedState, gap: StreamGap): void => {
  feed.lastMs = gap.to * 1_000 - 1;
  parts.onGap(gap);
};

/** Starts a backfill, or repeats one that is running. */
const fill = (state: SequenceState, feed: FeedState): void => {
  if (feed.filling) {
    feed.again = true;
    return;
  }
  feed.filling = true;
  state.waiting.push(feed);
  startFills(state);
};

const startFills = (state: SequenceState): void => {
  while (state.fills < state.parts.fillsMax) {
    const feed = state.waiting.shift();
    if (feed === undefined) return;
    state.fills += 1;
    void fillFeed(state, feed).then(() => {
      state.fills -= 1;
      release(state, feed);
      startFills(state);
    });
  }
};

const release = (state: SequenceState, feed: FeedState): void => {
  if (state.parts.signal.aborted) return;
  // Requested between the last page and now.
  if (feed.again) {
    state.waiting.push(feed);
    return;
  }
  feed.filling = false;
  const buffered = feed.buffered.sort((a, b) => a.report.observationsMs - b.report.observationsMs);
  feed.buffered = [];
  // A gap that remains after the backfill is the server's own.
  for (const { connection, report } of buffered) take(state, feed, connection, report, Number.POSITIVE_INFINITY);
};

/** Delivers what is stored after the last delivered report. Retries until it succeeds, the stream ends, or the error is final. */
const fillFeed = async (state: SequenceState, feed: FeedState): Promise<void> => {
  const { readAfter, drained, isFinal, retryAfterMsOf, fail, reconnect, random, signal } = state.parts;
  for (let failures = 0; !signal.aborted; ) {
    // A connection that is live before the first page is requested misses nothing between the last page and its next report.
    const covered = [...state.live];
    feed.again = false;
    try {
      const onGap = (gap: StreamGap): void => skip(state, feed, gap);
      for await (const page of readAfter(feed.feedId, feed.lastMs ?? state.startMs ?? 0, onGap)) {
        for (const report of page) pass(state, feed, report);
        feed.buffered = feed.buffered.filter(({ report }) => report.observationsMs > (feed.lastMs ?? 0));
        await drained();
        if (signal.aborted) return;
      }
      for (const connection of covered) feed.joined.add(connection);
      if (!feed.again) return;
    } catch (error) {
      if (signal.aborted) return;
      if (isFinal(error)) {
        fail(error);
        return;
      }
      await sleep(backOffMs(reconnect, failures, random, retryAfterMsOf(error)), signal);
      failures += 1;
    }
  }
};
