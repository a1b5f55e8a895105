// The chart on its canvas. Loaded on demand by chart.tsx, because the chart library is as large as the rest of the page. It draws; pointer
// and keys are gestures.ts.

import { daySeconds } from '@sealpost/protocol';
import {
  type AutoscaleInfo,
  type ChartOptions,
  ColorType,
  CrosshairMode,
  type CustomSeriesOptions,
  createChart,
  customSeriesDefaultOptions,
  type DeepPartial,
  type IChartApi,
  type ICustomSeriesPaneView,
  type IPriceLine,
  LineStyle,
  PriceScaleMode,
  TickMarkType,
  type Time,
  type UTCTimestamp,
} from 'lightweight-charts';
import { axisDigits, widenFlat } from '../chart-spans.ts';
import type { ChartPoint } from './bars.ts';
import { createPriceView, type SeriesColors, type SeriesPoint, type SeriesStyle } from './price-series.ts';
import { type ChartGrid, type ChartWindow, stepOf } from './resolution.ts';

export type ChartColors = SeriesColors & {
  readonly text: string;
  readonly grid: string;
  readonly crosshair: string;
  readonly label: string;
  readonly other: string;
};

/** What is drawn. */
export type ChartPicture = {
  readonly grid: ChartGrid;
  readonly points: readonly ChartPoint[];
  /** Of the second stream, on a percent scale; undefined without one. */
  readonly compared: readonly ChartPoint[] | undefined;
  readonly drawAs: SeriesStyle['drawAs'];
};

export type SplitTime = (ms: number) => { readonly day: string; readonly clock: string };

export type ChartCanvas = {
  readonly show: (picture: ChartPicture, window: ChartWindow) => void;
  readonly setWindow: (window: ChartWindow) => void;
  /** The newest price; `isOld` mutes it. */
  readonly setLastPrice: (price: number | undefined, isOld: boolean) => void;
  /** Crosshair at a second, and at a price unless there is none. */
  readonly setCrosshair: (at: { readonly second: number; readonly price: number | undefined } | undefined) => void;
  readonly setColors: (colors: ChartColors) => void;
  /** How the time axis writes a time: its day and its time of day. */
  readonly setTimes: (split: SplitTime) => void;
  /** Width in CSS pixels of the plot, without the price axis. */
  readonly plotWidth: () => number;
  /** The chart as it is, without crosshair; its background is transparent. */
  readonly screenshot: () => HTMLCanvasElement;
  readonly remove: () => void;
};

const optionsOf = ({ text, grid, crosshair, label }: ChartColors): DeepPartial<ChartOptions> => ({
  layout: {
    background: { type: ColorType.Solid, color: 'transparent' },
    textColor: text,
    fontFamily: 'system-ui, sans-serif',
    fontSize: 11,
    // The library's logo needs an inline style element, which the content security policy blocks; the footer has the attribution.
    attributionLogo: false,
  },
  grid: { vertLines: { color: grid }, horzLines: { color: grid } },
  timeScale: { borderColor: grid },
  rightPriceScale: { borderColor: grid, entireTextOnly: true, scaleMargins: { top: 0.12, bottom: 0.12 } },
  crosshair: {
    mode: CrosshairMode.Normal,
    vertLine: { color: crosshair, labelBackgroundColor: label },
    horzLine: { color: crosshair, labelBackgroundColor: label },
  },
});

/** Times are whole UTC seconds, as the library expects. */
const toTime = (seconds: number): UTCTimestamp => seconds as UTCTimestamp; // a name for the same number

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

/** What the marks of the time axis say: times, with dates where a day starts; only the latter; or the date of any mark. */
type TickStyle = 'times' | 'day starts' | 'dates';

/** Of a view of more than two weeks, no two marks are in one day. */
const tickStyleOf = (seconds: number): TickStyle =>
  seconds > 14 * daySeconds ? 'dates' : seconds > 4 * daySeconds ? 'day starts' : 'times';

/** `09:28`, with seconds if marks are that close; where a day starts, its date. */
const formatTick = (split: SplitTime, style: TickStyle, time: Time, type: TickMarkType): string => {
  const { day, clock } = split(Number(time) * 1_000);
  if (style !== 'times') return style === 'day starts' && type >= TickMarkType.Time ? '' : day.slice(5);
  if (type === TickMarkType.TimeWithSeconds) return clock;
  return clock.startsWith('00:00') ? day.slice(5) : clock.slice(0, 5);
};

const timeOptions = (split: SplitTime, style: TickStyle): DeepPartial<ChartOptions> => ({
  localization: {
    timeFormatter: (time: Time) => {
      const { day, clock } = split(Number(time) * 1_000);
      return `${day} ${clock}`;
    },
  },
  timeScale: { tickMarkFormatter: (time: Time, type: TickMarkType) => formatTick(split, style, time, type) },
});

/** How the time axis writes times: by the zone, and by the length of the view. */
const createTimeAxis = (chart: IChartApi) => {
  let split: SplitTime | undefined;
  let style: TickStyle = 'times';
  const apply = (): void => {
    if (split !== undefined) chart.applyOptions(timeOptions(split, style));
  };
  return {
    setTimes: (next: SplitTime): void => {
      split = next;
      apply();
    },
    setLength: (seconds: number): void => {
      if (style === tickStyleOf(seconds)) return;
      style = tickStyleOf(seconds);
      apply();
    },
  };
};

