import { expect, test } from 'vitest';
import { replaceAfterMs } from './primary.ts';

test('primary: a worker that exits is replaced at once, one that cannot start with growing pauses', () => {
  expect([0, 1, 2, 3, 7, 8, 1_000].map(replaceAfterMs)).toEqual([0, 100, 200, 400, 6_400, 10_000, 10_000]);
});
