// Which times the chart's time axis marks, and what it writes there: steps that people count in, by the clock of the chosen zone, with
// seconds only where marks are closer than a minute.
import { daySeconds } from '@sealpost/protocol';
import type { ChartWindow } from '../resolution.ts';

/** The day and the time of day of a time, in the zone of the page: `2026-11-15`, `09:28:17`. */
export type SplitTime = (ms: number) => { readonly day: string; readonly clock: string };

/** `isDay`: its label is the date of a day that starts there. */
export type TimeMark = { readonly second: number; readonly label: string; readonly isDay: boolean };

const [minute, hour] = [60, 3_600];
const days = [1, 2, 4, 7, 14].map((count) => count * daySeconds);
const steps = [1, 2, 5, 10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute];
const longSteps = [hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, ...days];

/** Pixels from one mark to the next: a label of 11 pixels' height and a gap. */
const markPixels = (step: number): number => (step < minute ? 72 : 52);

const stepOf = (secondsPerPixel: number): number =>
  [...steps, ...longSteps].find((step) => step / secondsPerPixel >= markPixels(step)) ?? 14 * daySeconds;

/** What the clock of the zone is ahead of UTC at a second. */
const offsetAt = (split: SplitTime, second: number): number => {
  const { day, clock } = split(second * 1_000);
  return Date.parse(`${day}T${clock}Z`) / 1_000 - second;
};

const markAt = (split: SplitTime, second: number, step: number): TimeMark => {
  const { day, clock } = split(second * 1_000);
  const isDay = step >= daySeconds || (step >= minute && clock.startsWith('00:00'));
  return { second, isDay, label: isDay ? day.slice(5) : step < minute ? clock : clock.slice(0, 5) };
};

/** The marks of a view that is this many pixels wide, in order. A change of the clock inside of it moves the marks after it. */
export function timeMarks({ from, to }: ChartWindow, width: number, split: SplitTime): readonly TimeMark[] {
  if (!(width > 0) || !(to > from)) return [];
  const step = stepOf((to - from) / width);
  const offset = offsetAt(split, Math.floor(from));
  const marks: TimeMark[] = [];
  for (let local = Math.ceil((from + offset) / step) * step; local - offset < to; local += step) {
    const second = local - offsetAt(split, local - offset);
    if (second >= from && second < to) marks.push(markAt(split, second, step));
  }
  return marks;
}
