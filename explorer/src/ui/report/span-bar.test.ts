import { expect, test } from 'vitest';
import { drawSpan } from './span-bar.ts';

const span = (fromSeconds: number, toSeconds: number) => ({ fromMs: fromSeconds * 1_000, toMs: toSeconds * 1_000 });

test('span: a report of one second between two of one second is the middle third', () => {
  const { parts } = drawSpan(span(10, 10), span(9, 9), span(11, 11), 1_000, undefined);
  expect(parts.map(({ kind, begin }) => [kind, Math.round(begin)])).toEqual([
    ['neighbor', 0],
    ['report', 33],
    ['neighbor', 67],
  ]);
});

test('span: a gap is a gap', () => {
  const { parts } = drawSpan(span(10, 10), span(7, 7), undefined, 1_000, undefined);
  expect(parts).toEqual([
    { kind: 'neighbor', begin: 0, width: 25 },
    { kind: 'gap', begin: 25, width: 50 },
    { kind: 'report', begin: 75, width: 25 },
  ]);
});

test('span: a far adjacent report does not squeeze the bar', () => {
  const { parts } = drawSpan(span(1_000, 1_000), span(1, 1), undefined, 1_000, undefined);
  expect(parts).toEqual([
    { kind: 'gap', begin: 0, width: 75 },
    { kind: 'report', begin: 75, width: 25 },
  ]);
});

test('span: the requested time is marked', () => {
  expect(drawSpan(span(10, 19), undefined, undefined, 1_000, 12_000).marker).toBe(25);
  expect(drawSpan(span(10, 19), undefined, undefined, 1_000, undefined).marker).toBeUndefined();
});
