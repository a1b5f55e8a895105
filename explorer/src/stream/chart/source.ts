// Where the chart's data is from: stored reports and candles, loaded in chunks, and the stream's live reports on top of them.
import type { Candle, Client } from '@sealpost/client';
import { daySeconds } from '@sealpost/protocol';
import { readLiveReport } from '../../state/live-prices.ts';
import { readTooOld } from '../../ui/price-at/price-lookup.ts';
import { addSpans, addToCandles, pricedOf, type Span, spanOf } from '../chart-spans.ts';
import type { ChartBars } from './bars.ts';
import { type ChunkKey, createChartChunks, type LoadedChunk } from './chart-chunks.ts';
import { type ChartGrid, type ChartWindow, chunkSecondsOf, chunksOf, reportsSecondsMax, stepOf } from './resolution.ts';

/** Live reports this much older than the candles may be missing in them. */
const overlapSeconds = 5;

/** What most servers keep; another length is learned from the error of a request for older reports. */
const usualSeconds = 30 * daySeconds;
/** The oldest second kept moves on while a request is on its way. */
const slackSeconds = 10;

export type Retention = ReturnType<typeof createRetention>;

/** The oldest second that a server keeps: assumed until a view is before it, then learned from the server's error. */
export function createRetention() {
  let learned: { readonly oldest: number; readonly retentionSeconds: number } | undefined;
  let lastNow = 0;
  let isReached = false;
  let first: Promise<unknown> | undefined;
  const loadFrom = async <T>(from: number, to: number, load: (from: number) => Promise<readonly T[]>) => {
    if (from > to) return [];
    try {
      return await load(from);
    } catch (error) {
      const found = readTooOld(error)?.oldestTimestamp;
      if (found === undefined || found <= from) throw error;
      const oldest = Math.ceil(found);
      learned = { oldest, retentionSeconds: lastNow - oldest };
      return oldest + slackSeconds > to ? [] : await load(oldest + slackSeconds);
    }
  };
  return {
    /** Undefined until learned. */
    oldest: () => learned?.oldest,
    /** No second before this one is loaded. */
    from: (nowSeconds: number): { readonly second: number; readonly isAssumed: boolean } => {
      const seconds = learned?.retentionSeconds ?? (isReached ? undefined : usualSeconds);
      const second = seconds === undefined ? 0 : nowSeconds - seconds + slackSeconds;
      return { second, isAssumed: learned === undefined && !isReached };
    },
    /** A view before the assumed second has the server asked. */
    reach: ({ from }: ChartWindow, nowSeconds: number): void => {
      lastNow = nowSeconds;
      isReached ||= from < nowSeconds - usualSeconds;
    },
    /** Loads what is kept of a range. The first request of all tells the others how much that is. */
    load: async <T>(from: number, to: number, load: (from: number) => Promise<readonly T[]>) => {
      if (!isReached || first !== undefined) {
        await first?.catch(() => undefined); // whoever began it has the error
        return loadFrom(Math.max(from, (learned?.oldest ?? 0) + slackSeconds), to, load);
      }
      const loading = loadFrom(from, to, load);
      first = loading;
      return loading;
    },
  };
}

/** Loads and keeps what a stream's chart draws. */
export type ChartSource = {
  /** Undefined until something in view is loaded. */
  readonly read: (grid: ChartGrid, live: readonly Span[], nowSeconds: number) => ChartBars | undefined;
  readonly want: (grid: ChartGrid, window: ChartWindow, nowSeconds: number) => void;
  /** Is something in view missing that will be loaded? */
  readonly isLoading: (grid: ChartGrid, window: ChartWindow, nowSeconds: number) => boolean;
  readonly failureOf: (
    grid: ChartGrid,
    window: ChartWindow,
    nowSeconds: number,
  ) => { readonly error: unknown } | undefined;
  readonly retry: () => void;
  readonly close: () => void;
};

/** The chunks of a grid of which something is kept. */
const keysOf = (grid: ChartGrid, window: ChartWindow, retained: ReturnType<Retention['from']>): readonly ChunkKey[] => {
  const { resolution } = grid;
  const seconds = chunkSecondsOf(resolution);
  return chunksOf(grid, window)
    .filter((start) => start + seconds > retained.second)
    .map((start) => {
      const from = Math.max(start, retained.second);
      return { resolution, start, seconds, from, isAssumed: retained.isAssumed && from > start };
    });
};

