import { expect, test } from 'vitest';
import { createKeptValues, createLastUsed } from './kept-values.ts';

test('kept values: each is there until it is too old', () => {
  let nowMs = 0;
  const kept = createKeptValues<string>(10, 100, () => nowMs);
  kept.put('a', 'first', 1);
  nowMs = 9;
  kept.put('b', 'second', 1);
  expect([kept.get('a'), kept.get('b'), kept.get('c')]).toEqual(['first', 'second', undefined]);
  nowMs = 10;
  expect([kept.get('a'), kept.get('b')]).toEqual([undefined, 'second']);
  kept.put('a', 'third', 1);
  expect(kept.get('a')).toBe('third');
});

test('kept values: at the bound everything else is forgotten, and a value that is put again counts once', () => {
  const kept = createKeptValues<number>(10, 100, () => 0);
  for (let i = 0; i < 50; i++) kept.put('same', i, 60);
  kept.put('other', 1, 40);
  expect([kept.get('same'), kept.get('other')]).toEqual([49, 1]);
  kept.put('more', 2, 1);
  expect([kept.get('same'), kept.get('other'), kept.get('more')]).toEqual([undefined, undefined, 2]);
});

test('kept values: those used last stay, and at most twice as many as wanted are kept', () => {
  const kept = createLastUsed<number, number>(10);
  for (let i = 0; i < 1_000; i++) {
    kept.keep(i, i);
    expect(kept.get(0)).toBe(0);
  }
  expect(Array.from({ length: 1_000 }, (_, i) => kept.get(i)).filter((one) => one !== undefined).length).toBeLessThan(
    21,
  );
  expect(kept.get(999)).toBe(999);
});
