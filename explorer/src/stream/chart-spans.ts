// Reports and candles as the stream page uses them, the change of a price, and the price axis. Coordinates are floats; printed values come
// from the exact integers.
import type { Candle } from '@sealpost/client';
import type { LiveReport } from '../state/live-prices.ts';
import { windowEndMs } from '../ui/interval.ts';

/** A report as the page lists it; without a price where its fields are not known. */
export type ListedSpan = {
  readonly feedId: string;
  /** First millisecond of the window, and the first one after it. */
  readonly startMs: number;
  readonly endMs: number;
  /** The observation time, the last of the window. */
  readonly observedMs: number;
  /** The second in its permalink. */
  readonly timestamp: number;
  readonly price: bigint | undefined;
  readonly bid: bigint | undefined;
  readonly ask: bigint | undefined;
};

/** A report as the chart draws it. */
export type Span = ListedSpan & { readonly price: bigint };

export const spanOf = (live: LiveReport): ListedSpan => ({
  feedId: live.feedId,
  startMs: live.validFromMs,
  endMs: windowEndMs(live),
  observedMs: live.observationsMs,
  timestamp: live.report.observationsTimestamp,
  price: live.decoded?.price,
  bid: live.decoded?.bid,
  ask: live.decoded?.ask,
});

/** The spans that can be drawn. */
export const pricedOf = (spans: readonly ListedSpan[]): readonly Span[] =>
  spans.filter((span): span is Span => span.price !== undefined);

/** Adds spans, each once, in order; those that end before `keepFromMs` are dropped. */
export function addSpans<S extends ListedSpan>(
  spans: readonly S[],
  added: readonly S[],
  keepFromMs: number,
): readonly S[] {
  const byEnd = new Map([...spans, ...added].map((span) => [span.endMs, span]));
  return [...byEnd.values()].filter(({ endMs }) => endMs > keepFromMs).sort((a, b) => a.endMs - b.endMs);
}

/** The part of a span that lies in one second; `from` and `to` are shares of that second. */
export type Piece = { readonly span: Span; readonly from: number; readonly to: number };

/** A second of the chart, with the reports that are valid in it. */
export type SecondPoint = { readonly time: number; readonly pieces: readonly Piece[] };

/** The seconds of a range, both ends included, in which a report is valid; spans are in order. */
export function secondsOf(spans: readonly Span[], from: number, to: number): readonly SecondPoint[] {
  const pieces = new Map<number, Piece[]>();
  for (const span of spans) {
    const first = Math.max(from, Math.floor(span.startMs / 1_000));
    const last = Math.min(to, Math.ceil(span.endMs / 1_000) - 1);
    for (let second = first; second <= last; second += 1) {
      const share = (ms: number): number => Math.min(1, Math.max(0, ms / 1_000 - second));
      const piece = { span, from: share(span.startMs), to: share(span.endMs) };
      const found = pieces.get(second);
      if (found === undefined) pieces.set(second, [piece]);
      else found.push(piece);
    }
  }
  return [...pieces].sort(([a], [b]) => a - b).map(([time, found]) => ({ time, pieces: found }));
}

/** A value with 18 decimals as a float coordinate, only for drawing. */
export const toCoordinate = (value: bigint): number => Number(value) / 1e18;

/** Adds a stream's newest reports, in order, to its candles, by the server's rule, so that the page need not reload them. */
export function addToCandles(
  candles: readonly Candle[],
  reports: readonly Pick<Span, 'price' | 'timestamp'>[],
  resolution: number,
): readonly Candle[] {
  if (reports.length === 0) return candles;
  const sum = [...candles];
  for (const { price, timestamp: second } of reports) {
    const timestamp = Math.floor(second / resolution) * resolution;
    const last = sum.at(-1);
    if (last !== undefined && last.timestamp > timestamp) continue;
    if (last?.timestamp !== timestamp)
      sum.push({ timestamp, open: price, high: price, low: price, close: price, reports: 1 });
    else
      sum[sum.length - 1] = {
        ...last,
        high: price > last.high ? price : last.high,
        low: price < last.low ? price : last.low,
        close: price,
        reports: last.reports + 1,
      };
  }
  return sum;
}

/** Most digits of a price. */
const digitsMax = 18;

/** Digits after the decimal point on an axis of this height, the same for all its labels, and enough for them to differ. */
export function axisDigits(value: number, height = Number.POSITIVE_INFINITY): number {
  if (height > 0 && Number.isFinite(height))
    return Math.min(digitsMax, Math.max(2, 2 - Math.floor(Math.log10(height))));
  const size = Math.abs(value);
  return size === 0 ? 2 : Math.min(digitsMax, Math.max(2, 5 - Math.floor(Math.log10(size))));
}

/** A flat price still has an axis: a thousandth of it to each side. */
export function widenFlat(
  range: { readonly minValue: number; readonly maxValue: number } | null,
): { readonly minValue: number; readonly maxValue: number } | null {
  if (range === null || range.maxValue > range.minValue) return range;
  const margin = Math.abs(range.minValue) / 1_000 || 1;
  return { minValue: range.minValue - margin, maxValue: range.maxValue + margin };
}
