import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mergeRollups, planRollups, type Rollup, rollUp } from './candle-rollup.ts';

const day = 1_763_164_800; // a midnight

test('roll-ups: merged in any order and any groups, they are those of all reports', () => {
  const price = fc.bigInt({ min: -(2n ** 191n), max: 2n ** 191n - 1n });
  const reports = fc.uniqueArray(fc.tuple(fc.nat(10_000), price), {
    selector: ([ms]) => ms,
    minLength: 1,
    maxLength: 30,
  });
  fc.assert(
    fc.property(reports, fc.nat(29), (all, cut) => {
      const merged = (some: typeof all) =>
        some.reduce<Rollup | undefined>((sum, [ms, one]) => mergeRollups(sum, rollUp(ms, one)), undefined);
      const [a, b] = [merged(all.slice(0, cut)), merged(all.slice(cut))];
      const sorted = all.toSorted(([a], [b]) => a - b);
      const byPrice = all.map(([, one]) => one).toSorted((a, b) => (a < b ? -1 : 1));
      expect(b === undefined ? a : mergeRollups(a, b)).toEqual({
        firstMs: sorted[0]?.[0],
        lastMs: sorted.at(-1)?.[0],
        reports: all.length,
        open: sorted[0]?.[1],
        high: byPrice.at(-1),
        low: byPrice[0],
        close: sorted.at(-1)?.[1],
      });
    }),
  );
});

test('roll-ups: a range is read from the coarsest that fit, and from finer ones at its ends', () => {
  expect(planRollups(day, day + 86_399, 60)).toEqual([{ seconds: 60, from: day, end: day + 86_400 }]);
  expect(planRollups(day, day + 86_399, 3_600)).toEqual([{ seconds: 3_600, from: day, end: day + 86_400 }]);
  expect(planRollups(day + 60, day + 2 * 86_400 + 3_659, 86_400)).toEqual([
    { seconds: 60, from: day + 60, end: day + 3_600 },
    { seconds: 3_600, from: day + 3_600, end: day + 86_400 },
    { seconds: 86_400, from: day + 86_400, end: day + 2 * 86_400 },
    { seconds: 3_600, from: day + 2 * 86_400, end: day + 2 * 86_400 + 3_600 },
    { seconds: 60, from: day + 2 * 86_400 + 3_600, end: day + 2 * 86_400 + 3_660 },
  ]);
  expect(planRollups(day + 1, day + 30, 86_400)).toEqual([{ seconds: 60, from: day + 1, end: day + 31 }]);
});

test('roll-ups: whatever the range, it is covered once, in order, by whole roll-ups but for minutes', () => {
  const resolution = fc.constantFrom(60, 300, 900, 3_600, 14_400, 86_400);
  fc.assert(
    fc.property(fc.nat(10 ** 7), fc.nat(10 ** 6), resolution, (from, length, seconds) => {
      const ranges = planRollups(from, from + length, seconds);
      expect([ranges[0]?.from, ranges.at(-1)?.end]).toEqual([from, from + length + 1]);
      for (const [i, range] of ranges.entries()) {
        expect(range.end).toBe(ranges[i + 1]?.from ?? from + length + 1);
        if (range.seconds > 60) expect([range.from % range.seconds, range.end % range.seconds]).toEqual([0, 0]);
        expect(range.seconds).toBeLessThanOrEqual(seconds);
      }
    }),
  );
});
