// Finds single reports in the runs of a stream: the one valid at a timestamp, its neighbors, and sequences. Corrupt ones are noted and skipped
// (D120).
import type { FeedId } from '@sealpost/protocol';
import type { PricedMoment } from '../../candle-rollup.ts';
import { secondOf, wholeSecondsEnd } from '../../format/rendered-report.ts';
import type { Block, BlockReport } from '../../format/report-block.ts';
import { contentsOf } from '../../format/report-contents.ts';
import { CorruptRecordError, type Neighbours, type ReportPage, type StoredReport, type Window } from '../../store.ts';
import { keysFrom, type ReportTables } from '../report-tables.ts';
import {
  type FoundReport,
  foundIn,
  noteRun,
  openRun,
  type ReportSource,
  readFound,
  requireStream,
  runsBefore,
  runsFrom,
  viewRun,
} from './runs.ts';
import { isLost } from './set-aside.ts';

const holds = ({ window }: FoundReport, seconds: number): boolean => secondOf(window.validFromMs) <= seconds;

// Not spread: D234.
const ofStream = (feedId: FeedId, { validFromMs, observationsMs, fullReport }: BlockReport): StoredReport => ({
  feedId,
  validFromMs,
  observationsMs,
  fullReport,
});

const readHolding = (
  source: ReportSource,
  feedId: FeedId,
  stream: number,
  seconds: number,
  found: FoundReport | undefined,
): StoredReport | undefined => {
  const report = found !== undefined && holds(found, seconds) ? readFound(source, stream, found) : undefined;
  return report && ofStream(feedId, report);
};

/** The report that holds at a second, by a bare look-up. What it finds is the one; it may find nothing where a key is damaged. */
export const findQuickly = (
  source: ReportSource,
  feedId: FeedId,
  stream: number,
  seconds: number,
): StoredReport | undefined =>
  readHolding(source, feedId, stream, seconds, quickFirst(source.tables, stream, seconds * 1_000));

/** The report that holds at a second, whatever else is damaged. */
export const findAt = (
  source: ReportSource,
  feedId: FeedId,
  stream: number,
  seconds: number,
): StoredReport | undefined => readHolding(source, feedId, stream, seconds, findFirst(source, stream, seconds * 1_000));

export const findNeighbours = (source: ReportSource, stream: number, seconds: number): Neighbours => {
  const ms = seconds * 1_000;
  let next: Window | undefined;
  let previous: Window | undefined;
  let damaged = false;
  for (const run of runsFrom(source.tables, stream, ms)) {
    noteRun(source, stream, run);
    const i = run.block?.firstAtOrAfter(ms) ?? 0;
    if (run.block === undefined) damaged = true;
    else if (i < run.block.count) {
      next = run.block.window(i);
      if (i > 0) previous = run.block.window(i - 1);
      // What holds here counts as missing only because it cannot be read.
      if (secondOf(next.validFromMs) <= seconds)
        damaged = readFound(source, stream, foundIn(run.block, i)) === undefined;
      break;
    }
  }
  previous ??= lastOfRunsBefore(source, stream, ms);
  return damaged || isLost(source.tables, stream, ms) ? { previous, next, damaged: true } : { previous, next };
};

/** Every report of a stream observed at or after a moment, ascending, unpacked only when read: before the next one is asked for. */
export function* foundFrom(source: ReportSource, stream: number, observationsMs: number): Generator<FoundReport> {
  let fromMs = observationsMs;
  for (const run of runsFrom(source.tables, stream, observationsMs)) {
    noteRun(source, stream, run);
    const { block } = run;
    if (block === undefined) continue;
    for (let i = block.firstAtOrAfter(fromMs); i < block.count; i++) {
      const found = foundIn(block, i);
      yield found;
      fromMs = found.window.observationsMs + 1; // none twice, whatever is stored twice
    }
  }
}

