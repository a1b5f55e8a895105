// The live prices in view: which streams are watched, and the newest report of each. One connection delivers them all
// (live-connection.ts); streams that come into view get a first value at once (batches.ts). Needs a signed-in user.
import { effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { type Client, type DecodedReport, decode } from '@sealpost/client';
import { limits, type ReportJson } from '@sealpost/protocol';
import { intervalMsOf, windowsMax } from '../ui/interval.ts';
import { type PriceDigits, widenDigits } from '../ui/price/digits.ts';
import { type Batches, createBatches } from './batches.ts';
import type { Catalog } from './catalog.ts';
import type { Clock } from './clock.ts';
import { createLiveConnection, type LiveConnection, type LiveState, type Plan } from './live-connection.ts';
import type { Session } from './session.ts';

/** A report with its fields. */
export type LiveReport = { readonly report: ReportJson; readonly decoded: DecodedReport };

export type Live = {
  readonly state: ReadonlySignal<LiveState>;
  /** Why the server rejects the connection; undefined if it does not. */
  readonly problem: ReadonlySignal<unknown>;
  /** The newest report of a stream; undefined until one is known. */
  readonly latest: (feedId: string) => ReadonlySignal<LiveReport | undefined>;
  /** The stream's interval in milliseconds, the median of its recent windows; undefined until one is known. */
  readonly intervalMs: (feedId: string) => ReadonlySignal<number | undefined>;
  /** The digits of the stream's prices, the widest seen; undefined until a report is known. */
  readonly digits: (feedId: string) => ReadonlySignal<PriceDigits | undefined>;
  /** Whether the server has said that the stream has no report. */
  readonly isEmpty: (feedId: string) => ReadonlySignal<boolean>;
  /** Loads the newest report of streams of which none is known yet, 100 per request; skips those that the user may not read. */
  readonly load: (feedIds: readonly string[]) => void;
  /**
   * Keeps these streams live until the returned function is called; skips those that the user may not read. Calls `onReport` for every
   * report, once and in order, across reconnects, from the second `from` on; by default from now on.
   */
  readonly watch: (feedIds: readonly string[], onReport?: (report: LiveReport) => void, from?: number) => () => void;
};

/** The state of one stream. */
type StreamPrices = {
  readonly latest: Signal<LiveReport | undefined>;
  readonly intervalMs: Signal<number | undefined>;
  readonly digits: Signal<PriceDigits | undefined>;
  readonly isEmpty: Signal<boolean>;
  windows: readonly DecodedReport[];
};

type Watch = {
  readonly feedIds: readonly string[];
  readonly onReport: ((report: LiveReport) => void) | undefined;
  /** Per stream, the last observation that was delivered; milliseconds. */
  readonly lastMs: Map<string, number>;
};

/** The watched streams, most recently watched first, up to the limit of a connection. */
export const planOf = (
  watches: Iterable<Pick<Watch, 'feedIds' | 'onReport' | 'lastMs'>>,
  readable: ReadonlySet<string>,
): Plan => {
  // Those that need every report come before rows that are only looked at.
  const newestFirst = [...watches]
    .reverse()
    .toSorted((a, b) => Number(a.onReport === undefined) - Number(b.onReport === undefined));
  const wanted = new Set(newestFirst.flatMap(({ feedIds }) => feedIds).filter((feedId) => readable.has(feedId)));
  const feedIds = [...wanted].slice(0, limits.feedIdsMax);
  const starts = newestFirst
    .filter(({ onReport }) => onReport !== undefined)
    .flatMap(({ lastMs }) => feedIds.flatMap((feedId) => lastMs.get(feedId) ?? []));
  return { feedIds, from: starts.length === 0 ? undefined : Math.floor(Math.min(...starts) / 1_000) };
};

/** Decodes a report; undefined for an unknown schema. */
const read = (report: ReportJson): LiveReport | undefined => {
  try {
    return { report, decoded: decode(report) };
  } catch {
    return undefined; // there is nothing to show
  }
};

const createStream = (): StreamPrices => ({
  latest: signal(undefined),
  intervalMs: signal(undefined),
  digits: signal(undefined),
  isEmpty: signal(false),
  windows: [],
});

const createPrices = () => {
  const streams = new Map<string, StreamPrices>();
  const of = (feedId: string): StreamPrices => {
    const known = streams.get(feedId) ?? createStream();
    streams.set(feedId, known);
    return known;
  };
  return {
    of,
    /** Stores a report if it is the newest; returns it decoded either way. */
    take: (report: ReportJson): LiveReport | undefined => {
      const next = read(report);
      const known = of(report.feedID);
      const newestMs = known.latest.peek()?.decoded.observationsMs ?? 0;
      if (next === undefined || next.decoded.observationsMs <= newestMs) return next;
      known.windows = [...known.windows.slice(1 - windowsMax), next.decoded];
      known.latest.value = next;
      known.intervalMs.value = intervalMsOf(known.windows);
      known.isEmpty.value = false;
      const { price, bid, ask } = next.decoded;
      known.digits.value = widenDigits(
        known.digits.peek(),
        [price, bid, ask].filter((value) => value !== undefined),
      );
      return next;
    },
    /** Those of which no report is known. */
    without: (feedIds: readonly string[]): readonly string[] =>
      feedIds.filter((feedId) => of(feedId).latest.peek() === undefined),
    /** Marks the streams of which a response had no report. */
    markEmpty: (feedIds: readonly string[]): void => {
      for (const known of feedIds.map(of)) known.isEmpty.value = known.latest.peek() === undefined;
    },
    forget: (): void => {
      for (const known of streams.values()) {
        known.windows = [];
        known.latest.value = undefined;
        known.intervalMs.value = undefined;
        known.digits.value = undefined;
        known.isEmpty.value = false;
      }
    },
  };
};

/** The parts of the session that live prices use. */
type Reader = Pick<Session, 'client' | 'userId'>;

export const createLive = (session: Reader, catalog: Pick<Catalog, 'state'>, clock: Pick<Clock, 'nowMs'>): Live => {
  const known = createPrices();
  const watches = new Set<Watch>();
  const [state, problem] = [signal<LiveState>('off'), signal<unknown>(undefined)];
  let readable: ReadonlySet<string> = new Set();
  let connection: LiveConnection | undefined;
  let first: Batches | undefined;
  effect(() => {
    const client = session.client.value;
    if (session.userId.value === undefined) return;
    const ended = new AbortController();
    first = createFirstPrices(client, known, ended.signal);
    connection = createLiveConnection({
      stream: client.stream,
      plan: () => planOf(watches, readable),
      onOpen: ({ feedIds }) => first?.load(known.without(feedIds)),
      onReport: (report) => {
        const next = known.take(report);
        if (next !== undefined) for (const watch of watches) tell(watch, next);
      },
      onState: (next) => {
        state.value = next;
        if (next !== 'reconnecting') problem.value = undefined;
      },
      onRefused: (error) => {
        problem.value = error;
      },
    });
    connection.changed(false);
    return () => {
      ended.abort();
      connection?.close();
      connection = undefined;
      first = undefined;
      readable = new Set();
      known.forget();
    };
  });
  effect(() => {
    // While the catalog reloads, the last known streams stay readable.
    if (catalog.state.value.phase !== 'ready') return;
    readable = catalog.state.value.readable;
    connection?.changed(false);
  });
  return {
    state,
    problem,
    latest: (feedId) => known.of(feedId).latest,
    intervalMs: (feedId) => known.of(feedId).intervalMs,
    digits: (feedId) => known.of(feedId).digits,
    isEmpty: (feedId) => known.of(feedId).isEmpty,
    load: (feedIds) => first?.load(known.without(feedIds.filter((feedId) => readable.has(feedId)))),
    watch: (feedIds, onReport, from) => {
      const watch = createWatch(feedIds, onReport, from ?? Math.floor(clock.nowMs.peek() / 1_000));
      watches.add(watch);
      connection?.changed(onReport !== undefined);
      return () => {
        watches.delete(watch);
        connection?.changed(false);
      };
    },
  };
};

const firstPauseMs = 150;

/** Loads the newest report of streams. */
const createFirstPrices = (
  client: Pick<Client, 'latestMany'>,
  known: ReturnType<typeof createPrices>,
  signal: AbortSignal,
): Batches =>
  createBatches({
    load: async (feedIds) => {
      const { reports, missing } = await client.latestMany(feedIds, { signal });
      if (signal.aborted) return;
      reports.forEach(known.take);
      known.markEmpty(missing.map(({ feedID }) => feedID));
    },
    signal,
    pauseMs: firstPauseMs,
  });

const createWatch = (feedIds: readonly string[], onReport: Watch['onReport'], from: number): Watch => ({
  feedIds,
  onReport,
  lastMs: new Map(onReport === undefined ? [] : feedIds.map((feedId) => [feedId, from * 1_000 - 1])),
});

/** Delivers a report to a watch unless it had it before. */
const tell = ({ onReport, lastMs }: Watch, { report, decoded }: LiveReport): void => {
  const last = lastMs.get(report.feedID);
  if (onReport === undefined || last === undefined || decoded.observationsMs <= last) return;
  lastMs.set(report.feedID, decoded.observationsMs);
  onReport({ report, decoded });
};
