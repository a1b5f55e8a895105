// Which rows of a long list exist: those in view, and a few around them. The others are room that is kept free.

/** Rows from `first` to before `end`; `before` and `after` are the heights of what is left out, in pixels. */
export type RowWindow = {
  readonly first: number;
  readonly end: number;
  readonly before: number;
  readonly after: number;
};

/** Rows above and below the view that exist already, so that a short way needs no work. */
const spareRows = 3;
/** The window moves by so many rows at once. */
const stepRows = 2;

/**
 * The window of a list whose top is `top` pixels below the top of a view of `height` pixels; above it, below zero. `isSparing`: what is
 * in view and no more.
 */
export const rowWindow = (
  count: number,
  rowHeight: number,
  top: number,
  height: number,
  isSparing = false,
): RowWindow => {
  const [spare, step] = isSparing ? [0, 1] : [spareRows, stepRows];
  const firstInView = Math.floor(-top / rowHeight);
  const endOfView = Math.ceil((height - top) / rowHeight);
  const first = clamp(Math.floor((firstInView - spare) / step) * step, count);
  const end = clamp(Math.ceil((endOfView + spare) / step) * step, count);
  return { first, end, before: first * rowHeight, after: (count - end) * rowHeight };
};

const clamp = (row: number, count: number): number => Math.min(count, Math.max(0, row));

/** The rows that are in view themselves. */
export const rowsInView = (
  count: number,
  rowHeight: number,
  top: number,
  height: number,
): readonly [number, number] => [
  clamp(Math.floor(-top / rowHeight), count),
  clamp(Math.ceil((height - top) / rowHeight), count),
];

/** How far to scroll so that a row is in view, with `margin` pixels free above and below; 0 where it is. */
export const scrollToRow = (row: number, rowHeight: number, top: number, height: number, margin: number): number => {
  const rowTop = top + row * rowHeight;
  if (rowTop < margin) return rowTop - margin;
  return Math.max(0, rowTop + rowHeight - (height - margin));
};
