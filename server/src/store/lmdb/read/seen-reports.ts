// What was written since something was made of the stored reports. Most of what readers ask for is of the past, which no append can change: it is made
// once, and again only when reports were removed (D233).
import { changesOf, type ReportTables, removedFrom } from '../report-tables.ts';

/** The stored reports at one time. As long as nothing is written it is the same object. */
export type SeenReports = { readonly changes: number; readonly removed: number };

/**
 * Makes a look at the stored reports. `renew` begins a new snapshot; `writes` is how often the store was written, for the process that alone writes
 * it: it knows when nothing was written since it looked. Others are never told, and look each time.
 */
export const createSeenReports = (
  tables: ReportTables,
  renew: () => void,
  writes: () => number | undefined,
): (() => SeenReports) => {
  let seen: SeenReports = { changes: -1, removed: Number.NaN };
  let writesSeen: number | undefined;
  return () => {
    const written = writes();
    if (written !== undefined && written === writesSeen) return seen;
    renew();
    const changes = changesOf(tables);
    if (changes !== seen.changes) seen = { changes, removed: removedFrom(tables) };
    writesSeen = written;
    return seen;
  };
};

/** Does what was made of the reports at one time hold at another? `isSettled`: no append can change it. */
export const stillHolds = (then: SeenReports, isSettled: boolean, now: SeenReports): boolean =>
  then === now || (isSettled && then.removed === now.removed);
