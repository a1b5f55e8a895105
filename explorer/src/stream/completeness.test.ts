import type { Body } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { cellsOf, formatShare, gradeOf, measure, measureFrom } from './completeness.ts';

const gap = (from: number, to: number) => ({ from, to, seconds: to - from + 1 });

const coverage = (
  gaps: readonly Body<'Coverage'>['gaps'][number][],
  changes: Partial<Body<'Coverage'>> = {},
): Body<'Coverage'> => {
  const missing = gaps.reduce((sum, { seconds }) => sum + seconds, 0);
  return {
    from: 1_000,
    to: 1_999,
    reports: 10,
    coveredSeconds: 1_000 - missing,
    completeness: (1_000 - missing) / 1_000,
    gapCount: gaps.length,
    gaps,
    medianIntervalMs: 1_000,
    ...changes,
  };
};

test('gaps are listed newest first, with the longest', () => {
  const whole = measure(coverage([gap(1_100, 1_109), gap(1_500, 1_529), gap(1_900, 1_900)]));
  expect(whole.gaps.map(({ from }) => from)).toEqual([1_900, 1_500, 1_100]);
  expect(whole.longest).toEqual(gap(1_500, 1_529));
  expect(whole).toMatchObject({ gapCount: 3, coveredSeconds: 959, isWhole: true });
});

test('the time before the first report is not a gap, and is not measured', () => {
  const whole = measure(coverage([gap(1_000, 1_799), gap(1_900, 1_909)]), 1_800);
  expect(whole).toMatchObject({ from: 1_800, to: 1_999, gapCount: 1, coveredSeconds: 190 });
  expect(formatShare(whole.coveredSeconds, whole.to - whole.from + 1)).toBe('95 %');
});

test('the last part of a range is measured from its gaps, cut at its start', () => {
  const whole = measure(coverage([gap(1_100, 1_109), gap(1_890, 1_909)]));
  expect(measureFrom(whole, 1_900)).toMatchObject({ from: 1_900, to: 1_999, gapCount: 1, coveredSeconds: 90 });
  expect(measureFrom(whole, 1_950)).toMatchObject({ gapCount: 0, coveredSeconds: 50, longest: undefined });
});

test('a part is not measured if not all gaps are known', () => {
  const whole = measure(coverage([gap(1_100, 1_109)], { gapCount: 1_500 }));
  expect(whole).toMatchObject({ isWhole: false, gapCount: 1_500 });
  expect(measureFrom(whole, 1_900)).toBeUndefined();
});

test('only complete coverage reads 100 %', () => {
  expect(formatShare(86_400, 86_400)).toBe('100 %');
  expect(formatShare(86_399, 86_400)).toBe('99.99 %');
  expect(formatShare(1, 2)).toBe('50 %');
  expect(formatShare(905, 1_000)).toBe('90.5 %');
  expect(formatShare(0, 10)).toBe('0 %');
  expect(formatShare(0, 0)).toBe('–');
});

test('the strip has a cell for each part, blank before the first report', () => {
  const whole = measure(coverage([gap(1_000, 1_299), gap(1_590, 1_609)]), 1_300);
  const cells = cellsOf(whole, { from: 1_000, to: 1_999 }, 10);
  expect(cells.map(({ from, to }) => [from, to]).slice(0, 2)).toEqual([
    [1_000, 1_099],
    [1_100, 1_199],
  ]);
  expect(cells.map(({ covered }) => covered)).toEqual([undefined, undefined, undefined, 1, 1, 0.9, 0.9, 1, 1, 1]);
});

test('a cell’s color shows its coverage', () => {
  expect([undefined, 1, 0.995, 0.95, 0.2, 0].map(gradeOf)).toEqual([
    'none',
    'whole',
    'most',
    'half',
    'little',
    'nothing',
  ]);
});
