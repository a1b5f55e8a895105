import { expect, test } from 'vitest';
import { renderProgress } from './progress.ts';

test('the bar tells share, count, rate and time left', () => {
  expect(renderProgress(0.25, 10_000, 5_000)).toBe(
    '████████░░░░░░░░░░░░░░░░░░░░░░  25 %  10,000 reports  2,000/s  00:15 left',
  );
  expect(renderProgress(1, 40_000, 20_000)).toBe(
    '██████████████████████████████ 100 %  40,000 reports  2,000/s  00:00 left',
  );
});

test('long waits are shown in hours', () => {
  expect(renderProgress(0.01, 0, 60_000)).toContain('1:39:00 left');
});
