// Which rows of a long list exist: those in view, and a few around them. Padding takes the height of the others.

/** Rows from `first` to before `end`; `before` and `after` are the heights of what is left out, in pixels. */
export type RowWindow = {
  readonly first: number;
  readonly end: number;
  readonly before: number;
  readonly after: number;
};

/** Extra rows above and below the view, so that short scrolls need no work. */
const spareRows = 3;
/** The window moves in steps of this many rows. */
const stepRows = 2;

/**
 * The window of a list whose top is `top` pixels below the top of a view of `height` pixels; negative if above. `isSparing`: only the rows
 * in view.
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

/** The rows in view: first, and one after the last. */
export const rowsInView = (
  count: number,
  rowHeight: number,
  top: number,
  height: number,
): readonly [number, number] => [
  clamp(Math.floor(-top / rowHeight), count),
  clamp(Math.ceil((height - top) / rowHeight), count),
];

/** How far to scroll so that a row is in view with `margin` pixels above and below; 0 if it already is. */
export const scrollToRow = (row: number, rowHeight: number, top: number, height: number, margin: number): number => {
  const rowTop = top + row * rowHeight;
  if (rowTop < margin) return rowTop - margin;
  return Math.max(0, rowTop + rowHeight - (height - margin));
};
