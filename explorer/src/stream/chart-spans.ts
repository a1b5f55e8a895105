// The values that the price chart draws: reports over seconds, candles over buckets. Gaps stay blank. Coordinates are floats; printed
// values come from the exact integers.
import type { Candle, DecodedReport } from '@sealpost/client';
import { windowEndMs } from '../ui/interval.ts';

/** A report as the chart draws it. */
export type Span = {
  readonly feedId: string;
  /** First millisecond of the window, and the first one after it. */
  readonly startMs: number;
  readonly endMs: number;
  /** The observation time, the last of the window. */
  readonly observedMs: number;
  /** The second in its permalink. */
  readonly timestamp: number;
  readonly price: bigint;
  readonly bid: bigint | undefined;
  readonly ask: bigint | undefined;
};

export const spanOf = (report: DecodedReport): Span => ({
  feedId: report.feedId,
  startMs: report.validFromMs,
  endMs: windowEndMs(report),
  observedMs: report.observationsMs,
  timestamp: report.observationsTimestamp,
  price: report.price,
  bid: report.bid,
  ask: report.ask,
});

/** Adds spans, each once, in order; those that end before `keepFromMs` are dropped. */
export const addSpans = (spans: readonly Span[], added: readonly Span[], keepFromMs: number): readonly Span[] => {
  const byEnd = new Map([...spans, ...added].map((span) => [span.endMs, span]));
  return [...byEnd.values()].filter(({ endMs }) => endMs > keepFromMs).sort((a, b) => a.endMs - b.endMs);
};

/** The part of a span that lies in one second; `from` and `to` are shares of that second. */
export type Piece = { readonly span: Span; readonly from: number; readonly to: number };

/** One second of the chart; without pieces it is blank, and keeps time linear. */
export type SecondPoint = { readonly time: number; readonly pieces?: readonly Piece[] };

/** Every second of a range, both ends included, with the reports that are valid in it. */
export const secondsOf = (spans: readonly Span[], from: number, to: number): readonly SecondPoint[] => {
  const pieces = new Map<number, Piece[]>();
  for (const span of spans) {
    const first = Math.max(from, Math.floor(span.startMs / 1_000));
    const last = Math.min(to, Math.ceil(span.endMs / 1_000) - 1);
    for (let second = first; second <= last; second += 1) {
      const share = (ms: number): number => Math.min(1, Math.max(0, ms / 1_000 - second));
      const piece = { span, from: share(span.startMs), to: share(span.endMs) };
      pieces.set(second, [...(pieces.get(second) ?? []), piece]);
    }
  }
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i): SecondPoint => {
    const found = pieces.get(from + i);
    return found === undefined ? { time: from + i } : { time: from + i, pieces: found };
  });
};

/** The report that is valid at a time; undefined in a gap. */
export const spanAt = (spans: readonly Span[], ms: number): Span | undefined =>
  spans.find(({ startMs, endMs }) => startMs <= ms && ms < endMs);

/** A value with 18 decimals as a float coordinate, only for drawing. */
export const toCoordinate = (value: bigint): number => Number(value) / 1e18;

/** A bucket of the chart; without prices it is blank. */
export type CandlePoint = {
  readonly time: number;
  readonly open?: number;
  readonly high?: number;
  readonly low?: number;
  readonly close?: number;
};

/** Every bucket of a range; those without reports are blank. */
export const candlePoints = (
  candles: readonly Candle[],
  from: number,
  to: number,
  resolution: number,
): readonly CandlePoint[] => {
  const start = Math.floor(from / resolution) * resolution;
  const byTime = new Map(candles.map((candle) => [candle.timestamp, candle]));
  return Array.from({ length: Math.max(0, Math.floor((to - start) / resolution) + 1) }, (_, i): CandlePoint => {
    const time = start + i * resolution;
    const candle = byTime.get(time);
    if (candle === undefined) return { time };
    const { open, high, low, close } = candle;
    return {
      time,
      open: toCoordinate(open),
      high: toCoordinate(high),
      low: toCoordinate(low),
      close: toCoordinate(close),
    };
  });
};

