// New York time: UTC−5, and UTC−4 from the second Sunday of March to the first Sunday of November, 2:00 local time.
import { daySeconds } from '@sealpost/protocol';
import { nthWeekdayOf, yearOf } from './calendar-day.ts';

const hourSeconds = 3_600;
const standardOffset = -5 * hourSeconds;
const daylightOffset = -4 * hourSeconds;

const offsetAt = (seconds: number): number => {
  const year = yearOf(Math.floor(seconds / daySeconds));
  const daylightFrom = nthWeekdayOf(year, 3, 0, 2) * daySeconds + 2 * hourSeconds - standardOffset;
  const daylightTo = nthWeekdayOf(year, 11, 0, 1) * daySeconds + 2 * hourSeconds - daylightOffset;
  return seconds >= daylightFrom && seconds < daylightTo ? daylightOffset : standardOffset;
};

/** New York local time at a Unix second, as seconds since 1970-01-01 00:00 local time. */
export const toNewYork = (seconds: number): number => seconds + offsetAt(seconds);

/** The Unix second of a New York local time; wrong in the hours around the two daylight-saving changes. */
export const fromNewYork = (wallSeconds: number): number => wallSeconds - offsetAt(wallSeconds - standardOffset);
