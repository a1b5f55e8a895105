// Bounds of what every engine keeps besides reports: positions, rejected lines by number and bytes, days of usage.
import { dayMs } from '@sealpost/protocol';
import { encodeRecord } from './format/record.ts';
import type { QuarantinedReport } from './store.ts';

/** Positions that `appendedAfter` can go back; older batches are forgotten. */
export const positionsKept = 1_000_000;

/** Rejected lines that are kept. */
export const quarantineLinesMax = 10_000;

/** Bytes of rejected lines that are kept: about 10,000 lines with a report each. */
export const quarantineBytesMax = 16 * 2 ** 20;

/** The newest lines of a batch that fit, in their order. */
export function fitQuarantine(rejected: readonly QuarantinedReport[]): readonly QuarantinedReport[] {
  let bytes = 0;
  const newest = rejected.slice(-quarantineLinesMax);
  const firstOut = newest.findLastIndex((entry) => {
    bytes += encodeRecord(entry).length;
    return bytes > quarantineBytesMax;
  });
  return newest.slice(firstOut + 1);
}

/** Days that are kept, the newest one before today included. */
const usageDaysMax = 400;

/** So many days later. */
export const addDays = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);

/** The UTC day of a timestamp. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/**
 * The oldest day that stays, given the newest stored day before today. Neither a row dated ahead of the clock nor a clock that leaps ahead for
 * less than a day removes anything by it (D146).
 */
export const firstDayKept = (newestDayBefore: string): string => addDays(newestDayBefore, 1 - usageDaysMax);
