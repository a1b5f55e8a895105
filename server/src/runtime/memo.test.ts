import { expect, test } from 'vitest';
import { memoise } from './memo.ts';

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
