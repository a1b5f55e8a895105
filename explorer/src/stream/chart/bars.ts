// The bars of the chart: reports or candles, in order. Finds the bar at a time and its neighbors, and makes the points that the canvas draws.
import type { Candle } from '@sealpost/client';
import { type Piece, type Span, secondsOf, toCoordinate } from '../chart-spans.ts';
import { type ChartGrid, stepOf } from './resolution.ts';

/** A bar, and the milliseconds that it covers. */
export type Bar =
  | { readonly kind: 'report'; readonly startMs: number; readonly endMs: number; readonly span: Span }
  | { readonly kind: 'candle'; readonly startMs: number; readonly endMs: number; readonly candle: Candle }
  | { readonly kind: 'gap'; readonly startMs: number; readonly endMs: number };

/** What is drawn; one of the two lists is empty. */
export type ChartBars = {
  readonly grid: ChartGrid;
  readonly spans: readonly Span[];
  readonly candles: readonly Candle[];
};

/** A bar of the grid in the canvas's form; bars without a value are left out. */
export type ChartPoint = {
  readonly time: number;
  readonly pieces?: readonly Piece[];
  readonly open?: number;
  readonly high?: number;
  readonly low?: number;
  readonly close?: number;
};

const reportBar = (span: Span): Bar => ({ kind: 'report', startMs: span.startMs, endMs: span.endMs, span });

const candleBar = (candle: Candle, step: number): Bar => ({
  kind: 'candle',
  startMs: candle.timestamp * 1_000,
  endMs: (candle.timestamp + step) * 1_000,
  candle,
});

/** The price of a bar: a report's, or a candle's last. */
export const priceOf = (bar: Bar | undefined): bigint | undefined =>
  bar?.kind === 'report' ? bar.span.price : bar?.kind === 'candle' ? bar.candle.close : undefined;

/** The first index whose value is not before; `values` are ascending. */
const firstFrom = <T>(values: readonly T[], isBefore: (value: T) => boolean): number => {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const value = values[middle] as T; // within the array
    if (isBefore(value)) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** The bar at a time; a gap has the length of a bar. */
export function barAt({ grid, spans, candles }: ChartBars, ms: number): Bar {
  const step = stepOf(grid.resolution);
  if (grid.resolution === 'reports') {
    const span = spans[firstFrom(spans, ({ endMs }) => endMs <= ms)];
    if (span !== undefined && span.startMs <= ms) return reportBar(span);
  } else {
    const candle = candles[firstFrom(candles, ({ timestamp }) => (timestamp + step) * 1_000 <= ms)];
    if (candle !== undefined && candle.timestamp * 1_000 <= ms) return candleBar(candle, step);
  }
  const startMs = Math.floor(ms / 1_000 / step) * step * 1_000;
  return { kind: 'gap', startMs, endMs: startMs + step * 1_000 };
}

/** All of them with a value, in order. */
const listOf = ({ grid, spans, candles }: ChartBars): readonly Bar[] =>
  grid.resolution === 'reports' ? spans.map(reportBar) : candles.map((one) => candleBar(one, stepOf(grid.resolution)));

/** The bar `count` bars after one, or before it if negative; gaps are skipped, and the first and the last bar are the end. */
export function barAfter(bars: ChartBars, bar: Bar, count: number): Bar {
  const list = listOf(bars);
  const next = firstFrom(list, ({ startMs }) => startMs <= bar.startMs);
  const isOwn = list[next - 1]?.startMs === bar.startMs;
  const index = count > 0 ? next - 1 + count : next + count - (isOwn ? 1 : 0);
  return list[Math.min(list.length - 1, Math.max(0, index))] ?? bar;
}

/** The first and the last bar with a value in a time; undefined if there is none. */
export function edgesOf(
  bars: ChartBars,
  fromMs: number,
  toMs: number,
): { readonly first: Bar; readonly last: Bar } | undefined {
  const inside = listOf(bars).filter(({ startMs, endMs }) => endMs > fromMs && startMs < toMs);
  const [first, last] = [inside[0], inside.at(-1)];
  return first === undefined || last === undefined ? undefined : { first, last };
}

const candlePoint = ({ timestamp, open, high, low, close }: Candle): ChartPoint => ({
  time: timestamp,
  open: toCoordinate(open),
  high: toCoordinate(high),
  low: toCoordinate(low),
  close: toCoordinate(close),
});

/** The points of a grid, which may be shorter than that of the bars. */
export function pointsOf({ spans, candles }: ChartBars, { start, end, resolution }: ChartGrid): readonly ChartPoint[] {
  if (spans.length > 0) return secondsOf(spans, start, end - 1);
  const step = stepOf(resolution);
  return candles
    .filter(({ timestamp }) => timestamp >= start && timestamp < end && timestamp % step === 0)
    .map(candlePoint);
}
