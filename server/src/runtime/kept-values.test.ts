import { expect, test } from 'vitest';
import { createKeptValues, createLastUsed, memoise } from './kept-values.ts';

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

test('memo: a result is computed once per text; errors are not kept', () => {
  const asked: string[] = [];
  const lengthOf = memoise((text) => {
    asked.push(text);
    if (text === '') throw new RangeError('empty');
    return { length: text.length };
  });
  expect(lengthOf('ab')).toBe(lengthOf('ab'));
  expect(() => lengthOf('')).toThrow(RangeError);
  expect(() => lengthOf('')).toThrow(RangeError);
  expect(asked).toEqual(['ab', '', '']);
});

test('memo: what it holds is bounded in characters', () => {
  let worked = 0;
  const remember = memoise((text) => {
    worked += 1;
    return text.length;
  });
  const texts = Array.from({ length: 1_200 }, (_, i) => String(i).padStart(1_000, '0'));
  for (const text of texts) remember(text);
  expect(remember(texts[1_199] as string)).toBe(1_000);
  expect(worked).toBe(1_200);
  remember(texts[0] as string);
  expect(worked).toBe(1_201);
});

test('memo: what was asked a minute ago is forgotten with the next new text, so that routes together hold what one minute asks', () => {
  let [nowMs, worked] = [5, 0];
  const remember = memoise(
    (text) => {
      worked += 1;
      return text.length;
    },
    () => nowMs,
  );
  const counted = (text: string): number => {
    remember(text);
    return worked;
  };
  expect([counted('a'), counted('b')]).toEqual([1, 2]);
  nowMs += 60_000;
  expect([counted('c'), counted('a')]).toEqual([3, 3]);
  nowMs += 1;
  expect([counted('a'), counted('d'), counted('a'), counted('d')]).toEqual([3, 4, 5, 5]);
});
