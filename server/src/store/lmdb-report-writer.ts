// Owns writing reports to LMDB: one transaction per batch, run in the writer's own thread. Decides duplicates, conflicts and
// overlaps, closes runs into blocks, keeps `latest`, the order of appending, and the counters, all in that transaction.
import type { FeedId } from '@sealpost/protocol';
import { createCandleWriter } from './lmdb-candles.ts';
import { readCounters, writeCounters } from './lmdb-counters.ts';
import { type Environment, keepHeadroom, type Table } from './lmdb-environment.ts';
import { findFirst, findLastBefore, lastPosition, momentMax } from './lmdb-report-reader.ts';
import {
  encodeAppended,
  encodeLatest,
  keysFrom,
  positionKey,
  type ReportTables,
  reportKey,
  streamKey,
} from './lmdb-report-tables.ts';
import { renderReport } from './rendered-report.ts';
import { type Block, type BlockReport, blockReports, encodeBlock, openBlock } from './report-block.ts';
import { type AppendOutcome, type NewReport, reportTag, type StoredReport, type Window } from './store.ts';

/** Positions that `appendedAfter` can go back; older batches are forgotten. */
const positionsKept = 1_000_000;

/**
 * What the writer knows of a stream without looking, kept only between successful transactions: `tailCount` reports are in the tail,
 * `pending` ones of this batch are not written yet.
 */
type StreamState = { readonly stream: number; newestMs: number; tailCount: number; pending: BlockReport[] };

export type ReportWriter = {
  readonly append: (batch: readonly NewReport[]) => readonly AppendOutcome[];
  readonly forget: () => void;
};

export const createReportWriter = (environment: Environment, tables: ReportTables): ReportWriter => {
  const states = new Map<FeedId, StreamState>();
  const stateOf = (feedId: FeedId): StreamState => {
    const known = states.get(feedId) ?? loadState(tables, feedId);
    states.set(feedId, known);
    return known;
  };
  const appendAll = (batch: readonly NewReport[]): readonly AppendOutcome[] => {
    const stored: Buffer[] = [];
    const newest = new Map<StreamState, StoredReport>();
    const counters = readCounters(tables);
    const candles = createCandleWriter(tables.candles);
    const outcomes = batch.map((report) => {
      const state = stateOf(report.feedId);
      const outcome = place(tables, state, report);
      if (outcome !== 'stored') return outcome;
      stored.push(reportKey(state.stream, report.observationsMs));
      counters.reports += 1;
      candles.add(state.stream, report);
      counters.reportBytes += report.fullReport.length;
      if (report.observationsMs === state.newestMs) newest.set(state, report);
      return outcome;
    });
    for (const [state, report] of newest) {
      writePending(tables, state);
      const { stream } = state;
      tables.latest.put(streamKey(stream), encodeLatest(stream, report, reportTag(report.fullReport), render(report)));
    }
    if (stored.length > 0) recordAppended(tables, stored);
    candles.write();
    writeCounters(tables, counters);
    return outcomes;
  };
  return {
    append: (batch) => {
      keepHeadroom(environment);
      return environment.root.transactionSync(() => appendAll(batch));
    },
    forget: () => states.clear(),
  };
};

const render = (report: StoredReport): string => `{"report":${renderReport(report)}}`;

const loadState = (tables: ReportTables, feedId: FeedId): StreamState => {
  const stream = numberOf(tables, feedId);
  const newest = findLastBefore(tables, stream, momentMax);
  const tailCount = tailRuns(tables, stream).reduce((sum, { run }) => sum + run.count, 0);
  return { stream, newestMs: newest?.observationsMs ?? -1, tailCount, pending: [] };
};

const tailRuns = (tables: ReportTables, stream: number) =>
  [...tables.tail.getRange(keysFrom(stream, 0))].map(({ key, value }) => ({ key, run: openBlock(stream, value) }));

const reportsOf = (run: Block): readonly BlockReport[] => Array.from({ length: run.count }, (_, i) => run.report(i));

