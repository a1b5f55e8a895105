import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createHistogram } from './histogram.ts';

test('histogram: every quantile of any values is the exact one or at most 1 % above it', () => {
  const values = fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (all, q) => {
      const histogram = createHistogram();
      for (const value of all) histogram.add(value);
      const exact = all.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(q * all.length)) - 1] as number; // within the list
      expect(histogram.quantile(q)).toBeGreaterThanOrEqual(exact);
      expect(histogram.quantile(q)).toBeLessThanOrEqual(exact * 1.01 + 1);
      expect([histogram.count(), histogram.max()]).toEqual([all.length, Math.max(...all)]);
    }),
  );
});

test('histogram: without values every quantile is 0', () => {
  expect(createHistogram().quantile(0.99)).toBe(0);
});
