// Draws prices on the canvas, with gaps as gaps: reports as bars over exactly the seconds in which they are valid, with a band from bid to ask
// behind them and a thin vertical line to the next report; candles; or a line through the closing prices.
import type {
  CustomData,
  CustomSeriesOptions,
  CustomSeriesPricePlotValues,
  ICustomSeriesPaneRenderer,
  ICustomSeriesPaneView,
  PaneRendererCustomData,
  PriceToCoordinateConverter,
  Time,
} from 'lightweight-charts';
import { customSeriesDefaultOptions } from 'lightweight-charts';
import { type Piece, toCoordinate } from '../chart-spans.ts';
import type { ChartPoint } from './bars.ts';

/** A bar in the chart library's form. */
export type SeriesPoint = CustomData<Time> & Omit<ChartPoint, 'time'>;

export type SeriesColors = {
  readonly line: string;
  readonly band: string;
  readonly bandEdge: string;
  readonly up: string;
  readonly down: string;
};

export type SeriesStyle = { readonly colors: SeriesColors; readonly drawAs: 'candles' | 'line' };

type Target = Parameters<ICustomSeriesPaneRenderer['draw']>[0];
type Scope = Parameters<Parameters<Target['useBitmapCoordinateSpace']>[0]>[0];
type Series = PaneRendererCustomData<Time, SeriesPoint>;
type ToY = (value: number) => number | null;
type DrawnPiece = { readonly left: number; readonly right: number; readonly piece: Piece };

const barPixels = 2.5;
const linePixels = 2;
/** Bars narrower than this have a band without edges, which would be dots. */
const edgePixels = 6;

/** The bars in view, and one more on each side, because half of it may be in view. */
const inView = ({ bars, visibleRange }: Series): Series['bars'] =>
  visibleRange === null ? [] : bars.slice(Math.max(0, visibleRange.from - 1), visibleRange.to + 2);

/** Pieces of reports with their edges in CSS pixels. */
const piecesOf = (series: Series): readonly DrawnPiece[] =>
  inView(series).flatMap(({ x, originalData }) =>
    (originalData.pieces ?? []).map((piece) => ({
      left: x + (piece.from - 0.5) * series.barSpacing,
      right: x + (piece.to - 0.5) * series.barSpacing,
      piece,
    })),
  );

const drawBand = (
  { context, horizontalPixelRatio: h, verticalPixelRatio: v }: Scope,
  drawn: readonly DrawnPiece[],
  toY: ToY,
  { band, bandEdge }: SeriesColors,
): void => {
  const edge = Math.max(1, Math.round(v));
  for (const { left, right, piece } of drawn) {
    const { bid, ask } = piece.span;
    if (bid === undefined || ask === undefined) continue;
    const [top, bottom] = [toY(toCoordinate(ask)), toY(toCoordinate(bid))];
    if (top === null || bottom === null) continue;
    const x = Math.round(left * h);
    const width = Math.max(1, Math.round(right * h) - x);
    context.fillStyle = band;
    context.fillRect(x, top * v, width, Math.max(1, (bottom - top) * v));
    if (right - left < edgePixels) continue;
    context.fillStyle = bandEdge;
    context.fillRect(x, Math.round(top * v), width, edge);
    context.fillRect(x, Math.round(bottom * v) - edge, width, edge);
  }
};

const drawReports = (
  { context, horizontalPixelRatio: h, verticalPixelRatio: v }: Scope,
  drawn: readonly DrawnPiece[],
  toY: ToY,
): void => {
  const height = Math.max(1, Math.round(barPixels * v));
  const upright = Math.max(1, Math.floor(h));
  let before: { readonly drawn: DrawnPiece; readonly y: number } | undefined;
  for (const one of drawn) {
    const y = toY(toCoordinate(one.piece.span.price));
    if (y === null) continue;
    const x = Math.round(one.left * h);
    context.fillRect(x, Math.round(y * v - height / 2), Math.max(1, Math.round(one.right * h) - x), height);
    const follows = before !== undefined && one.left - before.drawn.right < 0.5;
    if (before !== undefined && follows && before.drawn.piece.span !== one.piece.span)
      context.fillRect(x, Math.round(Math.min(before.y, y) * v), upright, Math.round(Math.abs(before.y - y) * v));
    before = { drawn: one, y };
  }
};

const drawCandles = (
  { context, horizontalPixelRatio: h, verticalPixelRatio: v }: Scope,
  series: Series,
  toY: ToY,
  { up, down }: SeriesColors,
): void => {
  const width = Math.max(1, Math.floor(series.barSpacing * 0.7 * h));
  const wick = Math.max(1, Math.min(width, Math.floor(h)));
  for (const { x, originalData } of inView(series)) {
    const { open, high, low, close } = originalData;
    if (open === undefined || high === undefined || low === undefined || close === undefined) continue;
    const ys = [open, high, low, close].map(toY);
    const [yOpen, yHigh, yLow, yClose] = ys;
    if (yOpen == null || yHigh == null || yLow == null || yClose == null) continue;
    context.fillStyle = close >= open ? up : down;
    const left = Math.round(x * h - width / 2);
    const top = Math.round(Math.min(yOpen, yClose) * v);
    context.fillRect(left, top, width, Math.max(Math.ceil(v), Math.round(Math.abs(yOpen - yClose) * v)));
    const wickTop = Math.round(yHigh * v);
    context.fillRect(Math.round(x * h - wick / 2), wickTop, wick, Math.round((yLow - yHigh) * v));
  }
};

