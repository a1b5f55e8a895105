// The chart on its canvas. Loaded on demand by chart.tsx, because the chart library is as large as the rest of the page. It draws; pointer
// and keys are gestures.ts.

import {
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
  type Time,
  type UTCTimestamp,
} from 'lightweight-charts';
import { attachLastLabel, attachTimeAxis, axisFont, createPriceAxis } from './axes/axes.ts';
import type { SplitTime } from './axes/time-marks.ts';
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
    fontFamily: axisFont.family,
    fontSize: axisFont.size,
    // The library's logo needs an inline style element, which the content security policy blocks; the footer has the attribution.
    attributionLogo: false,
  },
  grid: { horzLines: { color: grid } },
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

/** Draws nothing: it has a point for every bar, so that time is linear across gaps and before the first report. */
const gridView: ICustomSeriesPaneView<Time, { time: Time }, CustomSeriesOptions> = {
  renderer: () => ({ draw: () => {} }),
  update: () => {},
  priceValueBuilder: () => [0],
  isWhitespace: (point): point is { time: Time } => point === undefined,
  defaultOptions: () => customSeriesDefaultOptions,
};

const createSeries = (
  chart: IChartApi,
  { formatter, autoscaleInfoProvider }: ReturnType<typeof createPriceAxis>,
  style: () => SeriesStyle,
  comparedStyle: () => SeriesStyle,
) => {
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
    price: (): number | undefined => line?.options().price,
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
export function createChartCanvas(container: HTMLElement, initial: ChartColors): ChartCanvas {
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
  const priceAxis = createPriceAxis();
  const { bars, prices, compared } = createSeries(
    chart,
    priceAxis,
    () => ({ colors, drawAs }),
    () => ({ colors: { ...colors, line: colors.other }, drawAs: 'line' }),
  );
  const lastLine = createLastLine(prices);
  attachLastLabel(chart, prices, priceAxis, lastLine.price);
  const timeAxis = attachTimeAxis(chart, bars, () => colors);
  // A bar reaches half a bar to both sides of its index.
  const setWindow = (window: ChartWindow): void => {
    if (grid === undefined) return;
    timeAxis.setView(grid, window);
    const { from, to } = window;
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
      if (isOtherGrid) bars.setData(barTimes(grid));
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
    setTimes: timeAxis.setTimes,
    plotWidth: () => chart.timeScale().width(),
    screenshot: () => chart.takeScreenshot(),
    remove: () => chart.remove(),
  };
}
