import { expect, test } from 'vitest';
import {
  assignKeys,
  growWindow,
  joinWindows,
  type ListPart,
  limitNewRows,
  listParts,
  rowsInView,
  rowWindow,
  scrollToRow,
} from './window.ts';

test('row window: at the top, the rows in view and a few below exist', () => {
  const { first, end } = rowWindow(2_000, 50, 200, 800);
  expect(first).toBe(0);
  expect(end).toBeGreaterThanOrEqual(12);
  expect(end).toBeLessThan(40);
});

test('row window: anywhere, what is in view is within what exists', () => {
  for (let top = 300; top > -100_500; top -= 377) {
    const { first, end } = rowWindow(2_000, 50, top, 800);
    const [firstInView, endOfView] = rowsInView(2_000, 50, top, 800);
    expect(first).toBeLessThanOrEqual(firstInView);
    expect(end).toBeGreaterThanOrEqual(endOfView);
    expect(end - first).toBeLessThan(45);
  }
});

test('row window: all rows of a short list exist, an empty list has none', () => {
  expect(rowWindow(3, 50, 100, 800)).toEqual({ first: 0, end: 3 });
  expect(rowWindow(0, 50, 100, 800)).toEqual({ first: 0, end: 0 });
});

test('row window: a list without rows gets some per frame, from its top; one with as many as it needs moves at once', () => {
  const wanted = { first: 100, end: 122 };
  expect(limitNewRows(wanted, 0, 8)).toEqual({ first: 100, end: 108 });
  expect(limitNewRows(wanted, 8, 8)).toEqual({ first: 100, end: 116 });
  expect(limitNewRows(wanted, 16, 8)).toEqual(wanted);
});

test('row window: scrolls to a row by the shortest distance', () => {
  expect(scrollToRow(0, 50, 200, 800, 40)).toBe(0);
  expect(scrollToRow(0, 50, -200, 800, 40)).toBe(-240);
  expect(scrollToRow(20, 50, 0, 800, 40)).toBe(290);
});

test('row window: while scrolling fast, only the rows in view exist', () => {
  const { first, end } = rowWindow(2_000, 50, -50_010, 800, true);
  expect([first, end]).toEqual(rowsInView(2_000, 50, -50_010, 800));
});

test('row window: grows on both sides until it is the whole list, and starts again after a jump', () => {
  let rows = rowWindow(150, 50, -2_000, 400);
  while (rows.end - rows.first < 150) {
    const next = growWindow(rows, 150);
    expect(next.end - next.first).toBeLessThanOrEqual(rows.end - rows.first + 24);
    rows = next;
  }
  expect(rows).toEqual({ first: 0, end: 150 });
  expect(joinWindows({ first: 0, end: 20 }, { first: 15, end: 30 }, 200)).toEqual({ first: 0, end: 30 });
  expect(joinWindows({ first: 0, end: 20 }, { first: 100, end: 120 }, 200)).toEqual({ first: 100, end: 120 });
  expect(joinWindows({ first: 0, end: 150 }, { first: 0, end: 10 }, 40)).toEqual({ first: 0, end: 40 });
});

const heightOf = (parts: readonly ListPart[]): number =>
  parts.reduce((sum, part) => sum + (part.kind === 'row' ? 1 : part.rows), 0);

test('list parts: the kept row exists above, within and below the window, and the height is always that of all rows', () => {
  const window = { first: 100, end: 103 };
  expect(listParts(window, 5, 2_000)).toEqual([
    { kind: 'space', rows: 5, at: 'top' },
    { kind: 'row', row: 5 },
    { kind: 'space', rows: 94, at: 'between' },
    { kind: 'row', row: 100 },
    { kind: 'row', row: 101 },
    { kind: 'row', row: 102 },
    { kind: 'space', rows: 1_897, at: 'bottom' },
  ]);
  for (const kept of [-1, 0, 99, 101, 103, 1_999, 2_000]) {
    const parts = listParts(window, kept, 2_000);
    expect(heightOf(parts)).toBe(2_000);
    expect(parts.some((part) => part.kind === 'row' && part.row === kept)).toBe(kept >= 0 && kept < 2_000);
  }
  expect(listParts({ first: 0, end: 0 }, 0, 0)).toEqual([]);
});

test('row keys: a row keeps its key, new rows take those of rows that are gone, in their order', () => {
  const first = assignKeys(new Map(), [0, 1, 2, 3]);
  expect([...first]).toEqual([
    [0, 0],
    [1, 1],
    [2, 2],
    [3, 3],
  ]);
  const scrolled = assignKeys(first, [2, 3, 4, 5]);
  expect([...scrolled]).toEqual([
    [2, 2],
    [3, 3],
    [4, 0],
    [5, 1],
  ]);
  const jumped = assignKeys(scrolled, [90, 91, 92, 93]);
  expect([...jumped.values()]).toEqual([2, 3, 0, 1]);
  expect([...assignKeys(jumped, [91, 92, 93, 94, 95, 96])]).toEqual([
    [91, 3],
    [92, 0],
    [93, 1],
    [94, 2],
    [95, 4],
    [96, 5],
  ]);
});
