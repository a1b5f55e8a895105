// Where the chart's data is from: stored reports and candles, loaded in chunks, and the stream's live reports on top of them.
import type { Candle, Client } from '@sealpost/client';
import { decode } from '@sealpost/client';
import { addSpans, addToCandles, type Span, spanOf } from '../chart-spans.ts';
import type { ChartBars } from './bars.ts';
import { type ChunkKey, createChartPages, type LoadedChunk } from './pages.ts';
import { type ChartGrid, type ChartWindow, chunkSecondsOf, chunksOf, reportsSecondsMax, stepOf } from './resolution.ts';

/** Live reports this much older than the candles may be missing in them. */
const overlapSeconds = 5;

/** Loads and keeps what a stream's chart draws. */
export type ChartSource = {
  /** Undefined until something in view is loaded. */
  readonly read: (grid: ChartGrid, live: readonly Span[], nowSeconds: number) => ChartBars | undefined;
  readonly want: (grid: ChartGrid, window: ChartWindow, nowSeconds: number) => void;
  /** Is something in view missing that will be loaded? */
  readonly isLoading: (grid: ChartGrid, window: ChartWindow, nowSeconds: number) => boolean;
  readonly failureOf: (grid: ChartGrid, window: ChartWindow) => { readonly error: unknown } | undefined;
  readonly retry: () => void;
  readonly close: () => void;
};

const keysOf = (grid: ChartGrid, window: ChartWindow): readonly ChunkKey[] => {
  const { resolution } = grid;
  return chunksOf(grid, window).map((start) => ({ resolution, start, seconds: chunkSecondsOf(resolution) }));
};

/** Is some of a chunk in view? */
const isInView = ({ start, seconds }: ChunkKey, { from, to }: ChartWindow): boolean =>
  start < to && start + seconds > from;

/**
 * The chunks to load: all of a grid, but for reports only those in view, and without those of the last five minutes, which are among the
 * live ones.
 */
const wantedOf = (grid: ChartGrid, window: ChartWindow, nowSeconds: number): readonly ChunkKey[] => {
  const keys = keysOf(grid, window);
  if (grid.resolution !== 'reports') return keys;
  const liveFrom = nowSeconds - reportsSecondsMax;
  return keys.filter((key) => isInView(key, window) && Math.max(key.start, window.from) < liveFrom);
};

export const createChartSource = (client: Client, feedId: string, onChange: () => void): ChartSource => {
  const candles = createChartPages<Candle>(async ({ resolution, start, seconds }, signal) => {
    const range = { from: start, to: start + seconds - 1, resolution: Number(resolution) };
    return (await client.candles(feedId, range, { signal })).candles;
  }, onChange);
  const reports = createChartPages<Span>(async ({ start, seconds }, signal) => {
    const spans: Span[] = [];
    for await (const page of client.pages(feedId, { from: start, to: start + seconds - 1, signal }))
      spans.push(...page.reports.map((report) => spanOf(decode(report))));
    return spans;
  }, onChange);
  const pagesOf = ({ resolution }: ChartGrid) => (resolution === 'reports' ? reports : candles);
  return {
    want: (grid, window, nowSeconds) => {
      const wanted = wantedOf(grid, window, nowSeconds);
      candles.want(grid.resolution === 'reports' ? [] : wanted, nowSeconds);
      reports.want(grid.resolution === 'reports' ? wanted : [], nowSeconds);
    },
    read: (grid, live, nowSeconds) => {
      const inGrid = live.filter(({ endMs, startMs }) => endMs > grid.start * 1_000 && startMs < grid.end * 1_000);
      const keys = keysOf(grid, { from: grid.start, to: grid.end });
      if (grid.resolution !== 'reports') return readCandles(candles.read, grid, keys, inGrid, nowSeconds);
      const found = keys.flatMap((key) => reports.read(key)?.values ?? []);
      return { grid, spans: addSpans(found, inGrid, grid.start * 1_000), candles: [] };
    },
    isLoading: (grid, window, nowSeconds) =>
      wantedOf(grid, window, nowSeconds).some(
        (key) => isInView(key, window) && key.start <= nowSeconds && pagesOf(grid).read(key) === undefined,
      ),
    failureOf: (grid, window) => pagesOf(grid).failureOf(keysOf(grid, window)),
    retry: () => {
      candles.retry();
      reports.retry();
    },
    close: () => {
      candles.close();
      reports.close();
    },
  };
};

const readCandles = (
  read: (key: ChunkKey) => LoadedChunk<Candle> | undefined,
  grid: ChartGrid,
  wanted: readonly ChunkKey[],
  live: readonly Span[],
  nowSeconds: number,
): ChartBars | undefined => {
  const step = stepOf(grid.resolution);
  const chunks = wanted.toSorted((a, b) => a.start - b.start).map((key) => ({ key, loaded: read(key) }));
  if (chunks.every(({ loaded }) => loaded === undefined)) return undefined;
  const stored = chunks.flatMap(({ loaded }) => loaded?.values ?? []);
  const newest = chunks.find(({ key }) => key.start <= nowSeconds && nowSeconds < key.start + key.seconds)?.loaded;
  const after = newest === undefined ? undefined : newest.atSecond - overlapSeconds;
  const fresh = after === undefined ? [] : live.filter(({ timestamp }) => timestamp > after);
  return {
    grid,
    spans: [],
    candles: fresh.reduce<readonly Candle[]>((sum, span) => addToCandles(sum, span, step), stored),
  };
};
