// What other parts of the page show of the chart's view: the change of the price in it, and its candles. Updated once a pan or zoom is over.
import { computed, type ReadonlySignal } from '@preact/signals';
import type { Candle } from '@sealpost/client';
import { type ChartBars, edgesOf, priceOf } from './bars.ts';
import { type ChartView, rangeWordsOf, windowOf } from './chart-view.ts';
import type { ChartModel } from './model.ts';
import { type ChartWindow, stepOf } from './resolution.ts';

/** Where a change starts. */
export type RangeStart = {
  readonly price: bigint;
  /** When that price was observed, or the first second of its candle. */
  readonly second: number;
  /** False if `second` is only that of a candle: its first report may be later. */
  readonly isExact: boolean;
  /** Does it cover the range? False if the first report is later than the range's start. */
  readonly isWhole: boolean;
};

/** The first report in view, or the opening of its first candle. */
export function rangeStartOf({ grid, spans, candles }: ChartBars, { from, to }: ChartWindow): RangeStart | undefined {
  if (grid.resolution !== 'reports') {
    const candle = candles.find(({ timestamp }) => timestamp >= from && timestamp < to);
    if (candle === undefined) return undefined;
    const isWhole = candle.timestamp <= from + Math.max(stepOf(grid.resolution), (to - from) / 50);
    return { price: candle.open, second: candle.timestamp, isExact: grid.resolution === 1, isWhole };
  }
  const span = spans.find(({ timestamp }) => timestamp >= from && timestamp < to);
  if (span === undefined) return undefined;
  const lengthSeconds = Math.ceil((span.endMs - span.startMs) / 1_000);
  const isWhole = span.timestamp <= from + lengthSeconds;
  return { price: span.price, second: span.timestamp, isExact: true, isWhole };
}

export type ViewedChange = {
  readonly start: RangeStart;
  /** The last price in view; undefined while the chart follows the newest one. */
  readonly endPrice: bigint | undefined;
  readonly words: string;
};

export type ViewedRange = {
  readonly change: ViewedChange | undefined;
  /** Undefined until loaded, and in views that are drawn from reports. */
  readonly candles: readonly Candle[] | undefined;
};

const endPriceOf = (bars: ChartBars, { from, to }: ChartWindow): bigint | undefined =>
  priceOf(edgesOf(bars, from * 1_000, to * 1_000)?.last);

const changeIn = (bars: ChartBars, { seconds, end }: ChartView, window: ChartWindow): ViewedChange | undefined => {
  const start = rangeStartOf(bars, window);
  if (start === undefined) return undefined;
  if (end === undefined) return { start, endPrice: undefined, words: `in the last ${rangeWordsOf(seconds)}` };
  return { start, endPrice: endPriceOf(bars, window), words: 'in the time shown' };
};

export function createViewed(
  { view, bars, now }: Pick<ChartModel, 'view' | 'bars' | 'now'>,
  settled: ReadonlySignal<ChartView>,
): ReadonlySignal<ViewedRange> {
  let last: ViewedRange = { change: undefined, candles: undefined };
  return computed(() => {
    if (view.value !== settled.value || bars.value === undefined) return last;
    const window = windowOf(view.value, now.value);
    const { grid, candles } = bars.value;
    last = {
      change: changeIn(bars.value, view.value, window),
      candles:
        grid.resolution === 'reports'
          ? undefined
          : candles.filter(({ timestamp }) => timestamp >= window.from && timestamp < window.to),
    };
    return last;
  });
}
