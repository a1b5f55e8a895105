// Finds the runs of a stream in LMDB, and the reports in them. A run or report that is not what was written is noted and missing; a damaged key hides its run,
// and perhaps others, until `store verify` names it (D120).
import type { FeedId } from '@sealpost/protocol';
import type { PricedMoment } from '../../candle-rollup.ts';
import type { DamageLog } from '../../damage.ts';
import { contentsOf } from '../../format/report-contents.ts';
import { openRun, type StoredRun } from '../../format/report-run.ts';
import { CorruptRecordError, type StoredReport, type Window } from '../../store.ts';
import type { Directory } from '../directory.ts';
import type { Table } from '../environment.ts';
import { changesOf, type ReportTables, reportKey, streamKey, streamOfKey } from '../report-tables.ts';

/** Where reports are read from, and where damage is noted. */
export type ReportSource = {
  readonly tables: ReportTables;
  readonly directory: Directory;
  readonly damage: DamageLog;
  /** Damaged runs, and the changes at which they were read: lmdb prints every byte of what it cannot decompress, so they are not read again at once. */
  readonly unreadable: Map<string, number>;
  /** `get` of the runs, or `view` where each run is used up before the next one is read. */
  readonly runBytes: Table['get'];
};

/** A run where it is stored; undefined where it is damaged. */
export type FoundRun = { readonly key: Buffer; readonly run: StoredRun | undefined };

/** Later than any observation: keys hold 48 bits of milliseconds. */
export const momentMax = 2 ** 48 - 1;

const unreadableMax = 1_000;

/** Opens the run under a key; one whose index is not what was written there is a `CorruptRecordError`. */
export function requireRun({ runs }: ReportTables, key: Buffer, bytes: Table['get'] = runs.get): StoredRun {
  try {
    return openRun(key, bytes(key) ?? Buffer.alloc(0));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CorruptRecordError('a run has a damaged length', { cause: error }); // more than memory can be taken for
  }
}

const readRun = (source: ReportSource, stream: number, key: Buffer): StoredRun | undefined => {
  const { tables, damage, directory, unreadable } = source;
  if (unreadable.size > 0 && unreadable.get(key.toString('latin1')) === changesOf(tables)) return undefined;
  try {
    if (streamOfKey(key) !== stream)
      throw new CorruptRecordError(`a key of stream ${streamOfKey(key)} is among those of stream ${stream}`);
    return requireRun(tables, key, source.runBytes);
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    if (unreadable.size >= unreadableMax) unreadable.clear();
    unreadable.set(key.toString('latin1'), changesOf(tables));
    damage.note({
      table: 'runs',
      key: key.toString('hex'),
      reason: error.message,
      feedId: directory.feedIdOf(stream),
    });
    return undefined;
  }
};

/** Every run of a stream that ends at or after a moment, ascending. */
export function* runsFrom(source: ReportSource, stream: number, observationsMs: number): Generator<FoundRun> {
  const range = { start: reportKey(stream, observationsMs), end: streamKey(stream + 1) };
  for (const key of source.tables.runs.getKeys(range)) yield { key, run: readRun(source, stream, key) };
}

/** Every run of a stream that ends before a moment, descending. */
export function* runsBefore(source: ReportSource, stream: number, observationsMs: number): Generator<FoundRun> {
  if (observationsMs <= 0) return;
  const range = { start: reportKey(stream, observationsMs - 1), end: streamKey(stream), reverse: true };
  for (const key of source.tables.runs.getKeys(range)) yield { key, run: readRun(source, stream, key) };
}

/** The key of a stream's last run, damaged or not. */
export function lastKey({ runs }: ReportTables, stream: number): Buffer | undefined {
  const range = { start: reportKey(stream, momentMax), end: streamKey(stream), reverse: true, limit: 1 };
  for (const key of runs.getKeys(range)) return key;
  return undefined;
}

/** The first intact run that ends at or after a moment. `isDamaged`: there are damaged ones before it. */
export function firstRun(
  source: ReportSource,
  stream: number,
  observationsMs: number,
): { readonly run: StoredRun | undefined; readonly isDamaged: boolean } {
  let isDamaged = false;
  for (const { run } of runsFrom(source, stream, observationsMs)) {
    if (run !== undefined) return { run, isDamaged };
    isDamaged = true;
  }
  return { run: undefined, isDamaged };
}

