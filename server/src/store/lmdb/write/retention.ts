// Removes old reports from LMDB, a slice per transaction: whole runs, oldest first. A run is removed when its last report is too old, so some
// reports outlive the bound by a run; readers hide them (D52).
import type { DamageLog } from '../../damage.ts';
import { runReports, type StoredRun } from '../../format/report-run.ts';
import type { Retention, Trimmed } from '../../store.ts';
import { rollupNames, trimRollups } from '../candles.ts';
import { createDirectory } from '../directory.ts';
import type { Environment, Table } from '../environment.ts';
import { momentMax, pricesIn, type ReportSource, runsFrom } from '../read/runs.ts';
import {
  keysFrom,
  observationsOfKey,
  type ReportTables,
  readCounters,
  streamOfKey,
  writeCounters,
} from '../report-tables.ts';

/**
 * Runs removed per transaction, each of another stream: with the roll-ups that are rebuilt they take some milliseconds, so appends are hardly delayed.
 */
const sliceRuns = 8;

/** Roll-ups of each kind that one slice removes of a stream: more than a run has reports. */
const rollupsMax = 8 * runReports;

/** A stream's oldest run, by its key. */
type OldRun = { readonly key: Buffer; readonly stream: number; readonly lastMs: number };

/** Removes one slice. Returns how many reports were removed and whether another slice is due. */
export const trimSlice = (
  environment: Environment,
  tables: ReportTables,
  retention: Retention,
  damage: DamageLog,
): Trimmed =>
  environment.root.transactionSync(() => {
    const source = {
      tables,
      directory: createDirectory(tables, damage),
      damage,
      unreadable: new Map<string, number>(),
      runBytes: tables.runs.get,
    };
    const streams = [...source.directory.numbers()];
    const oldest = streams.flatMap((stream) => firstKey(tables, stream) ?? []);
    const overdueFromMs = retention.beforeMs - (retention.overdueMaxMs ?? Number.POSITIVE_INFINITY);
    // A damaged key may seem to be of any time.
    if (oldest.some((run) => run.lastMs < overdueFromMs && openOld(source, run) !== undefined))
      return { removed: 0, more: false, isWithheld: true };
    const slice = dueRuns(tables, oldest, retention);
    const counters = readCounters(tables, damage);
    const before = counters.reports;
    let isMore = false;
    for (const { key, stream, lastMs } of slice) {
      const run = openOld(source, { key, stream });
      if (!tables.runs.removeSync(key)) continue; // its key is damaged, and it is not found by it
      isMore = true;
      counters.rewrites += 1;
      if (run === undefined) counters.isExact = false;
      counters.reports -= run?.count ?? 0;
      counters.reportBytes -= run?.reportBytes ?? 0;
      // What a damaged run has is not known, but nothing of it is older than what was removed.
      trimRollupsOf(source, stream, firstMsOf(source, stream) ?? lastMs + 1);
    }
    if (slice.length === 0) isMore = trimStale(source, streams, retention.beforeMs);
    writeCounters(tables, counters);
    const endMs = slice.length === 0 ? undefined : Math.max(...slice.map(({ lastMs }) => lastMs)) + 1;
    return { removed: Math.max(0, before - counters.reports), more: isMore, endMs };
  });

/** The run under a key; undefined where it is damaged. */
const openOld = (source: ReportSource, { key, stream }: Pick<OldRun, 'key' | 'stream'>): StoredRun | undefined => {
  for (const found of runsFrom(source, stream, observationsOfKey(key))) return found.run;
  return undefined;
};

/** When a stream's oldest report was observed, later than any where it has none; undefined where its run is damaged. */
const firstMsOf = (source: ReportSource, stream: number): number | undefined => {
  for (const { run } of runsFrom(source, stream, 0)) return run?.window(0).observationsMs;
  return momentMax;
};

/** Makes the roll-ups of a stream those of its reports from a moment on; returns how many were removed. */
const trimRollupsOf = (source: ReportSource, stream: number, firstMs: number): number =>
  trimRollups(
    source.tables,
    stream,
    { firstMs, pricesOf: (...range) => pricesIn(source, ...range), most: rollupsMax },
    source.damage,
  );

/** Does a stream have roll-ups of minutes that ended before the minute of a moment? */
const hasMinuteBefore = ({ candles }: ReportTables, stream: number, ms: number): boolean =>
  [...candles.getKeys(keysFrom(stream, 0, 1))].some(
    (key) => key.length === 10 && streamOfKey(key) === stream && observationsOfKey(key) < ms - (ms % 60_000),
  );

/** Removes roll-ups that are too old and older than the reports of their streams: those of lost reports. Returns whether there were any. */
const trimStale = (source: ReportSource, streams: readonly number[], beforeMs: number): boolean => {
  const stale = streams
    .filter((stream) => hasMinuteBefore(source.tables, stream, beforeMs))
    .map((stream) => ({ stream, firstMs: Math.min(beforeMs, firstMsOf(source, stream) ?? 0) }))
    .filter(({ stream, firstMs }) => hasMinuteBefore(source.tables, stream, firstMs))
    .slice(0, sliceRuns);
  return stale.reduce((removed, { stream, firstMs }) => removed + trimRollupsOf(source, stream, firstMs), 0) > 0;
};

const dueRuns = (
  tables: ReportTables,
  oldest: readonly OldRun[],
  { beforeMs, bytesMax }: Retention,
): readonly OldRun[] => {
  const byAge = oldest.toSorted((a, b) => a.lastMs - b.lastMs);
  const aged = byAge.filter(({ lastMs }) => lastMs < beforeMs);
  if (aged.length > 0) return aged.slice(0, sliceRuns);
  // One at a time by bytes: the next slice may find that the file has room again. Only what goes by it counts: rejected lines and the order of
  // appending have their own bounds. Every stream keeps its newest run (D147).
  if (freeableBytes(tables) <= bytesMax) return [];
  return byAge.filter(({ stream }) => [...tables.runs.getKeys(keysFrom(stream, 0, 2))].length > 1).slice(0, 1);
};

const firstKey = ({ runs }: ReportTables, stream: number): OldRun | undefined => {
  for (const key of runs.getKeys(keysFrom(stream, 0, 1)))
    if (streamOfKey(key) === stream) return { key, stream, lastMs: observationsOfKey(key) };
  return undefined;
};

/** Bytes of pages in use by the tables; free pages are used again before the file grows. */
export const usedBytes = (tables: ReportTables): number => tableBytes(Object.values(tables));

/** Bytes of the tables that retention removes from: reports, and the roll-ups of their prices. */
export const freeableBytes = (tables: ReportTables): number =>
  tableBytes([tables.runs, ...rollupNames.map((name) => tables[name])]);

/** The same of some tables. */
export const tableBytes = (tables: readonly (Table | undefined)[]): number =>
  tables.reduce((sum, table) => {
    if (table === undefined) return sum;
    const stats = table.getStats() as {
      pageSize: number;
      treeBranchPageCount: number;
      treeLeafPageCount: number;
      overflowPages: number;
    }; // lmdb types it as {}
    return sum + (stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages) * stats.pageSize;
  }, 0);
