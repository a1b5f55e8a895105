// The chart on its canvas. Loaded on demand by chart.tsx, because the chart library is as large as the rest of the page.
import {
  type AutoscaleInfo,
  CandlestickSeries,
  type ChartOptions,
  ColorType,
  CrosshairMode,
  createChart,
  type DeepPartial,
  type IChartApi,
  type MouseEventParams,
  type Time,
  type UTCTimestamp,
} from 'lightweight-charts';
import { axisDigits, type CandlePoint, type SecondPoint, widenFlat } from './chart-spans.ts';
import { createSpanView } from './span-series.ts';

export type ChartColors = {
  readonly text: string;
  readonly line: string;
  readonly grid: string;
  readonly crosshair: string;
  readonly label: string;
  readonly band: string;
  readonly up: string;
  readonly down: string;
};

/** The time under the pointer. */
export type ChartTime = { readonly ms: number; readonly second: number };

export type ChartCanvas = {
  readonly showSeconds: (points: readonly SecondPoint[]) => void;
  readonly showCandles: (points: readonly CandlePoint[]) => void;
  readonly setColors: (colors: ChartColors) => void;
  readonly remove: () => void;
};

export type ChartHandlers = {
  readonly onHover: (time: ChartTime | undefined) => void;
  readonly onClick: (time: ChartTime) => void;
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
  rightPriceScale: { borderColor: grid, scaleMargins: { top: 0.12, bottom: 0.12 } },
  crosshair: {
    mode: CrosshairMode.Normal,
    vertLine: { color: crosshair, labelBackgroundColor: label },
    horzLine: { color: crosshair, labelBackgroundColor: label },
  },
});

/** Times are whole UTC seconds, as the library expects. */
const toTime = (seconds: number): UTCTimestamp => seconds as UTCTimestamp; // a name for the same number

const formatAxis = (value: number, height: number): string => {
  const digits = axisDigits(value, height);
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
};

/** The time under the pointer, with fractions of a second: several reports may be in one second. */
const timeUnder = (chart: IChartApi, { time, point }: MouseEventParams<Time>): ChartTime | undefined => {
  if (typeof time !== 'number' || point === undefined) return undefined;
  const center = chart.timeScale().timeToCoordinate(time);
  const { barSpacing } = chart.timeScale().options();
  const share = center === null ? 0.5 : Math.min(0.999, Math.max(0, (point.x - center) / barSpacing + 0.5));
  return { second: time, ms: time * 1_000 + Math.floor(share * 1_000) };
};

/** Draws into a container, which the chart fills. */
export const createChartCanvas = (
  container: HTMLElement,
  initial: ChartColors,
  { onHover, onClick }: ChartHandlers,
): ChartCanvas => {
  let colors = initial;
  let height = Number.POSITIVE_INFINITY;
  const formatter = (value: number): string => formatAxis(value, height);
  const autoscaleInfoProvider = (original: () => AutoscaleInfo | null): AutoscaleInfo | null => {
    const found = original();
    const priceRange = widenFlat(found?.priceRange ?? null);
    if (priceRange !== null) height = priceRange.maxValue - priceRange.minValue;
    return found === null ? null : { ...found, priceRange };
  };
  const chart = createChart(container, {
    ...optionsOf(colors),
    autoSize: true,
    // Only the buttons change the range: a finger that scrolls the page must not scroll the chart.
    handleScroll: false,
    handleScale: false,
    localization: { priceFormatter: formatter },
  });
  chart.applyOptions({ timeScale: { timeVisible: true, minBarSpacing: 0.1, lockVisibleTimeRangeOnResize: true } });
  const priceFormat = { type: 'custom', formatter, minMove: 1e-12 } as const;
  const plain = { priceFormat, priceLineVisible: false, lastValueVisible: false, autoscaleInfoProvider };
  const spans = chart.addCustomSeries(
    createSpanView(() => colors),
    plain,
  );
  const candles = chart.addSeries(CandlestickSeries, plain);
  const colorCandles = (): void =>
    candles.applyOptions({
      upColor: colors.up,
      wickUpColor: colors.up,
      downColor: colors.down,
      wickDownColor: colors.down,
      borderVisible: false,
    });
  colorCandles();
  chart.subscribeCrosshairMove((event) => onHover(timeUnder(chart, event)));
  chart.subscribeClick((event) => {
    const time = timeUnder(chart, event);
    if (time !== undefined) onClick(time);
  });
  // From the first to the last point: fitContent would cut off blank points at the end.
  const show = (count: number, secondsVisible: boolean): void => {
    chart.applyOptions({ timeScale: { secondsVisible } });
    chart.timeScale().setVisibleLogicalRange({ from: -0.5, to: count - 0.5 });
  };
  return {
    showSeconds: (points) => {
      candles.setData([]);
      spans.setData(points.map((point) => ({ ...point, time: toTime(point.time) })));
      show(points.length, true);
    },
    showCandles: (points) => {
      spans.setData([]);
      candles.setData(points.map((point) => ({ ...point, time: toTime(point.time) })));
      show(points.length, false);
    },
    setColors: (next) => {
      colors = next;
      chart.applyOptions(optionsOf(next));
      colorCandles();
    },
    remove: () => chart.remove(),
  };
};