/** The window of the last report of the last intact run that ends before a moment. */
export function lastWindowBefore(source: ReportSource, stream: number, observationsMs: number): Window | undefined {
  for (const { run } of runsBefore(source, stream, observationsMs))
    if (run !== undefined) return run.window(run.count - 1);
  return undefined;
}

/** A report of an opened run, which has its bytes; undefined where it is damaged. */
export function viewIn(
  { damage, directory }: ReportSource,
  feedId: FeedId,
  stream: number,
  run: StoredRun,
  i: number,
): StoredReport | undefined {
  const { validFromMs, observationsMs } = run.window(i);
  try {
    return { feedId, validFromMs, observationsMs, fullReport: run.fullReport(i) };
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    const key = `${stream}/${observationsMs}`;
    damage.note({ table: 'reports', key, reason: error.message, feedId: directory.feedIdOf(stream) });
    return undefined;
  }
}

/** The same with bytes of its own. */
export function reportIn(...place: Parameters<typeof viewIn>): StoredReport | undefined {
  const report = viewIn(...place);
  return report && { ...report, fullReport: Buffer.from(report.fullReport) };
}

/** Reports in order. `isDamaged`: some are left out. */
export type FoundReports = { readonly reports: readonly StoredReport[]; readonly isDamaged: boolean };

/** Up to `limit` reports observed at or after a moment, ascending. */
export function readFrom(...[source, feedId, stream, fromMs, limit]: Place): FoundReports {
  const reports: StoredReport[] = [];
  const isDamaged = visitFrom(source, feedId, stream, fromMs, limit, (report) =>
    reports.push({ ...report, fullReport: Buffer.from(report.fullReport) }),
  );
  return { reports, isDamaged };
}

type Place = readonly [source: ReportSource, feedId: FeedId, stream: number, fromMs: number, limit: number];

/** Visits the same reports, each of which has the bytes of its run. Are some left out, which are damaged? */
export function visitFrom(
  source: ReportSource,
  feedId: FeedId,
  stream: number,
  fromMs: number,
  limit: number,
  visit: (report: StoredReport) => void,
): boolean {
  let count = 0;
  let isDamaged = false;
  let nextMs = fromMs; // none twice, whatever is stored twice
  for (const { run } of runsFrom(source, stream, fromMs)) {
    if (run === undefined) isDamaged = true;
    for (let i = run?.firstAtOrAfter(nextMs) ?? 0; run !== undefined && i < run.count; i++) {
      const report = viewIn(source, feedId, stream, run, i);
      if (report === undefined) isDamaged = true;
      else visit(report);
      nextMs = run.window(i).observationsMs + 1;
      if (report !== undefined && ++count === limit) return isDamaged;
    }
  }
  return isDamaged;
}

/** The prices of a stream's intact reports in a range of milliseconds, the end not included. */
export function pricesIn(source: ReportSource, stream: number, fromMs: number, endMs: number): readonly PricedMoment[] {
  const prices: PricedMoment[] = [];
  const feedId = source.directory.feedIdOf(stream);
  for (const { run } of feedId === undefined ? [] : runsFrom(source, stream, fromMs)) {
    for (let i = run?.firstAtOrAfter(fromMs) ?? 0; run !== undefined && i < run.count; i++) {
      const { observationsMs } = run.window(i);
      if (observationsMs >= endMs) return prices;
      const report = viewIn(source, feedId as FeedId, stream, run, i); // without it there is no run
      const price = report && contentsOf(report.fullReport)?.price;
      if (price !== undefined) prices.push({ observationsMs, price });
    }
  }
  return prices;
}

/** How many reports of a stream are stored in a range of milliseconds, the end not included; those of damaged runs do not count. */
export function countIn(source: ReportSource, stream: number, fromMs: number, endMs: number): number {
  let count = 0;
  for (const { run } of runsFrom(source, stream, fromMs)) {
    if (run === undefined) continue;
    const end = run.firstAtOrAfter(endMs);
    count += Math.max(0, end - run.firstAtOrAfter(fromMs));
    if (end < run.count) break;
  }
  return count;
}
