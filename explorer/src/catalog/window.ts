// Which rows of a list exist: all of a list of up to 200, else those in view and a few around them. Empty space takes the height of the others.

/** Rows from `first` to before `end`. */
export type RowWindow = { readonly first: number; readonly end: number };

/** Up to this many rows exist in full, so that the browser's search and print find them. */
export const wholeMax = 200;
/** Extra rows above and below the view, so that short scrolls need no work. */
const spareRows = 3;
/** The window moves in steps of this many rows. */
const stepRows = 2;
/** Rows that are added on each side at a time, so that no frame is long. */
const growRows = 4;

/**
 * The window of a list whose top is `top` pixels below the top of a view of `height` pixels; negative if above. `isSparing`: only the rows
 * in view.
 */
export function rowWindow(count: number, rowHeight: number, top: number, height: number, isSparing = false): RowWindow {
  const [spare, step] = isSparing ? [0, 1] : [spareRows, stepRows];
  const first = Math.floor((Math.floor(-top / rowHeight) - spare) / step) * step;
  // Always as many, wherever the first one begins, so that scrolling creates no elements and removes none.
  const rows = Math.ceil(height / rowHeight) + 2 * spare + step;
  return { first: clamp(first, count), end: clamp(first + rows, count) };
}

const clamp = (row: number, count: number): number => Math.min(count, Math.max(0, row));

/** Both windows as one if they touch; otherwise the second. */
export function joinWindows(last: RowWindow, next: RowWindow, count: number): RowWindow {
  const [first, end] = [clamp(last.first, count), clamp(last.end, count)];
  if (first > next.end || end < next.first) return next;
  return { first: Math.min(first, next.first), end: Math.max(end, next.end) };
}

/** A window with more rows on both sides. */
export const growWindow = ({ first, end }: RowWindow, count: number): RowWindow => ({
  first: clamp(first - growRows, count),
  end: clamp(end + growRows, count),
});

/** As much of a window, from its top, as takes `newMax` more rows than exist. */
export const limitNewRows = ({ first, end }: RowWindow, existing: number, newMax: number): RowWindow => ({
  first,
  end: Math.min(end, first + existing + newMax),
});

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

/** What a list consists of: rows, and empty space for rows that do not exist. */
export type ListPart =
  | { readonly kind: 'row'; readonly row: number }
  | { readonly kind: 'space'; readonly rows: number; readonly at: 'top' | 'bottom' | 'between' };

/** The parts of a list from top to bottom. The row `focusedRow` exists wherever the window is: it has the focus, or Tab leads to it. */
export function listParts({ first, end }: RowWindow, focusedRow: number, count: number): readonly ListPart[] {
  const existing = new Set(Array.from({ length: end - first }, (_, i) => first + i));
  if (focusedRow >= 0 && focusedRow < count) existing.add(focusedRow);
  const parts: ListPart[] = [];
  let next = 0;
  for (const row of [...existing].sort((a, b) => a - b)) {
    if (row > next) parts.push({ kind: 'space', rows: row - next, at: next === 0 ? 'top' : 'between' });
    parts.push({ kind: 'row', row });
    next = row + 1;
  }
  if (count > next) parts.push({ kind: 'space', rows: count - next, at: 'bottom' });
  return parts;
}

/**
 * The key of each row, by those of the rows before: a row keeps its key, and a new row takes over the elements of one that is gone, which is cheaper
 * than creating them. Keys that are taken over stay in their order, so that no element moves if all rows are new.
 */
export function assignKeys(last: ReadonlyMap<number, number>, rows: readonly number[]): ReadonlyMap<number, number> {
  const keptKeys = new Set(rows.flatMap((row) => last.get(row) ?? []));
  const free = [...last.values()].filter((key) => !keptKeys.has(key));
  let next = Math.max(-1, ...last.values());
  return new Map(rows.map((row) => [row, last.get(row) ?? free.shift() ?? ++next]));
}

/** How far to scroll so that a row is in view with `margin` pixels above and below; 0 if it already is. */
export function scrollToRow(row: number, rowHeight: number, top: number, height: number, margin: number): number {
  const rowTop = top + row * rowHeight;
  if (rowTop < margin) return rowTop - margin;
  return Math.max(0, rowTop + rowHeight - (height - margin));
}
