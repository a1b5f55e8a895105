// The axes of the chart: how prices and times are written, the marks of the time axis with their lines, and that no label is cut off or under
// another. The library would cut off the first and last time, and cover labels of the price axis with that of the newest price.
import {
  type AutoscaleInfo,
  type DeepPartial,
  type IChartApi,
  type IPrimitivePaneView,
  type ISeriesApi,
  type ISeriesPrimitive,
  type LocalizationOptions,
  type Logical,
  MismatchDirection,
  type PrimitivePaneViewZOrder,
  type Time,
} from 'lightweight-charts';
import { axisDigits, toCoordinate, widenFlat } from '../../chart-spans.ts';
import type { SeriesPoint } from '../price-series.ts';
import { type ChartGrid, type ChartWindow, stepOf } from '../resolution.ts';
import { type SplitTime, type TimeMark, timeMarks } from './time-marks.ts';

/** Of the labels, in CSS pixels. */
export const axisFont = { size: 11, family: 'system-ui, sans-serif' } as const;

export type AxisColors = { readonly text: string; readonly grid: string };

type Target = Parameters<NonNullable<ReturnType<IPrimitivePaneView['renderer']>>['draw']>[0];

const viewOf = (zOrder: PrimitivePaneViewZOrder, draw: (target: Target) => void): IPrimitivePaneView => ({
  zOrder: () => zOrder,
  renderer: () => ({ draw }),
});