/**
 * The first report observed at or after a moment, by a bare look-up; undefined where that finds nothing sound. It is read from a view that
 * the next read of the store overwrites, so the caller unpacks it at once; no block of 14 KB is copied for one report.
 */
export const quickFirst = (tables: ReportTables, stream: number, observationsMs: number): FoundReport | undefined => {
  const run = quickRun(tables, stream, observationsMs);
  return run && foundIn(run, run.firstAtOrAfter(observationsMs)); // its last report is at or after the moment: that is its key
};

/** The run of that report, likewise. */
export const quickRun = (tables: ReportTables, stream: number, observationsMs: number): Block | undefined => {
  for (const table of [tables.blocks, tables.tail]) {
    for (const key of table.getKeys(keysFrom(stream, observationsMs, 1))) {
      try {
        requireStream(key, stream);
        return openRun(key, viewRun(table, key));
      } catch (error) {
        if (error instanceof CorruptRecordError) return undefined;
        throw error;
      }
    }
  }
  return undefined;
};

/** The first report observed at or after a moment, past damaged runs. The caller unpacks it at once. */
export const findFirst = (source: ReportSource, stream: number, observationsMs: number): FoundReport | undefined => {
  for (const found of foundFrom(source, stream, observationsMs)) return found;
  return undefined;
};

/** The window of the last report observed before a moment. */
export const findLastBefore = (source: ReportSource, stream: number, observationsMs: number): Window | undefined => {
  if (observationsMs <= 0) return undefined;
  // It is inside the run that ends at or after the moment, or the last of a run before.
  for (const { block } of runsFrom(source.tables, stream, observationsMs)) {
    const i = block?.firstAtOrAfter(observationsMs) ?? 0;
    if (block !== undefined && i > 0) return block.window(i - 1);
    if (block !== undefined) break;
  }
  return lastOfRunsBefore(source, stream, observationsMs);
};

const lastOfRunsBefore = (source: ReportSource, stream: number, observationsMs: number): Window | undefined => {
  for (const run of runsBefore(source.tables, stream, observationsMs)) {
    noteRun(source, stream, run);
    const i = run.block?.firstAtOrAfter(observationsMs) ?? 0;
    if (run.block !== undefined && i > 0) return run.block.window(i - 1);
  }
  return undefined;
};

/** Up to `limit` reports observed at or after a moment, ascending. */
export const readFrom = (
  source: ReportSource,
  feedId: FeedId,
  stream: number,
  fromMs: number,
  limit: number,
): readonly StoredReport[] => {
  const reports: StoredReport[] = [];
  for (const found of foundFrom(source, stream, fromMs)) {
    const report = readFound(source, stream, found);
    if (report !== undefined) reports.push(ofStream(feedId, report));
    if (reports.length === limit) break;
  }
  return reports;
};

/** The prices of a stream's intact reports in a range of milliseconds, the end not included. */
export const pricesIn = (
  source: ReportSource,
  stream: number,
  fromMs: number,
  endMs: number,
): readonly PricedMoment[] => {
  const prices: PricedMoment[] = [];
  for (const found of foundFrom(source, stream, fromMs)) {
    const { observationsMs } = found.window;
    if (observationsMs >= endMs) break;
    const report = readFound(source, stream, found);
    const price = report && contentsOf(report.fullReport)?.price;
    if (price !== undefined) prices.push({ observationsMs, price });
  }
  return prices;
};

/** The page of reports that were read, one more than its limit where others follow. */
export const toPage = (reports: readonly StoredReport[], limit: number): ReportPage => {
  if (reports.length <= limit) return { reports, more: false };
  const secondAt = (i: number): number | undefined => reports[i] && secondOf(reports[i].observationsMs);
  return { reports: reports.slice(0, wholeSecondsEnd(secondAt, limit)), more: true };
};

export const readPage = (
  source: ReportSource,
  feedId: FeedId,
  stream: number,
  fromSeconds: number,
  limit: number,
): ReportPage => toPage(readFrom(source, feedId, stream, fromSeconds * 1_000, limit + 1), limit);
