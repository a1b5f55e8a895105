// Appends reports to LMDB: one transaction per batch, in the writer thread. It detects duplicates, conflicts and overlaps, and updates append order, roll-ups and
// counters.
import type { FeedId } from '@sealpost/protocol';
import { judgeReport, type Neighbor } from '../../append-rules.ts';
import { positionsKept } from '../../bounds.ts';
import type { DamageLog } from '../../damage.ts';
import type { ReportInRun } from '../../format/report-run.ts';
import { type AppendOutcome, CorruptRecordError, type NewReport, type StoredReport, type Window } from '../../store.ts';
import { createCandleWriter } from '../candles.ts';
import { createDirectory, putStream } from '../directory.ts';
import type { Environment } from '../environment.ts';
import {
  countIn,
  firstRun,
  lastKey,
  lastWindowBefore,
  momentMax,
  pricesIn,
  reportIn,
  requireRun,
} from '../read/runs.ts';
import {
  encodeAppended,
  lastPosition,
  observationsOfKey,
  positionKey,
  type ReportTables,
  readCounters,
  reportKey,
  streamOfKey,
  writeCounters,
  writePosition,
} from '../report-tables.ts';
import { countTail, firstAtOrAfter, storeLate, storeNewest, type Transaction } from './run-writer.ts';

/** A range without any stored report; both ends are outside. */
type Gap = { readonly afterMs: number; readonly beforeMs: number };

/**
 * What the writer knows of a stream without looking, kept only between successful transactions: `tail` reports are in the short runs at its end, which is unknown
 * after late ones. Of this batch, `pending` ones are after the newest stored one and `late` ones before it, both ascending and not written yet.
 */
type StreamState = {
  readonly stream: number;
  newestMs: number;
  /** Up to here, behind the newest, reports were lost with a damaged run. */
  readonly lostUntilMs: number;
  tail: number | undefined;
  pending: ReportInRun[];
  late: ReportInRun[];
  gap: Gap;
};

export type ReportWriter = {
  readonly append: (batch: readonly NewReport[]) => readonly AppendOutcome[];
  readonly forget: () => void;
};

export function createReportAppender(environment: Environment, tables: ReportTables, damage: DamageLog): ReportWriter {
  const states = new Map<FeedId, StreamState>();
  const unreadable = new Map<string, number>();
  let streams = createNumbers(tables, damage);
  const stateOf = (transaction: Transaction, feedId: FeedId): StreamState => {
    const known = states.get(feedId) ?? loadState(transaction, streams.numberOf(feedId));
    states.set(feedId, known);
    return known;
  };
  const appendAll = (batch: readonly NewReport[]): readonly AppendOutcome[] => {
    const stored: Buffer[] = [];
    const touched = new Set<StreamState>();
    const counters = readCounters(tables, damage);
    const transaction = {
      tables,
      directory: streams.directory,
      damage,
      counters,
      unreadable,
      runBytes: tables.runs.get,
    };
    const candles = createCandleWriter(
      tables,
      damage,
      (...range) => pricesIn(transaction, ...range),
      (...range) => countIn(transaction, ...range),
    );
    const outcomes = batch.map((report) => {
      const state = stateOf(transaction, report.feedId);
      const isLate = report.observationsMs <= Math.max(state.newestMs, state.lostUntilMs);
      const outcome = place(transaction, state, report);
      if (outcome !== 'stored') return outcome;
      stored.push(reportKey(state.stream, report.observationsMs));
      counters.reports += 1;
      counters.reportBytes += report.fullReport.length;
      candles.add(state.stream, report, isLate);
      touched.add(state);
      return outcome;
    });
    for (const state of touched) writeStream(transaction, state);
    if (stored.length > 0) recordAppended(tables, stored, damage);
    candles.write();
    writeCounters(tables, counters);
    return outcomes;
  };
  return {
    append: (batch) => environment.root.transactionSync(() => appendAll(batch)),
    forget: () => {
      states.clear();
      streams = createNumbers(tables, damage);
    },
  };
}

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

/** The last stream, if its last run is intact: its number is in use even if both of its rows are damaged. */
const lastStreams = (tables: ReportTables): readonly number[] =>
  [...tables.runs.getKeys({ reverse: true, limit: 1 })].flatMap((key) => {
    try {
      requireRun(tables, key);
      return [streamOfKey(key)];
    } catch (error) {
      if (error instanceof CorruptRecordError) return [];
      throw error;
    }
  });

const loadState = (transaction: Transaction, stream: number): StreamState => {
  const newestMs = lastWindowBefore(transaction, stream, momentMax + 1)?.observationsMs ?? -1;
  const last = lastKey(transaction.tables, stream);
  const lostUntilMs = last === undefined ? -1 : observationsOfKey(last);
  return { stream, newestMs, lostUntilMs, tail: undefined, pending: [], late: [], gap: noGap };
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
const neighborsIn = (reports: readonly ReportInRun[], { observationsMs }: Window): readonly Neighbor[] => {
  const i = firstAtOrAfter(reports, observationsMs);
  return reports.slice(Math.max(0, i - 1), i + 1);
};

/** What is stored around a report. The gap between them is remembered: a backfill fills it one by one. */
const storedNeighbors = (transaction: Transaction, state: StreamState, report: StoredReport): readonly Neighbor[] => {
  const { stream } = state;
  const { feedId, observationsMs } = report;
  const { run } = firstRun(transaction, stream, observationsMs);
  const i = run?.firstAtOrAfter(observationsMs) ?? 0;
  const next = run?.window(i);
  const previous =
    run !== undefined && i > 0 ? run.window(i - 1) : lastWindowBefore(transaction, stream, observationsMs);
  const isSame = run !== undefined && next?.observationsMs === observationsMs;
  const fullReport = isSame ? reportIn(transaction, feedId, stream, run, i)?.fullReport : undefined;
  state.gap = {
    afterMs: previous?.observationsMs ?? -1,
    beforeMs: next?.validFromMs ?? Number.POSITIVE_INFINITY,
  };
  return [...(next ? [{ ...next, fullReport }] : []), ...(previous ? [previous] : [])];
};

/** No gap: what is stored has to be looked up. */
const noGap: Gap = { afterMs: Number.POSITIVE_INFINITY, beforeMs: -1 };

/** Writes the reports of this batch for a stream. */
const writeStream = (transaction: Transaction, state: StreamState): void => {
  const { stream, pending, late } = state;
  state.pending = [];
  state.late = [];
  state.gap = noGap;
  if (late.length > 0) {
    storeLate(transaction, stream, late);
    transaction.counters.rewrites += 1;
    state.tail = undefined;
  }
  const tail = state.tail ?? countTail(transaction, stream);
  state.tail = storeNewest(transaction, stream, pending, tail);
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
