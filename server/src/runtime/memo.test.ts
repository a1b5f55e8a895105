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