/** Points that are stroked at once: browsers without a GPU take longer for a long path than for its parts. */
const strokedPoints = 64;
/** Bars narrower than this are upright rectangles, which take a quarter of the time of a stroke and look the same. */
const densePixels = 1;

/** A line through the closing prices; it stops at a bucket without a report. A bucket between two gaps is a dash. */
const drawLine = (scope: Scope, series: Series, toY: ToY): void => {
  const { context, horizontalPixelRatio: h, verticalPixelRatio: v } = scope;
  const { barSpacing } = series;
  context.lineWidth = linePixels * v;
  context.lineJoin = 'round';
  context.beginPath();
  let before: { readonly x: number; readonly y: number; isAlone: boolean } | undefined;
  let count = 0;
  const dash = (): void => {
    if (before?.isAlone !== true) return;
    const half = Math.max(1, barSpacing / 2);
    context.moveTo((before.x - half) * h, before.y * v);
    context.lineTo((before.x + half) * h, before.y * v);
  };
  for (const { x, originalData } of inView(series)) {
    const value = originalData.close ?? closeOf(originalData.pieces);
    const y = value === undefined ? null : toY(value);
    if (y === null) continue;
    const last = before !== undefined && x - before.x < barSpacing * 1.5 ? before : undefined;
    if (last === undefined) {
      dash();
      context.moveTo(x * h, y * v);
    } else if (barSpacing < densePixels) fillUpright(scope, last, { x, y });
    else {
      context.lineTo(x * h, y * v);
      count += 1;
    }
    before = { x, y, isAlone: last === undefined };
    if (count < strokedPoints) continue;
    context.stroke();
    context.beginPath();
    context.moveTo(x * h, y * v);
    count = 0;
  }
  dash();
  context.stroke();
};

type Point = { readonly x: number; readonly y: number };

/** From one point to the next, which is less than a pixel away. */
const fillUpright = (
  { context, horizontalPixelRatio: h, verticalPixelRatio: v }: Scope,
  from: Point,
  to: Point,
): void => {
  const left = Math.floor(from.x * h);
  const height = Math.abs(to.y - from.y) + linePixels;
  context.fillRect(
    left,
    (Math.min(from.y, to.y) - linePixels / 2) * v,
    Math.max(1, Math.floor(to.x * h) - left),
    height * v,
  );
};

const closeOf = (pieces: readonly Piece[] | undefined): number | undefined => {
  const last = pieces?.at(-1);
  return last === undefined ? undefined : toCoordinate(last.span.price);
};

const drawSeries = (scope: Scope, series: Series, toY: ToY, { colors, drawAs }: SeriesStyle): void => {
  const pieces = piecesOf(series);
  drawBand(scope, pieces, toY, colors);
  scope.context.fillStyle = colors.line;
  drawReports(scope, pieces, toY);
  if (pieces.length > 0) return;
  scope.context.strokeStyle = colors.line;
  if (drawAs === 'line') drawLine(scope, series, toY);
  else drawCandles(scope, series, toY, colors);
};

/** The values that the price scale must include; the chart uses the last value as the price. */
const heightsOf = ({ pieces, high, low, close }: SeriesPoint): CustomSeriesPricePlotValues => {
  if (pieces === undefined) return [low ?? 0, high ?? 0, close ?? 0];
  const values = pieces.flatMap(({ span: { bid, ask, price } }) => [bid ?? price, ask ?? price, price]);
  const heights = values.map(toCoordinate);
  return [Math.min(...heights), Math.max(...heights), heights.at(-1) ?? 0];
};

/** The series for the chart library; reads the style at every draw. */
export function createPriceView(
  style: () => SeriesStyle,
): ICustomSeriesPaneView<Time, SeriesPoint, CustomSeriesOptions> {
  let drawing: Series | undefined;
  const renderer: ICustomSeriesPaneRenderer = {
    draw: (target: Target, toPixel: PriceToCoordinateConverter) => {
      const series = drawing;
      if (series !== undefined) target.useBitmapCoordinateSpace((scope) => drawSeries(scope, series, toPixel, style()));
    },
  };
  return {
    renderer: () => renderer,
    update: (series) => {
      drawing = series;
    },
    priceValueBuilder: heightsOf,
    isWhitespace: (point): point is { time: Time } =>
      !('pieces' in point && point.pieces !== undefined) && !('close' in point && point.close !== undefined),
    defaultOptions: () => customSeriesDefaultOptions,
  };
}