/** Draws nothing: it has a point for every bar, so that time is linear across gaps and before the first report. */
const gridView: ICustomSeriesPaneView<Time, { time: Time }, CustomSeriesOptions> = {
  renderer: () => ({ draw: () => {} }),
  update: () => {},
  priceValueBuilder: () => [0],
  isWhitespace: (point): point is { time: Time } => point === undefined,
  defaultOptions: () => customSeriesDefaultOptions,
};

const createSeries = (chart: IChartApi, style: () => SeriesStyle, comparedStyle: () => SeriesStyle) => {
  let height = Number.POSITIVE_INFINITY;
  const formatAxis = createAxisFormat();
  const formatter = (value: number): string => formatAxis(value, height);
  const autoscaleInfoProvider = (original: () => AutoscaleInfo | null): AutoscaleInfo | null => {
    const found = original();
    const priceRange = widenFlat(found?.priceRange ?? null);
    if (priceRange !== null) height = priceRange.maxValue - priceRange.minValue;
    return found === null ? null : { ...found, priceRange };
  };
  chart.applyOptions({ localization: { priceFormatter: formatter } });
  const plain = { priceLineVisible: false, lastValueVisible: false };
  const priceFormat = { type: 'custom', formatter, minMove: 1e-16 } as const;
  const bars = chart.addCustomSeries(gridView, {
    ...plain,
    priceScaleId: 'bars',
    autoscaleInfoProvider: () => null,
  });
  const prices = chart.addCustomSeries(createPriceView(style), { ...plain, priceFormat, autoscaleInfoProvider });
  const compared = chart.addCustomSeries(createPriceView(comparedStyle), { ...plain, priceFormat });
  return { bars, prices, compared };
};

/** The line at the newest price, with a label on the axis. */
const createLastLine = (series: ReturnType<typeof createSeries>['prices']) => {
  let line: IPriceLine | undefined;
  return {
    set: (price: number | undefined, color: string): void => {
      if (price === undefined) {
        if (line !== undefined) series.removePriceLine(line);
        line = undefined;
        return;
      }
      const options = { price, color, lineStyle: LineStyle.Dotted, lineWidth: 1 as const, axisLabelVisible: true };
      if (line === undefined) line = series.createPriceLine(options);
      else line.applyOptions(options);
    },
  };
};

const seriesPoints = (points: readonly ChartPoint[]): SeriesPoint[] =>
  points.map((point) => ({ ...point, time: toTime(point.time) }));

/** Every bar of a grid. */
const barTimes = ({ start, end, resolution }: ChartGrid): { time: UTCTimestamp }[] => {
  const step = stepOf(resolution);
  return Array.from({ length: Math.round((end - start) / step) }, (_, i) => ({ time: toTime(start + i * step) }));
};

/** Draws into a container, which the chart fills. */
export const createChartCanvas = (container: HTMLElement, initial: ChartColors): ChartCanvas => {
  let colors = initial;
  let grid: ChartGrid | undefined;
  let drawAs: SeriesStyle['drawAs'] = 'candles';
  let hasPoints = false;
  let isCompared = false;
  const chart = createChart(container, {
    ...optionsOf(colors),
    autoSize: true,
    handleScroll: false,
    handleScale: false,
  });
  chart.applyOptions({ timeScale: { timeVisible: true, minBarSpacing: 0.05, lockVisibleTimeRangeOnResize: true } });
  const { bars, prices, compared } = createSeries(
    chart,
    () => ({ colors, drawAs }),
    () => ({ colors: { ...colors, line: colors.other }, drawAs: 'line' }),
  );
  const lastLine = createLastLine(prices);
  const axis = createTimeAxis(chart);
  // A bar reaches half a bar to both sides of its index.
  const setWindow = ({ from, to }: ChartWindow): void => {
    if (grid === undefined) return;
    axis.setLength(to - from);
    const [{ start }, step] = [grid, stepOf(grid.resolution)];
    chart.timeScale().setVisibleLogicalRange({ from: (from - start) / step, to: (to - start) / step - 1 });
  };
  return {
    setWindow,
    show: (picture, window) => {
      const isOtherGrid = JSON.stringify(grid) !== JSON.stringify(picture.grid);
      ({ grid, drawAs } = picture);
      hasPoints = picture.points.length > 0;
      // As few calls as can be: with each, the library computes its time axis again. Nothing is drawn before all are done.
      if (isOtherGrid) {
        bars.setData(barTimes(grid));
        chart.applyOptions({ timeScale: { secondsVisible: stepOf(grid.resolution) === 1 } });
      }
      prices.setData(seriesPoints(picture.points));
      if (isCompared || picture.compared !== undefined) compared.setData(seriesPoints(picture.compared ?? []));
      isCompared = picture.compared !== undefined;
      const mode = picture.compared === undefined ? PriceScaleMode.Normal : PriceScaleMode.Percentage;
      if (chart.priceScale('right').options().mode !== mode) chart.priceScale('right').applyOptions({ mode });
      setWindow(window);
    },
    setLastPrice: (price, isOld) => lastLine.set(price, isOld ? colors.crosshair : colors.line),
    setCrosshair: (at) => {
      // The library needs a price, and prices on its axis; a gap is only highlighted.
      if (at?.price === undefined || !hasPoints) chart.clearCrosshairPosition();
      else chart.setCrosshairPosition(at.price, toTime(at.second), prices);
    },
    setColors: (next) => {
      colors = next;
      chart.applyOptions(optionsOf(next));
    },
    setTimes: axis.setTimes,
    plotWidth: () => chart.timeScale().width(),
    screenshot: () => chart.takeScreenshot(),
    remove: () => chart.remove(),
  };
};
