import { expect, test } from 'vitest';
import { formatUtc } from '../../../ui/format.ts';
import { type SplitTime, timeMarks } from './time-marks.ts';

const utc: SplitTime = (ms) => {
  const [day = '', clock = ''] = formatUtc(ms).split(' ');
  return { day, clock };
};

/** Berlin: an hour ahead of UTC, two until 2026-10-25 01:00 UTC. */
const berlin: SplitTime = (ms) => utc(ms + (ms < Date.UTC(2026, 9, 25, 1) ? 7_200_000 : 3_600_000));

const at = (text: string): number => Date.parse(`${text}Z`) / 1_000;
const labels = (end: string, seconds: number, width: number, split = utc): readonly string[] =>
  timeMarks({ from: at(end) - seconds, to: at(end) }, width, split).map(({ label }) => label);

test('time marks: five minutes on a phone have marks of a minute without seconds', () => {
  expect(labels('2026-11-15T09:28:17', 300, 320)).toEqual(['09:24', '09:25', '09:26', '09:27', '09:28']);
});

test('time marks: a minute has seconds, at even distances', () => {
  const phone = ['09:27:30', '09:27:45', '09:28:00', '09:28:15'];
  expect(labels('2026-11-15T09:28:17', 60, 300)).toEqual(phone);
  expect(labels('2026-11-15T09:28:17', 60, 800)).toHaveLength(6); // every ten seconds
});

test('time marks: where a day starts there is its date, and a month has only dates', () => {
  expect(labels('2026-11-15T06:00:00', 86_400, 320)).toEqual(['06:00', '12:00', '18:00', '11-15']);
  expect(labels('2026-11-15T06:00:00', 30 * 86_400, 320)).toEqual(['10-22', '10-29', '11-05', '11-12']);
});

test('time marks: they follow the clock of the zone, also where it changes', () => {
  const marks = timeMarks({ from: at('2026-10-24T12:00:00'), to: at('2026-10-26T00:00:00') }, 400, berlin);
  expect(marks.map(({ second, label }) => [new Date(second * 1_000).toISOString().slice(5, 16), label])).toEqual([
    ['10-24T16:00', '18:00'],
    ['10-24T22:00', '10-25'],
    ['10-25T05:00', '06:00'],
    ['10-25T11:00', '12:00'],
    ['10-25T17:00', '18:00'],
    ['10-25T23:00', '10-26'],
  ]);
});

test('time marks: no two are closer than their labels, at any width and length', () => {
  for (const width of [120, 320, 700, 1_300])
    for (let seconds = 10; seconds < 31 * 86_400; seconds = Math.ceil(seconds * 1.3)) {
      const marks = timeMarks({ from: at('2026-11-15T09:28:17') - seconds, to: at('2026-11-15T09:28:17') }, width, utc);
      const gaps = marks.slice(1).map(({ second }, i) => ((second - (marks[i]?.second ?? 0)) * width) / seconds);
      const isLong = marks.some(({ label }) => label.length > 5);
      expect(Math.min(...gaps), `${width} pixels, ${seconds} s`).toBeGreaterThanOrEqual(isLong ? 72 : 52);
    }
});

test('time marks: a view without width or length has none', () => {
  expect(timeMarks({ from: 5, to: 5 }, 300, utc)).toEqual([]);
  expect(timeMarks({ from: 5, to: 15 }, 0, utc)).toEqual([]);
});
