// Appends reports to LMDB: one transaction per batch, in the writer thread. It detects duplicates, conflicts and overlaps, closes runs into blocks, and
// updates append order and counters. A corrupt run is set aside, and its reports can be appended again (D120).
import type { FeedId } from '@sealpost/protocol';
import { judgeReport, type Neighbor } from '../../append-rules.ts';
import { positionsKept } from '../../bounds.ts';
import type { DamageLog } from '../../damage.ts';
import { type BlockReport, blockReports } from '../../format/report-block.ts';
import type { AppendOutcome, NewReport, StoredReport, Window } from '../../store.ts';
import { createCandleWriter } from '../candles.ts';
import { createDirectory, putStream } from '../directory.ts';
import type { Environment } from '../environment.ts';
import { findFirst, findLastBefore, pricesIn } from '../read/found-reports.ts';
import { momentMax, noteRun, openRun, readFound, runsBefore } from '../read/runs.ts';
import {
  encodeAppended,
  lastPosition,
  positionKey,
  type ReportTables,
  readCounters,
  reportKey,
  streamOfKey,
  writeCounters,
  writePosition,
} from '../report-tables.ts';
import { openLostRanges } from './lost-ranges.ts';
import { forgetRemoved } from './retention.ts';
import {
  copyRun,
  firstAtOrAfter,
  insertIntoTail,
  mendTail,
  mergeIntoBlocks,
  mergeReports,
  putFittingRuns,
  putInPlace,
  putRun,
  type RunCopy,
  removeRun,
  salvage,
  setRunAside,
  type Transaction,
  tailRuns,
} from './run-writer.ts';

/** A range without any stored report; both ends are outside. */
type Gap = { readonly afterMs: number; readonly beforeMs: number };

/**
 * What the writer knows of a stream without looking, kept only between successful transactions: `tailCount` reports are in the tail, which is closed
 * into blocks at `closeAt`. Of this batch, `pending` ones are after the newest stored one and `late` ones before it, both ascending and not written yet.
 */
type StreamState = {
  readonly stream: number;
  newestMs: number;
  isEmpty: boolean;
  tailCount: number;
  closeAt: number;
  pending: BlockReport[];
  late: BlockReport[];
  gap: Gap;
};

export type ReportWriter = {
  readonly append: (batch: readonly NewReport[]) => readonly AppendOutcome[];
  readonly forget: () => void;
};

export const createReportAppender = (
  environment: Environment,
  tables: ReportTables,
  damage: DamageLog,
): ReportWriter => {
  const states = new Map<FeedId, StreamState>();
  const lostRanges = openLostRanges(tables);
  let streams = createNumbers(tables, damage);
  let isOrdered = false;
  const stateOf = (transaction: Transaction, feedId: FeedId): StreamState => {
    const known = states.get(feedId) ?? loadState(transaction, streams.numberOf(feedId));
    states.set(feedId, known);
    return known;
  };
  const appendAll = (batch: readonly NewReport[]): readonly AppendOutcome[] => {
    const stored: Buffer[] = [];
    const touched = new Set<StreamState>();
    const counters = readCounters(tables, damage);
    const transaction = { tables, directory: streams.directory, damage, counters, lostRanges };
    if (!isOrdered) mendTail(transaction);
    isOrdered = true;
    const candles = createCandleWriter(tables, damage, (...range) => pricesIn(transaction, ...range));
    const outcomes = batch.map((report) => {
      const state = stateOf(transaction, report.feedId);
      const outcome = place(transaction, state, report);
      if (outcome !== 'stored') return outcome;
      stored.push(reportKey(state.stream, report.observationsMs));
      counters.reports += 1;
      candles.add(state.stream, report);
      counters.reportBytes += report.fullReport.length;
      touched.add(state);
      return outcome;
    });
    for (const { stream, isEmpty, late, pending } of touched) {
      const [first] = isEmpty ? [...late, ...pending] : late;
      // What was lost without being removed is in roll-ups on purpose (D236).
      if (first !== undefined && !lostRanges.isIn(stream)) forgetRemoved(transaction, stream, first.observationsMs);
    }
    for (const state of touched) writeStream(transaction, state);
    if (stored.length > 0) recordAppended(tables, stored, damage);
    for (const key of lostRanges.among(stored)) candles.rebuild(key);
    candles.write();
    writeCounters(tables, counters);
    return outcomes;
  };
  return {
    append: (batch) => environment.root.transactionSync(() => appendAll(batch)),
    forget: () => {
      states.clear();
      isOrdered = false;
      streams = createNumbers(tables, damage);
    },
  };
};

/** The numbers of streams as the writer knows them; a stream that has none gets the next. */
const createNumbers = (tables: ReportTables, damage: DamageLog) => {
  const directory = createDirectory(tables, damage);
  const added = new Map<FeedId, number>();
  return {
    directory,
    numberOf: (feedId: FeedId): number => {
      const known = added.get(feedId) ?? directory.numberOf(feedId);
      if (known !== undefined) return known;
      const used = [...directory.numbers(), ...added.values(), ...lastStreams(tables)];
      const next = used.reduce((most, one) => Math.max(most, one), 0) + 1;
      putStream(tables, feedId, next);
      added.set(feedId, next);
      return next;
    },
  };
};

