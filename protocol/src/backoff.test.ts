import { expect, test } from 'vitest';
import { backoffMs } from './backoff.ts';

test('backoff: a pause doubles with every failure, up to the bound', () => {
  expect([0, 1, 2, 3, 4, 10_000].map((failures) => backoffMs(failures, 100, 1_000))).toEqual([
    100, 200, 400, 800, 1_000, 1_000,
  ]);
});