const numberOf = (tables: ReportTables, feedId: FeedId): number => {
  const key = Buffer.from(feedId.slice(2), 'hex');
  const known = tables.numbers.get(key);
  if (known !== undefined) return known.readUInt32BE();
  const [last] = [...tables.feedIds.getKeys({ reverse: true, limit: 1 })];
  const next = streamKey(last === undefined ? 1 : last.readUInt32BE() + 1);
  tables.numbers.put(key, next);
  tables.feedIds.put(next, key);
  return next.readUInt32BE();
};

const place = (tables: ReportTables, state: StreamState, report: StoredReport): AppendOutcome => {
  if (report.validFromMs > state.newestMs) {
    state.pending.push(report);
    state.newestMs = report.observationsMs;
    return 'stored';
  }
  writePending(tables, state);
  const refused = judgeLate(tables, state.stream, report);
  if (refused === undefined) insertLate(tables, state, report);
  return refused ?? 'stored';
};

/** What speaks against a report that is not after the newest; undefined when it fits into a gap. */
const judgeLate = (tables: ReportTables, stream: number, report: StoredReport): AppendOutcome | undefined => {
  const next = findFirst(tables, stream, report.observationsMs);
  if (next?.window.observationsMs === report.observationsMs) {
    return Buffer.compare(next.read().fullReport, report.fullReport) === 0 ? 'duplicate' : 'conflict';
  }
  if (next !== undefined && next.window.validFromMs <= report.observationsMs) return 'overlap';
  const previous = findLastBefore(tables, stream, report.observationsMs);
  return previous !== undefined && previous.observationsMs >= report.validFromMs ? 'overlap' : undefined;
};

/** Puts a late report into the run that ends after it: there is one, since the newest report is later. */
const insertLate = (tables: ReportTables, state: StreamState, report: StoredReport): void => {
  for (const table of [tables.blocks, tables.tail]) {
    for (const { key, value } of table.getRange({ ...keysFrom(state.stream, report.observationsMs), limit: 1 })) {
      const run = openBlock(state.stream, value);
      const all = reportsOf(run).toSpliced(run.firstAtOrAfter(report.observationsMs), 0, report);
      if (table === tables.tail) state.tailCount += 1;
      if (all.length <= 2 * blockReports) table.put(key, encodeBlock(state.stream, all));
      else for (const half of [all.slice(0, blockReports), all.slice(blockReports)]) putRun(table, state.stream, half);
      return;
    }
  }
};

/** Writes what this batch brought a stream, as one short run; once there are two runs' worth of reports, closes them into blocks. */
const writePending = (tables: ReportTables, state: StreamState): void => {
  const { stream, pending } = state;
  if (pending.length === 0) return;
  state.pending = [];
  state.tailCount += pending.length;
  if (state.tailCount < 2 * blockReports) {
    putRun(tables.tail, stream, pending);
    return;
  }
  const short = tailRuns(tables, stream);
  const all = [...short.flatMap(({ run }) => reportsOf(run)), ...pending];
  for (const { key } of short) tables.tail.remove(key);
  const open = all.length % blockReports;
  for (let i = 0; i < all.length - open; i += blockReports)
    putRun(tables.blocks, stream, all.slice(i, i + blockReports));
  if (open > 0) putRun(tables.tail, stream, all.slice(-open));
  state.tailCount = open;
};

const putRun = (table: Table, stream: number, reports: readonly BlockReport[]): void => {
  const last = reports[reports.length - 1] as Window; // a run is never empty
  table.put(reportKey(stream, last.observationsMs), encodeBlock(stream, reports));
};

const recordAppended = (tables: ReportTables, stored: readonly Buffer[]): void => {
  const first = lastPosition(tables) + 1;
  const last = first + stored.length - 1;
  tables.appended.put(positionKey(first), encodeAppended(stored));
  const value = positionKey(last);
  tables.meta.put(Buffer.from('position'), value);
  const forgotten = [
    ...tables.appended.getKeys({
      start: positionKey(0),
      end: positionKey(Math.max(0, last - positionsKept)),
      limit: 4,
    }),
  ];
  // The batch that holds the boundary stays: it begins before it.
  for (const key of forgotten.slice(0, -1)) tables.appended.remove(key);
};
