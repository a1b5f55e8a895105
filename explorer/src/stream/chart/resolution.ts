// Which data a length of time is drawn from: single reports, or candles of a fitting length; and in which aligned chunks it is loaded.
import { candleResolutions } from '@sealpost/protocol';

/** Seconds; the end is the first one after it. */
export type ChartWindow = { readonly from: number; readonly to: number };

/** Seconds of a bar; `reports` for the reports themselves, on a grid of seconds. */
export type ChartResolution = 'reports' | (typeof candleResolutions)[number];

/** The longest time that is drawn from reports. */
export const reportsSecondsMax = 300;
/** Up to this many bars are in view; a range between two resolutions uses the finer one. */
const barsMax = 360;
/** Candles of a second cost the server more than others: up to 24 minutes of them. */
const secondCandlesMax = 1_440;

/** The finest resolution that fits a length of time. */
export function resolutionOf(seconds: number): ChartResolution {
  if (seconds <= reportsSecondsMax) return 'reports';
  if (seconds <= secondCandlesMax) return 1;
  return candleResolutions.find((step) => step > 1 && seconds / step <= barsMax) ?? 86_400;
}

export const stepOf = (resolution: ChartResolution): number => (resolution === 'reports' ? 1 : resolution);

/** The end of the bar that a second is in. */
export function alignedEnd(second: number, resolution: ChartResolution): number {
  const step = stepOf(resolution);
  return Math.floor(second / step) * step + step;
}

/** Bars of a chunk, which is loaded with one request: 8 hours of minutes. */
const chunkBars = 480;
/** Seconds of a chunk of reports: 1,500 of them at 25 per second. */
const reportsChunkSeconds = 60;

export const chunkSecondsOf = (resolution: ChartResolution): number =>
  resolution === 'reports' ? reportsChunkSeconds : chunkBars * resolution;

/** The seconds of every bar that is drawn: whole chunks, with half a window more on both sides, so that panning finds them. */
export type ChartGrid = { readonly start: number; readonly end: number; readonly resolution: ChartResolution };

export function gridOf({ from, to }: ChartWindow, resolution: ChartResolution): ChartGrid {
  const chunk = chunkSecondsOf(resolution);
  const margin = (to - from) / 2;
  return {
    start: Math.max(0, Math.floor((from - margin) / chunk) * chunk),
    end: Math.ceil((to + margin) / chunk) * chunk,
    resolution,
  };
}

/** The starts of the chunks of a grid, those that a window needs first. */
export function chunksOf({ start, end, resolution }: ChartGrid, { from, to }: ChartWindow): readonly number[] {
  const chunk = chunkSecondsOf(resolution);
  const starts = Array.from({ length: Math.round((end - start) / chunk) }, (_, i) => start + i * chunk);
  const isInView = (at: number): boolean => at < to && at + chunk > from;
  return [...starts.filter(isInView), ...starts.filter((at) => !isInView(at))];
}
