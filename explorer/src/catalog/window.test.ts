import { expect, test } from 'vitest';
import { rowsInView, rowWindow, scrollToRow } from './window.ts';

test('row window: at the top, the rows in view and a few below exist', () => {
  const { first, end, before, after } = rowWindow(2_000, 50, 200, 800);
  expect(first).toBe(0);
  expect(end).toBeGreaterThanOrEqual(12);
  expect(end).toBeLessThan(40);
  expect(before).toBe(0);
  expect(before + (end - first) * 50 + after).toBe(100_000);
});

test('row window: anywhere, what is in view is within what exists, and the height never changes', () => {
  for (let top = 300; top > -100_500; top -= 377) {
    const { first, end, before, after } = rowWindow(2_000, 50, top, 800);
    const [firstInView, endOfView] = rowsInView(2_000, 50, top, 800);
    expect(first).toBeLessThanOrEqual(firstInView);
    expect(end).toBeGreaterThanOrEqual(endOfView);
    expect(end - first).toBeLessThan(45);
    expect(before + (end - first) * 50 + after).toBe(100_000);
  }
});

test('row window: all rows of a short list exist, an empty list has no height', () => {
  expect(rowWindow(3, 50, 100, 800)).toEqual({ first: 0, end: 3, before: 0, after: 0 });
  expect(rowWindow(0, 50, 100, 800)).toEqual({ first: 0, end: 0, before: 0, after: 0 });
});

test('row window: scrolls to a row by the shortest distance', () => {
  expect(scrollToRow(0, 50, 200, 800, 40)).toBe(0);
  expect(scrollToRow(0, 50, -200, 800, 40)).toBe(-240);
  expect(scrollToRow(20, 50, 0, 800, 40)).toBe(290);
});

test('row window: while scrolling fast, only the rows in view exist', () => {
  const { first, end, before, after } = rowWindow(2_000, 50, -50_010, 800, true);
  expect([first, end]).toEqual(rowsInView(2_000, 50, -50_010, 800));
  expect(before + (end - first) * 50 + after).toBe(100_000);
});