/** Adds a stream's newest report to its candles, by the server's rule, so that the page need not reload them. */
export const addToCandles = (
  candles: readonly Candle[],
  { price, timestamp: second }: Pick<Span, 'price' | 'timestamp'>,
  resolution: number,
): readonly Candle[] => {
  const timestamp = Math.floor(second / resolution) * resolution;
  const last = candles.at(-1);
  if (last !== undefined && last.timestamp > timestamp) return candles;
  if (last?.timestamp !== timestamp)
    return [...candles, { timestamp, open: price, high: price, low: price, close: price, reports: 1 }];
  const next: Candle = {
    ...last,
    high: price > last.high ? price : last.high,
    low: price < last.low ? price : last.low,
    close: price,
    reports: last.reports + 1,
  };
  return [...candles.slice(0, -1), next];
};

/** The ranges of the chart; without a resolution, a range is drawn from reports, else from candles. */
export const ranges = {
  live: { label: '90 s', words: '90 seconds', seconds: 90, resolution: undefined },
  '5m': { label: '5 min', words: '5 minutes', seconds: 300, resolution: undefined },
  '1h': { label: '1 h', words: 'hour', seconds: 3_600, resolution: 60 },
  '1d': { label: '1 day', words: 'day', seconds: 86_400, resolution: 300 },
} as const satisfies Record<
  string,
  { readonly label: string; readonly words: string; readonly seconds: number; readonly resolution: number | undefined }
>;

export type RangeName = keyof typeof ranges;
export const rangeNames = Object.keys(ranges) as readonly RangeName[]; // keys of its own

/** The range in the address's query; `live` by default. */
export const parseRange = (text: string | null): RangeName =>
  text !== null && Object.hasOwn(ranges, text) ? (text as RangeName) : 'live'; // it is a key

/** Where a change starts. */
export type RangeStart = {
  readonly price: bigint;
  /** When that price was observed. */
  readonly second: number;
  /** Does it cover the range? False if the first report is later than the range's start. */
  readonly isWhole: boolean;
};

/** The first report in a range, or the opening of its first candle. */
export const rangeStartOf = (
  range: RangeName,
  spans: readonly Span[],
  candles: readonly Candle[] | undefined,
  nowSeconds: number,
): RangeStart | undefined => {
  const { seconds, resolution } = ranges[range];
  const from = nowSeconds - seconds;
  if (resolution !== undefined) {
    const [candle] = candles ?? [];
    if (candle === undefined) return undefined;
    return { price: candle.open, second: candle.timestamp, isWhole: candle.timestamp <= from + resolution };
  }
  const span = spans.find(({ timestamp }) => timestamp > from);
  if (span === undefined) return undefined;
  const lengthSeconds = Math.ceil((span.endMs - span.startMs) / 1_000);
  return { price: span.price, second: span.timestamp, isWhole: span.timestamp <= from + lengthSeconds + 1 };
};

/** Digits after the decimal point on an axis of this height, enough for its labels to differ. */
export const axisDigits = (value: number, height = Number.POSITIVE_INFINITY): number => {
  const size = Math.abs(value);
  const bySize = size === 0 ? 2 : 5 - Math.floor(Math.log10(size));
  const byHeight = height > 0 && Number.isFinite(height) ? 2 - Math.floor(Math.log10(height)) : 0;
  return Math.min(12, Math.max(2, Math.min(10, bySize), byHeight));
};

/** A flat price still has an axis: a thousandth of it to each side. */
export const widenFlat = (
  range: { readonly minValue: number; readonly maxValue: number } | null,
): { readonly minValue: number; readonly maxValue: number } | null => {
  if (range === null || range.maxValue > range.minValue) return range;
  const margin = Math.abs(range.minValue) / 1_000 || 1;
  return { minValue: range.minValue - margin, maxValue: range.maxValue + margin };
};
