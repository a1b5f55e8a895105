// The live prices in view: which streams are watched, and the newest report of each. One connection delivers them all
// (live-connection.ts); streams that come into view get their newest report at once, and others on request (batches.ts). Needs a signed-in user.
import { effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { type Client, type DecodedReport, decode } from '@sealpost/client';
import { decodeFullReport, limits, type ReportJson, readReportBody, windowOf } from '@sealpost/protocol';
import { intervalMsOf, type StreamWindow, windowsMax } from '../ui/interval.ts';
import { type PriceDigits, widenDigits } from '../ui/price/digits.ts';
import { type Batches, type BatchParts, createBatches, fewerAllowed } from './batches.ts';
import type { Clock } from './clock.ts';
import { createLiveConnection, type LiveConnection, type LiveState, type Plan } from './live-connection.ts';
import { createDisplay, type Displayed } from './report-display.ts';
import type { Session } from './session.ts';
import type { Catalog } from './user-catalog.ts';

/** A report with its window, and with its fields; `decoded` is undefined where this page does not know them. */
export type LiveReport = StreamWindow & { readonly report: ReportJson; readonly decoded: DecodedReport | undefined };

export type Live = {
  readonly state: ReadonlySignal<LiveState>;
  /** Why the server rejects the connection; undefined if it does not. */
  readonly problem: ReadonlySignal<unknown>;
  /** The newest report of a stream, at most five times a second; undefined until one is known. */
  readonly latest: (feedId: string) => ReadonlySignal<LiveReport | undefined>;
  /** The stream's interval in milliseconds, the median of its recent windows; undefined until one is known. */
  readonly intervalMs: (feedId: string) => ReadonlySignal<number | undefined>;
  /** The digits of the stream's prices, the widest seen; undefined until a report is known. */
  readonly digits: (feedId: string) => ReadonlySignal<PriceDigits | undefined>;
  /** Whether the server has said that the stream has no report. */
  readonly isEmpty: (feedId: string) => ReadonlySignal<boolean>;
  /** Whether the newest report that is known was the stream's newest in the last 10 s, or is because newer ones are delivered live. */
  readonly isCurrent: (feedId: string) => boolean;
  /** Loads the newest report of those that are not current, 100 per request; skips streams that the user may not read. */
  readonly load: (feedIds: readonly string[]) => void;
  /** The same for streams out of view: if a report is known, a newer one is requested after all others, with pauses. */
  readonly refresh: (feedIds: readonly string[]) => void;
  /**
   * Keeps these streams live until the returned function is called; skips those that the user may not read. Calls `onReport` for every
   * report, once and in order, across reconnects, from the second `from` on; by default from now on.
   */
  readonly watch: (feedIds: readonly string[], onReport?: (report: LiveReport) => void, from?: number) => () => void;
};

/** The state of one stream. */
type StreamPrices = Displayed & {
  readonly latest: Signal<LiveReport | undefined>;
  readonly intervalMs: Signal<number | undefined>;
  readonly digits: Signal<PriceDigits | undefined>;
  readonly isEmpty: Signal<boolean>;
  /** What the signals show at once, or in a moment. */
  newest: LiveReport | undefined;
  widest: PriceDigits | undefined;
  windows: readonly StreamWindow[];
  /** When the newest report, or that there is none, was last confirmed; by `performance.now()`. */
  confirmedMs: number;
};

type Watch = {
  readonly feedIds: readonly string[];
  readonly onReport: ((report: LiveReport) => void) | undefined;
  /** Per stream, the last observation that was delivered; milliseconds. */
  readonly lastMs: Map<string, number>;
};

/** The watched streams, most recently watched first, up to the limit of a connection. */
export function planOf(
  watches: Iterable<Pick<Watch, 'feedIds' | 'onReport' | 'lastMs'>>,
  readable: ReadonlySet<string>,
  feedIdsMax: number = limits.feedIdsMax,
): Plan {
  // Those that need every report come before rows that are only looked at.
  const newestFirst = [...watches]
    .reverse()
    .toSorted((a, b) => Number(a.onReport === undefined) - Number(b.onReport === undefined));
  const readableIds = new Set(newestFirst.flatMap(({ feedIds }) => feedIds).filter((feedId) => readable.has(feedId)));
  const feedIds = [...readableIds].slice(0, feedIdsMax);
  const starts = newestFirst
    .filter(({ onReport }) => onReport !== undefined)
    .flatMap(({ lastMs }) => feedIds.flatMap((feedId) => lastMs.get(feedId) ?? []));
  return { feedIds, from: starts.length === 0 ? undefined : Math.floor(Math.min(...starts) / 1_000) };
}

/** Decodes a report as far as its fields are known; undefined if it is malformed. */
export function readLiveReport(report: ReportJson): LiveReport | undefined {
  try {
    const body = readReportBody(decodeFullReport(report.fullReport).body);
    const { validFromMs, observationsMs } = windowOf(body);
    const decoded = body.version === undefined ? undefined : decode(report);
    return { report, feedId: body.feedId, validFromMs, observationsMs, decoded };
  } catch {
    return undefined; // there is nothing to show
  }
}

const createStream = (): StreamPrices => {
  const stream: StreamPrices = {
    latest: signal<LiveReport | undefined>(undefined, {
      watched: () => {
        stream.isOnPage = true;
      },
      unwatched: () => {
        stream.isOnPage = false;
      },
    }),
    intervalMs: signal(undefined),
    digits: signal(undefined),
    isEmpty: signal(false),
    newest: undefined,
    widest: undefined,
    windows: [],
    isOnPage: false,
    shownMs: Number.NEGATIVE_INFINITY,
    confirmedMs: Number.NEGATIVE_INFINITY,
  };
  return stream;
};

/** How long a report counts as the newest after a response with it. */
const currentMs = 10_000;

const createPrices = () => {
  const streams = new Map<string, StreamPrices>();
  const display = createDisplay<StreamPrices>((stream) => {
    stream.latest.value = stream.newest;
    stream.intervalMs.value = intervalMsOf(stream.windows);
    stream.digits.value = stream.widest;
    stream.isEmpty.value = false;
  });
  /** Streams that are delivered live, and since when. */
  let liveSinceMs: ReadonlyMap<string, number> = new Map();
  const of = (feedId: string): StreamPrices => {
    const stream = streams.get(feedId) ?? createStream();
    streams.set(feedId, stream);
    return stream;
  };
  return {
    of,
    /** Stores a report if it is the newest; returns it decoded either way. `atMs`: when it was the stream's newest. */
    take: (report: ReportJson, atMs: number): LiveReport | undefined => {
      const next = readLiveReport(report);
      const stream = of(report.feedID);
      const newestMs = stream.newest?.observationsMs ?? 0;
      if (next === undefined || next.observationsMs >= newestMs)
        stream.confirmedMs = Math.max(stream.confirmedMs, atMs);
      if (next === undefined || next.observationsMs <= newestMs) return next;
      stream.windows = [...stream.windows.slice(1 - windowsMax), next];
      stream.newest = next;
      const { price, bid, ask }: Partial<DecodedReport> = next.decoded ?? {};
      stream.widest = widenDigits(
        stream.widest,
        [price, bid, ask].filter((value) => value !== undefined),
      );
      display.show(stream);
      return next;
    },
    /** Whether its newest report, or that there is none, was ever known. */
    isKnown: (feedId: string): boolean => of(feedId).confirmedMs > Number.NEGATIVE_INFINITY,
    isCurrent: (feedId: string): boolean => {
      const { confirmedMs } = of(feedId);
      const sinceMs = liveSinceMs.get(feedId) ?? Number.POSITIVE_INFINITY;
      return confirmedMs >= sinceMs || performance.now() - confirmedMs < currentMs;
    },
    /** These streams are delivered live from now on, and no others. */
    markLive: (feedIds: ReadonlySet<string>): void => {
      const nowMs = performance.now();
      liveSinceMs = new Map([...feedIds].map((feedId) => [feedId, liveSinceMs.get(feedId) ?? nowMs]));
    },
    /** Marks the streams of which a response had no report. */
    markEmpty: (feedIds: readonly string[], atMs: number): void => {
      for (const stream of feedIds.map(of)) {
        stream.isEmpty.value = stream.newest === undefined;
        stream.confirmedMs = Math.max(stream.confirmedMs, atMs);
      }
    },
    forget: (): void => {
      display.forget();
      for (const stream of streams.values()) {
        Object.assign(stream, { newest: undefined, widest: undefined, windows: [] });
        Object.assign(stream, { shownMs: Number.NEGATIVE_INFINITY, confirmedMs: Number.NEGATIVE_INFINITY });
        stream.latest.value = undefined;
        stream.intervalMs.value = undefined;
        stream.digits.value = undefined;
        stream.isEmpty.value = false;
      }
      liveSinceMs = new Map();
    },
  };
};

/** The parts of the session that live prices use. */
type Reader = Pick<Session, 'client' | 'userId'>;

export function createLive(session: Reader, catalog: Pick<Catalog, 'state'>, clock: Pick<Clock, 'nowMs'>): Live {
  const prices = createPrices();
  const watches = new Set<Watch>();
  const [state, problem] = [signal<LiveState>('off'), signal<unknown>(undefined)];
  let readable: ReadonlySet<string> = new Set();
  let reading: Reading | undefined;
  effect(() => {
    const client = session.client.value;
    if (session.userId.value === undefined) return;
    reading = openReading({ client, prices, watches, readable: () => readable, state, problem });
    return () => {
      reading?.close();
      reading = undefined;
      readable = new Set();
      prices.forget();
    };
  });
  effect(() => {
    // While the catalog reloads, the last known streams stay readable.
    if (catalog.state.value.phase !== 'ready') return;
    readable = catalog.state.value.readable;
    reading?.connection.changed(false);
  });
  const outdated = (feedIds: readonly string[]): readonly string[] =>
    feedIds.filter((feedId) => readable.has(feedId) && !prices.isCurrent(feedId));
  return {
    state,
    problem,
    latest: (feedId) => prices.of(feedId).latest,
    intervalMs: (feedId) => prices.of(feedId).intervalMs,
    digits: (feedId) => prices.of(feedId).digits,
    isEmpty: (feedId) => prices.of(feedId).isEmpty,
    isCurrent: prices.isCurrent,
    load: (feedIds) => reading?.urgent.load(outdated(feedIds)),
    refresh: (feedIds) => {
      const outdatedIds = outdated(feedIds);
      reading?.urgent.load(outdatedIds.filter((feedId) => !prices.isKnown(feedId)));
      reading?.idle.load(outdatedIds.filter(prices.isKnown));
    },
    watch: (feedIds, onReport, from) => {
      const watch = createWatch(feedIds, onReport, from ?? Math.floor(clock.nowMs.peek() / 1_000));
      watches.add(watch);
      reading?.connection.changed(onReport !== undefined);
      return () => {
        watches.delete(watch);
        reading?.connection.changed(false);
      };
    },
  };
}

type ReadingParts = {
  readonly client: Client;
  readonly prices: ReturnType<typeof createPrices>;
  readonly watches: ReadonlySet<Watch>;
  readonly readable: () => ReadonlySet<string>;
  readonly state: Signal<LiveState>;
  readonly problem: Signal<unknown>;
};

/** How one user gets reports. */
type Reading = {
  readonly connection: LiveConnection;
  /** For streams in view, and those of which nothing is known. */
  readonly urgent: Batches;
  /** For streams out of view. */
  readonly idle: Batches;
  readonly close: () => void;
};

const openReading = ({ client, prices, watches, readable, state, problem }: ReadingParts): Reading => {
  const ended = new AbortController();
  const { signal } = ended;
  const load = loadLatest(client, prices, signal);
  const urgent = createBatches({ load, signal, pauseMs: urgentPauseMs });
  const idle = createBatches({ load, signal, pauseMs: idlePauseMs, pauseFactor: idlePauseFactor });
  let feedIdsMax: number = limits.feedIdsMax;
  const connection = createLiveConnection({
    stream: client.stream,
    plan: () => planOf(watches, readable(), feedIdsMax),
    onOpen: ({ feedIds }) => urgent.load(feedIds.filter((feedId) => !prices.isCurrent(feedId))),
    onReport: (report) => {
      const next = prices.take(report, performance.now());
      if (next !== undefined) for (const watch of watches) notifyWatch(watch, next);
    },
    onState: (next) => {
      state.value = next;
      if (next !== 'reconnecting') problem.value = undefined;
      if (next !== 'live') prices.markLive(new Set());
    },
    onLive: prices.markLive,
    onRefused: (error, feedIds) => {
      const fewer = fewerAllowed(error, feedIds.size);
      if (fewer === undefined) problem.value = error;
      else feedIdsMax = fewer;
      return fewer === undefined ? 'final' : 'adapted';
    },
  });
  connection.changed(false);
  return {
    connection,
    urgent,
    idle,
    close: () => {
      ended.abort();
      connection.close();
    },
  };
};

const urgentPauseMs = 150;
/** 2,000 streams out of view take 10 s, with 2 of 10 requests per second. */
const idlePauseMs = 500;
const idlePauseFactor = 3;

/** Loads the newest report of streams. */
const loadLatest =
  (
    client: Pick<Client, 'latestMany'>,
    prices: ReturnType<typeof createPrices>,
    signal: AbortSignal,
  ): BatchParts['load'] =>
  async (feedIds) => {
    const askedMs = performance.now();
    const { reports, missing } = await client.latestMany(feedIds, { signal });
    if (signal.aborted) return;
    for (const report of reports) prices.take(report, askedMs);
    prices.markEmpty(
      missing.map(({ feedID }) => feedID),
      askedMs,
    );
  };

const createWatch = (feedIds: readonly string[], onReport: Watch['onReport'], from: number): Watch => ({
  feedIds,
  onReport,
  lastMs: new Map(onReport === undefined ? [] : feedIds.map((feedId) => [feedId, from * 1_000 - 1])),
});

/** Delivers a report to a watch unless it had it before. */
const notifyWatch = ({ onReport, lastMs }: Watch, next: LiveReport): void => {
  const { feedID } = next.report;
  const last = lastMs.get(feedID);
  if (onReport === undefined || last === undefined || next.observationsMs <= last) return;
  lastMs.set(feedID, next.observationsMs);
  onReport(next);
};
