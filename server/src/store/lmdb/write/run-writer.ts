// Writes the runs of a stream in LMDB within a batch's transaction: new reports at its end, late ones into the runs around them. A damaged run stays where it is,
// unless a report of its key is stored again; a damaged report stays damaged until it is stored again.
import { encodeRun, type ReportInRun, runReports, type StoredRun, searchFirst } from '../../format/report-run.ts';
import type { Window } from '../../store.ts';
import { type FoundRun, momentMax, type ReportSource, runsBefore, runsFrom } from '../read/runs.ts';
import { type Counters, observationsOfKey, reportKey } from '../report-tables.ts';

/** One transaction: where it reads and writes, and what it counts. */
export type Transaction = ReportSource & { readonly counters: Counters };

type IntactRun = FoundRun & { readonly run: StoredRun };

const isIntact = (found: FoundRun): found is IntactRun => found.run !== undefined;

const lastOf = (reports: readonly Window[]): number => (reports.at(-1) as Window).observationsMs; // never empty

/** The first of ascending reports observed at or after a moment; their number when there is none. */
export const firstAtOrAfter = (reports: readonly Window[], observationsMs: number): number =>
  searchFirst(reports.length, (i) => (reports[i] as Window).observationsMs >= observationsMs); // within bounds

const sumBytes = (reports: readonly ReportInRun[]): number =>
  reports.reduce((sum, { fullReport }) => sum + fullReport.length, 0);

const putRun = (
  { tables, counters, unreadable }: Transaction,
  stream: number,
  reports: readonly ReportInRun[],
): void => {
  const key = reportKey(stream, lastOf(reports));
  const isReplaced = tables.runs.removeSync(key); // a damaged one: others were removed before
  tables.runs.put(key, encodeRun(key, reports));
  if (!isReplaced) return;
  unreadable.delete(key.toString('latin1'));
  // Counted are as many as are stored again; how many it had, nobody knows.
  counters.isExact = false;
  counters.reports -= reports.length;
  counters.reportBytes -= sumBytes(reports);
};

/** Puts reports as full runs, the last of which takes what is left; fewer are one run. */
const putRuns = (transaction: Transaction, stream: number, reports: readonly ReportInRun[]): void => {
  const count = Math.max(1, Math.floor(reports.length / runReports));
  for (let i = 0; i < count; i++)
    putRun(transaction, stream, reports.slice(i * runReports, i === count - 1 ? undefined : (i + 1) * runReports));
};

/** Removes a run and returns its reports. */
const takeRun = ({ tables }: Transaction, { key, run }: IntactRun): readonly ReportInRun[] => {
  tables.runs.removeSync(key);
  return run.stored();
};

/** Two ascending lists as one. A report that is stored again takes the place of a damaged one. */
const mergeReports = (
  { counters }: Transaction,
  known: readonly ReportInRun[],
  late: readonly ReportInRun[],
): readonly ReportInRun[] => {
  const fresh = new Set(late.map(({ observationsMs }) => observationsMs));
  const replaced = known.filter(({ observationsMs }) => fresh.has(observationsMs));
  counters.reports -= replaced.length;
  counters.reportBytes -= sumBytes(replaced);
  const kept = known.filter(({ observationsMs }) => !fresh.has(observationsMs));
  return [...kept, ...late].sort((a, b) => a.observationsMs - b.observationsMs);
};

/** Stores ascending late reports, each run rewritten once (D148). */
export function storeLate(transaction: Transaction, stream: number, late: readonly ReportInRun[]): void {
  for (let rest = late; rest.length > 0; ) {
    const { observationsMs } = rest[0] as Window; // there is one
    const [target] = runsFrom(transaction, stream, observationsMs);
    // Up to a damaged run they are runs of their own: nobody knows what it has.
    const count = target === undefined ? rest.length : firstAtOrAfter(rest, observationsOfKey(target.key) + 1);
    const some = rest.slice(0, count);
    if (target !== undefined && isIntact(target)) mergeLate(transaction, stream, target, some);
    else putRuns(transaction, stream, some);
    rest = rest.slice(count);
  }
}

const mergeLate = (transaction: Transaction, stream: number, target: IntactRun, late: readonly ReportInRun[]): void => {
  const isBefore = lastOf(late) < target.run.window(0).observationsMs;
  // Between two full runs they become a new run, which the next ones fill: a backfill must not write a full run again for each batch.
  const joined = isBefore ? [runBefore(transaction, stream, late), target].find(isShort) : target;
  const known = joined === undefined ? [] : takeRun(transaction, joined);
  putRuns(transaction, stream, mergeReports(transaction, known, late));
};

const isShort = (found: FoundRun | undefined): found is IntactRun =>
  found !== undefined && isIntact(found) && found.run.count < runReports;

const runBefore = (transaction: Transaction, stream: number, [first]: readonly ReportInRun[]): FoundRun | undefined => {
  const [found] = runsBefore(transaction, stream, first?.observationsMs ?? 0);
  return found;
};

/** The short runs at the end of a stream, ascending, which have so many reports where that is known: what is to be joined into full ones. */
const shortRuns = (
  transaction: Transaction,
  stream: number,
  count = Number.POSITIVE_INFINITY,
): readonly IntactRun[] => {
  const short: IntactRun[] = [];
  let left = count;
  if (left === 0) return short;
  for (const found of runsBefore(transaction, stream, momentMax + 1)) {
    if (!isShort(found)) break;
    short.push(found);
    left -= found.run.count;
    if (left <= 0) break; // the run before is a full one: it would be decompressed for nothing
  }
  return short.reverse();
};

/** How many reports are in the short runs at the end of a stream. */
export const countTail = (transaction: Transaction, stream: number): number =>
  shortRuns(transaction, stream).reduce((sum, { run }) => sum + run.count, 0);

/**
 * Stores ascending reports that are after all of a stream as one short run; once the short runs at its end have as many reports as a full one, they are
 * joined, and what is left over is written once more. Returns how many reports are in short runs then.
 */
export function storeNewest(
  transaction: Transaction,
  stream: number,
  reports: readonly ReportInRun[],
  tail: number,
): number {
  if (reports.length === 0) return tail;
  if (tail + reports.length < runReports) {
    putRun(transaction, stream, reports);
    return tail + reports.length;
  }
  const known = shortRuns(transaction, stream, tail).flatMap((run) => takeRun(transaction, run));
  const all = [...known, ...reports];
  const full = all.length - (all.length % runReports);
  for (let i = 0; i < full; i += runReports) putRun(transaction, stream, all.slice(i, i + runReports));
  if (full < all.length) putRun(transaction, stream, all.slice(full));
  return all.length - full;
}