/** The last streams that have intact runs: numbers of theirs are in use even if both of their rows are damaged. */
const lastStreams = (tables: ReportTables): readonly number[] =>
  [tables.blocks, tables.tail].flatMap((table) =>
    [...table.getRange({ reverse: true, limit: 1 })].flatMap(({ key, value }) => {
      try {
        openRun(key, value);
        return [streamOfKey(key)];
      } catch {
        return [];
      }
    }),
  );

const loadState = (transaction: Transaction, stream: number): StreamState => {
  putInPlace(transaction, stream);
  const damaged: RunCopy[] = [];
  let newestMs = -1;
  for (const run of runsBefore(transaction.tables, stream, momentMax)) {
    noteRun(transaction, stream, run);
    if (run.block !== undefined) {
      newestMs = run.block.window(run.block.count - 1).observationsMs;
      break;
    }
    damaged.push(copyRun(stream, run));
  }
  for (const run of damaged) setRunAside(transaction, stream, run);
  const tailCount = tailRuns(transaction, stream).reduce((sum, { block }) => sum + block.count, 0);
  const isEmpty = newestMs < 0;
  return { stream, newestMs, isEmpty, tailCount, closeAt: 2 * blockReports, pending: [], late: [], gap: noGap };
};

const place = (transaction: Transaction, state: StreamState, report: StoredReport): AppendOutcome => {
  if (report.validFromMs > state.newestMs) {
    state.pending.push(report);
    state.newestMs = report.observationsMs;
    return 'stored';
  }
  const rejected = judgeLate(transaction, state, report);
  if (rejected === undefined) state.late.splice(firstAtOrAfter(state.late, report.observationsMs), 0, report);
  return rejected ?? 'stored';
};

/** Why a report that is not after the newest is not stored; undefined when it is. */
const judgeLate = (transaction: Transaction, state: StreamState, report: StoredReport): AppendOutcome | undefined => {
  const { gap, late, pending } = state;
  const accepted = [...neighborsIn(late, report), ...neighborsIn(pending, report)];
  const isInGap = report.validFromMs > gap.afterMs && report.observationsMs < gap.beforeMs;
  return judgeReport(report, isInGap ? accepted : [...accepted, ...storedNeighbors(transaction, state, report)]);
};

/** The two of ascending reports around one. */
const neighborsIn = (reports: readonly BlockReport[], { observationsMs }: Window): readonly Neighbor[] => {
  const i = firstAtOrAfter(reports, observationsMs);
  return reports.slice(Math.max(0, i - 1), i + 1);
};

/** What is stored around a report. The gap between them is remembered: a backfill fills it one by one. */
const storedNeighbors = (transaction: Transaction, state: StreamState, report: StoredReport): readonly Neighbor[] => {
  const next = findFirst(transaction, state.stream, report.observationsMs);
  const isSame = next?.window.observationsMs === report.observationsMs;
  const fullReport = isSame ? readFound(transaction, state.stream, next)?.fullReport : undefined;
  const previous = findLastBefore(transaction, state.stream, report.observationsMs);
  state.gap = {
    afterMs: previous?.observationsMs ?? -1,
    beforeMs: next?.window.validFromMs ?? Number.POSITIVE_INFINITY,
  };
  return [...(next ? [{ ...next.window, fullReport }] : []), ...(previous ? [previous] : [])];
};

/** No gap: what is stored has to be looked up. */
const noGap: Gap = { afterMs: Number.POSITIVE_INFINITY, beforeMs: -1 };

/**
 * Writes the reports of this batch for a stream: late reports into the runs around them, the others as one short run in the tail. Once the tail has
 * two runs' worth of reports, by the length of the last run, it is closed into blocks: what is left over is written once more.
 */
const writeStream = (transaction: Transaction, state: StreamState): void => {
  const { tables } = transaction;
  const { stream, pending, late } = state;
  state.pending = [];
  state.late = [];
  state.isEmpty = false;
  state.gap = noGap;
  const lateInTail = mergeIntoBlocks(transaction, stream, late);
  const isInserted = lateInTail.length === 0 || insertIntoTail(transaction, stream, lateInTail);
  state.tailCount += lateInTail.length + pending.length;
  if (isInserted && state.tailCount < state.closeAt) {
    if (pending.length > 0) putRun(tables.tail, stream, pending);
    return;
  }
  const short = tailRuns(transaction, stream);
  const known = short.flatMap((run) => salvage(transaction, stream, run));
  const all = [...mergeReports(known, isInserted ? [] : lateInTail), ...pending];
  for (const run of short) removeRun(transaction, run);
  state.tailCount = all.length;
  if (all.length >= state.closeAt) {
    const { put, length } = putFittingRuns(tables.blocks, stream, all);
    state.tailCount -= put;
    state.closeAt = 2 * length;
  }
  if (state.tailCount > 0) putRun(tables.tail, stream, all.slice(-state.tailCount));
};

const recordAppended = (tables: ReportTables, stored: readonly Buffer[], damage: DamageLog): void => {
  const first = lastPosition(tables, damage) + 1;
  const last = first + stored.length - 1;
  const key = positionKey(first);
  tables.appended.put(key, encodeAppended(key, stored));
  writePosition(tables, last);
  const forgotten = [
    ...tables.appended.getKeys({
      start: positionKey(0),
      end: positionKey(Math.max(0, last - positionsKept)),
      limit: 4,
    }),
  ];
  // The batch that holds the boundary stays: it begins before it.
  for (const old of forgotten.slice(0, -1)) tables.appended.remove(old);
};
