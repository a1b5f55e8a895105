// Draws reports: a bar over exactly the seconds in which a report is valid, a light band from bid to ask behind it, and a thin vertical
// line to the next report if there is no gap.
import type {
  CustomSeriesOptions,
  CustomSeriesPricePlotValues,
  ICustomSeriesPaneRenderer,
  ICustomSeriesPaneView,
  PaneRendererCustomData,
  PriceToCoordinateConverter,
  Time,
  UTCTimestamp,
} from 'lightweight-charts';
import { customSeriesDefaultOptions } from 'lightweight-charts';
import { type Piece, type SecondPoint, toCoordinate } from './chart-spans.ts';

/** A second in the chart library's form. */
export type SpanPoint = { readonly time: UTCTimestamp } & Pick<SecondPoint, 'pieces'>;

export type SpanColors = { readonly line: string; readonly band: string };

type Target = Parameters<ICustomSeriesPaneRenderer['draw']>[0];
type Scope = Parameters<Parameters<Target['useBitmapCoordinateSpace']>[0]>[0];
type Drawn = { readonly left: number; readonly right: number; readonly piece: Piece };

const barPixels = 2.5;

/** Pieces with their edges in CSS pixels. */
const edgesOf = ({ bars, barSpacing, visibleRange }: PaneRendererCustomData<Time, SpanPoint>): readonly Drawn[] => {
  if (visibleRange === null) return [];
  // One more on each side, because half of it may be in view.
  const shown = bars.slice(Math.max(0, visibleRange.from - 1), visibleRange.to + 2);
  return shown.flatMap(({ x, originalData }) =>
    (originalData.pieces ?? []).map((piece) => ({
      left: x + (piece.from - 0.5) * barSpacing,
      right: x + (piece.to - 0.5) * barSpacing,
      piece,
    })),
  );
};

const drawBand = (
  { context, horizontalPixelRatio: h, verticalPixelRatio: v }: Scope,
  drawn: readonly Drawn[],
  toY: ToY,
) => {
  for (const { left, right, piece } of drawn) {
    const { bid, ask } = piece.span;
    if (bid === undefined || ask === undefined) continue;
    const [top, bottom] = [toY(ask), toY(bid)];
    if (top === null || bottom === null) continue;
    const x = Math.round(left * h);
    context.fillRect(x, top * v, Math.round(right * h) - x, Math.max(1, (bottom - top) * v));
  }
};

type ToY = (value: bigint) => number | null;

const drawBars = (
  { context, horizontalPixelRatio: h, verticalPixelRatio: v }: Scope,
  drawn: readonly Drawn[],
  toY: ToY,
) => {
  const height = Math.max(1, Math.round(barPixels * v));
  const upright = Math.max(1, Math.floor(h));
  let before: { readonly drawn: Drawn; readonly y: number } | undefined;
  for (const one of drawn) {
    const y = toY(one.piece.span.price);
    if (y === null) continue;
    const x = Math.round(one.left * h);
    context.fillRect(x, Math.round(y * v - height / 2), Math.max(1, Math.round(one.right * h) - x), height);
    const follows = before !== undefined && one.left - before.drawn.right < 0.5;
    if (before !== undefined && follows && before.drawn.piece.span !== one.piece.span)
      context.fillRect(x, Math.round(Math.min(before.y, y) * v), upright, Math.round(Math.abs(before.y - y) * v));
    before = { drawn: one, y };
  }
};

const createRenderer = (
  read: () => PaneRendererCustomData<Time, SpanPoint> | undefined,
  colors: () => SpanColors,
): ICustomSeriesPaneRenderer => ({
  draw: (target: Target, toPixel: PriceToCoordinateConverter) => {
    const data = read();
    if (data === undefined) return;
    const drawn = edgesOf(data);
    const toY: ToY = (value) => toPixel(toCoordinate(value));
    target.useBitmapCoordinateSpace((scope) => {
      scope.context.fillStyle = colors().band;
      drawBand(scope, drawn, toY);
      scope.context.fillStyle = colors().line;
      drawBars(scope, drawn, toY);
    });
  },
});

/** The values that the price scale must include: bid, ask and price of every piece. The chart uses the last value as the price. */
const heightsOf = ({ pieces = [] }: SpanPoint): CustomSeriesPricePlotValues => {
  const values = pieces.flatMap(({ span: { bid, ask, price } }) => [bid ?? price, ask ?? price, price]);
  const heights = values.map(toCoordinate);
  return [Math.min(...heights), Math.max(...heights), heights.at(-1) ?? 0];
};

/** The series for the chart library; reads the colors at every draw. */
export const createSpanView = (
  colors: () => SpanColors,
): ICustomSeriesPaneView<Time, SpanPoint, CustomSeriesOptions> => {
  let drawing: PaneRendererCustomData<Time, SpanPoint> | undefined;
  const renderer = createRenderer(() => drawing, colors);
  return {
    renderer: () => renderer,
    update: (data) => {
      drawing = data;
    },
    priceValueBuilder: heightsOf,
    isWhitespace: (point): point is { time: Time } => !('pieces' in point) || point.pieces === undefined,
    defaultOptions: () => customSeriesDefaultOptions,
  };
};