/** Is some of a chunk in view? */
const isInView = ({ start, seconds }: ChunkKey, { from, to }: ChartWindow): boolean =>
  start < to && start + seconds > from;

/**
 * The chunks to load: all of a grid, but for reports only those in view, and without those of the last five minutes, which are among the
 * live ones.
 */
const chunksToLoad = (keys: readonly ChunkKey[], window: ChartWindow, nowSeconds: number): readonly ChunkKey[] => {
  const liveFrom = nowSeconds - reportsSecondsMax;
  return keys.filter(
    (key) => key.resolution !== 'reports' || (isInView(key, window) && Math.max(key.start, window.from) < liveFrom),
  );
};

export function createChartSource(
  client: Client,
  feedId: string,
  retention: Retention,
  onChange: () => void,
): ChartSource {
  const candles = createChartChunks<Candle>(({ resolution, start, seconds, from }, signal) => {
    const to = start + seconds - 1;
    const load = async (first: number): Promise<readonly Candle[]> =>
      (await client.candles(feedId, { from: first, to, resolution: Number(resolution) }, { signal })).candles;
    return retention.load(from, to, load);
  }, onChange);
  const reports = createChartChunks<Span>(({ start, seconds, from }, signal) => {
    const to = start + seconds - 1;
    return retention.load(from, to, async (first) => {
      const spans: Span[] = [];
      for await (const page of client.pages(feedId, { from: first, to, signal }))
        spans.push(...pricedOf(page.reports.flatMap((report) => readLiveReport(report) ?? []).map(spanOf)));
      return spans;
    });
  }, onChange);
  const cacheOf = ({ resolution }: ChartGrid) => (resolution === 'reports' ? reports : candles);
  const keysIn = (grid: ChartGrid, window: ChartWindow, nowSeconds: number): readonly ChunkKey[] =>
    keysOf(grid, window, retention.from(nowSeconds));
  return {
    want: (grid, window, nowSeconds) => {
      retention.reach(window, nowSeconds);
      const keys = chunksToLoad(keysIn(grid, window, nowSeconds), window, nowSeconds);
      candles.want(grid.resolution === 'reports' ? [] : keys, nowSeconds);
      reports.want(grid.resolution === 'reports' ? keys : [], nowSeconds);
    },
    read: (grid, live, nowSeconds) => {
      const inGrid = live.filter(({ endMs, startMs }) => endMs > grid.start * 1_000 && startMs < grid.end * 1_000);
      const keys = keysIn(grid, { from: grid.start, to: grid.end }, nowSeconds);
      if (grid.resolution !== 'reports') return readCandles(candles.read, grid, keys, inGrid, nowSeconds);
      const found = keys.flatMap((key) => reports.read(key)?.values ?? []);
      return { grid, spans: addSpans(found, inGrid, grid.start * 1_000), candles: [] };
    },
    isLoading: (grid, window, nowSeconds) =>
      chunksToLoad(keysIn(grid, window, nowSeconds), window, nowSeconds).some(
        (key) => isInView(key, window) && key.start <= nowSeconds && cacheOf(grid).read(key) === undefined,
      ),
    failureOf: (grid, window, nowSeconds) => cacheOf(grid).failureOf(keysIn(grid, window, nowSeconds)),
    retry: () => {
      candles.retry();
      reports.retry();
    },
    close: () => {
      candles.close();
      reports.close();
    },
  };
}

const readCandles = (
  read: (key: ChunkKey) => LoadedChunk<Candle> | undefined,
  grid: ChartGrid,
  keys: readonly ChunkKey[],
  live: readonly Span[],
  nowSeconds: number,
): ChartBars | undefined => {
  const step = stepOf(grid.resolution);
  const chunks = keys.toSorted((a, b) => a.start - b.start).map((key) => ({ key, loaded: read(key) }));
  if (chunks.length > 0 && chunks.every(({ loaded }) => loaded === undefined)) return undefined;
  const stored = chunks.flatMap(({ loaded }) => loaded?.values ?? []);
  const newest = chunks.find(({ key }) => key.start <= nowSeconds && nowSeconds < key.start + key.seconds)?.loaded;
  const after = newest === undefined ? undefined : newest.atSecond - overlapSeconds;
  const fresh = after === undefined ? [] : live.filter(({ timestamp }) => timestamp > after);
  return {
    grid,
    spans: [],
    candles: addToCandles(stored, fresh, step),
  };
};
