import { expect, test } from 'vitest';
import { tallyControl } from '../support/full-count.ts';
import { countUndelivered, createCoverage } from './coverage.ts';

const acknowledged = new Map([['a', new Map([1, 2, 3, 4, 5].map((second) => [second, `report ${second}`]))]]);
const undelivered = (seconds: readonly number[], fills: readonly number[] = []): number => {
  const coverage = createCoverage();
  for (const second of seconds) coverage.add('a', second);
  for (const second of fills) coverage.fill('a', second);
  return countUndelivered(['a'], coverage.list(), acknowledged);
};

test('coverage: a reader that got every report from its first one on lacks nothing', () => {
  expect(undelivered([1, 2, 3, 4, 5])).toBe(0);
  expect(undelivered([3, 4, 5])).toBe(0);
});

test('coverage: a report that was skipped, or did not come at the end, is undelivered (control)', () => {
  expect(undelivered([1, 2, 4, 5])).toBe(1);
  expect(undelivered([1, 2, 3])).toBe(2);
  expect(undelivered([])).toBe(5);
  tallyControl({ 'undelivered reports found': 3 });
});

test('coverage: a gap that was read is filled, and only that one', () => {
  expect(undelivered([1, 5], [2, 3, 4])).toBe(0);
  expect(undelivered([1, 5], [2, 3])).toBe(1);
});

test('coverage: what comes again, or after a newer one, is said', () => {
  const coverage = createCoverage();
  expect([2, 4, 4, 3, 5].map((second) => coverage.add('a', second))).toEqual([true, true, false, false, true]);
  expect(coverage.missingOf('a')).toEqual([3]);
  expect(coverage.newestOf('a')).toBe(5);
});

test('coverage: a second that was never acknowledged is not waited for', () => {
  const coverage = createCoverage();
  for (const second of [5, 7]) coverage.add('a', second);
  expect(countUndelivered(['a'], coverage.list(), acknowledged)).toBe(0);
});