/** Formats the labels of an axis; a format is made once per number of digits, because making one takes longer than drawing a frame. */
const createAxisFormat = () => {
  const formats = new Map<number, Intl.NumberFormat>();
  return (value: number, height: number): string => {
    const digits = axisDigits(value, height);
    const known =
      formats.get(digits) ??
      new Intl.NumberFormat('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
    formats.set(digits, known);
    return known.format(value);
  };
};

/** The price axis: its numbers, with as many digits as its height needs, and its range. */
export function createPriceAxis() {
  let height = Number.POSITIVE_INFINITY;
  const formatAxis = createAxisFormat();
  return {
    formatter: (value: number): string => formatAxis(value, height),
    autoscaleInfoProvider: (original: () => AutoscaleInfo | null): AutoscaleInfo | null => {
      const found = original();
      const priceRange = widenFlat(found?.priceRange ?? null);
      if (priceRange !== null) height = priceRange.maxValue - priceRange.minValue;
      return found === null ? null : { ...found, priceRange };
    },
  };
}

/** A change on the axis of a comparison: `−1.25 %`. */
const formatChange = (percent: number): string =>
  `${(Math.round(percent * 100) / 100 || 0).toFixed(2).replace('-', '−')} %`;

type PriceSeries = ISeriesApi<'Custom', Time, SeriesPoint | { time: Time }>;

/** The height of the newest price's label. */
const labelPixels = 18;

/** The price of which the library shows changes in percent: the last one of the first bar in view. */
const percentBase = (chart: IChartApi, series: PriceSeries): number | undefined => {
  const from = chart.timeScale().getVisibleLogicalRange()?.from;
  if (from === undefined) return undefined;
  const point = series.dataByIndex(Math.floor(from), MismatchDirection.NearestRight);
  if (point === null || !('time' in point)) return undefined;
  const { close, pieces } = point as SeriesPoint; // a point without either has no price
  const last = pieces?.at(-1)?.span.price;
  return close ?? (last === undefined ? undefined : toCoordinate(last));
};

/** Clears labels of the price axis where the label of the newest price is drawn afterwards. */
export function attachLastLabel(
  chart: IChartApi,
  series: PriceSeries,
  { formatter }: ReturnType<typeof createPriceAxis>,
  lastPrice: () => number | undefined,
): void {
  let [marks, isPercent]: [readonly number[], boolean] = [[], false];
  const localization: DeepPartial<LocalizationOptions<Time>> = {
    priceFormatter: formatter,
    tickmarksPriceFormatter: (prices: number[]) => {
      [marks, isPercent] = [prices, false];
      return prices.map(formatter);
    },
    percentageFormatter: formatChange,
    tickmarksPercentageFormatter: (values: number[]) => {
      [marks, isPercent] = [values, true];
      return values.map(formatChange);
    },
  };
  chart.applyOptions({ localization });
  const yOf = (price: number | undefined): number | null =>
    price === undefined ? null : series.priceToCoordinate(price);
  const draw = (target: Target): void => {
    const price = yOf(lastPrice());
    if (price === null) return;
    const base = isPercent ? percentBase(chart, series) : undefined;
    const heights = marks.map((value) => yOf(isPercent ? base && base * (1 + value / 100) : value));
    target.useMediaCoordinateSpace(({ context, mediaSize: { width, height } }) => {
      const label = Math.min(Math.max(price, labelPixels / 2), height - labelPixels / 2); // at an edge, the library moves it inside
      for (const y of heights)
        if (y !== null && Math.abs(y - label) < (labelPixels + axisFont.size) / 2)
          context.clearRect(2, y - 7, width, 14); // the axis itself is the first pixel
    });
  };
  const views = [viewOf('normal', draw)];
  const primitive: ISeriesPrimitive<Time> = { priceAxisPaneViews: () => views };
  series.attachPrimitive(primitive);
}

type DrawnMark = TimeMark & { readonly x: number };

const drawLines = (target: Target, marks: readonly DrawnMark[], color: string): void =>
  target.useBitmapCoordinateSpace(({ context, bitmapSize, horizontalPixelRatio: ratio }) => {
    context.fillStyle = color;
    const width = Math.max(1, Math.floor(ratio));
    for (const { x } of marks) context.fillRect(Math.round(x * ratio - width / 2), 0, width, bitmapSize.height);
  });

const drawLabels = (target: Target, marks: readonly DrawnMark[], color: string): void =>
  target.useMediaCoordinateSpace(({ context, mediaSize }) => {
    context.fillStyle = color;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (const { x, label, isDay } of marks) {
      context.font = `${isDay ? 'bold ' : ''}${axisFont.size}px ${axisFont.family}`;
      const half = context.measureText(label).width / 2;
      if (x - half >= 0 && x + half <= mediaSize.width) context.fillText(label, x, mediaSize.height / 2);
    }
  });

/** Draws the marks of the time axis, in place of the library's: their lines and those labels that fit. */
export function attachTimeAxis(chart: IChartApi, series: ISeriesApi<'Custom'>, colors: () => AxisColors) {
  let view: { readonly grid: ChartGrid; readonly window: ChartWindow } | undefined;
  let split: SplitTime | undefined;
  let marks: readonly DrawnMark[] = [];
  const updateAllViews = (): void => {
    if (view === undefined || split === undefined) return;
    const scale = chart.timeScale();
    const [{ start }, step] = [view.grid, stepOf(view.grid.resolution)];
    marks = timeMarks(view.window, scale.width(), split).flatMap((mark) => {
      const x = scale.logicalToCoordinate(((mark.second - start) / step) as Logical); // a name for an index of bars
      return x === null ? [] : [{ ...mark, x }];
    });
  };
  const lines = [viewOf('bottom', (target) => drawLines(target, marks, colors().grid))];
  const labels = [viewOf('normal', (target) => drawLabels(target, marks, colors().text))];
  series.attachPrimitive({ updateAllViews, paneViews: () => lines, timeAxisPaneViews: () => labels });
  chart.applyOptions({ grid: { vertLines: { visible: false } }, timeScale: { tickMarkFormatter: () => '' } });
  return {
    setTimes: (next: SplitTime): void => {
      split = next;
      const timeFormatter = (time: Time): string => {
        const { day, clock } = next(Number(time) * 1_000);
        return `${day} ${clock}`;
      };
      chart.applyOptions({ localization: { timeFormatter } });
    },
    /** Before the library is told the same, so that one frame has both. */
    setView: (grid: ChartGrid, window: ChartWindow): void => {
      view = { grid, window };
    },
  };
}
