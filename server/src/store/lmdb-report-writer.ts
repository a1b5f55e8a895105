// Writing reports to LMDB: one transaction per batch, run in the writer's own thread. Decides duplicates, conflicts and overlaps, closes runs
// into blocks, keeps the order of appending and the counters, all in that transaction. A damaged run is set aside, and what it held can be
// appended again (D120).
import type { FeedId } from '@sealpost/protocol';
import { judgeReport } from './append-rules.ts';
import type { DamageLog } from './damage.ts';
import { createCandleWriter } from './lmdb-candles.ts';
import { type Counters, lastPosition, readCounters, writeCounters, writePosition } from './lmdb-counters.ts';
import { createDirectory, putStream } from './lmdb-directory.ts';
import { type Environment, keepHeadroom, type Table } from './lmdb-environment.ts';
import { findFirst, findLastBefore } from './lmdb-found-reports.ts';
import {
  encodeAppended,
  observationsOfKey,
  positionKey,
  type ReportTables,
  reportKey,
  streamOfKey,
} from './lmdb-report-tables.ts';
import {
  type FoundRun,
  momentMax,
  noteRun,
  openRun,
  type ReportSource,
  readFound,
  runsBefore,
  runsFrom,
} from './lmdb-runs.ts';
import { setAside } from './lmdb-set-aside.ts';
import { type Block, type BlockReport, blockReports, claimedContents, encodeBlock, openBlock } from './report-block.ts';
import { type AppendOutcome, CorruptRecordError, type NewReport, type StoredReport, type Window } from './store.ts';

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

/** One transaction: where it reads and writes, and what it counts. */
type Transaction = ReportSource & { readonly counters: Counters };

export const createReportWriter = (environment: Environment, tables: ReportTables, damage: DamageLog): ReportWriter => {
  const states = new Map<FeedId, StreamState>();
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
    const transaction = { tables, directory: streams.directory, damage, counters };
    const candles = createCandleWriter(tables.candles, damage);
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
    for (const state of touched) writePending(transaction, state);
    if (stored.length > 0) recordAppended(tables, stored, damage);
    candles.write();
    writeCounters(tables, counters);
    return outcomes;
  };
  return {
    append: (batch) => {
      keepHeadroom(environment);
      return environment.root.transactionSync(() => appendAll(batch));
    },
    forget: () => {
      states.clear();
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
  return { stream, newestMs, tailCount, pending: [] };
};

/** A run in memory of its own: what is written meanwhile does not change it. */
type RunCopy = Omit<FoundRun, 'view' | 'checksum'> & { readonly value: Buffer };
type IntactRun = RunCopy & { readonly block: Block };

const copyRun = (stream: number, { table, key, view, block, reason }: FoundRun): RunCopy => {
  const bytes = view();
  const value = Buffer.from(bytes.subarray(0, bytes.length));
  return { table, key, value, reason, block: block && openBlock(stream, value) };
};

const isIntact = (run: RunCopy): run is IntactRun => run.block !== undefined;

/** The stream's runs in the tail; damaged ones are set aside. */
const tailRuns = (transaction: Transaction, stream: number): readonly IntactRun[] => {
  const runs: RunCopy[] = [];
  for (const run of runsFrom(transaction.tables, stream, 0)) {
    if (run.table !== 'tail') continue;
    noteRun(transaction, stream, run);
    runs.push(copyRun(stream, run));
  }
  for (const run of runs) if (!isIntact(run)) setRunAside(transaction, stream, run);
  return runs.filter(isIntact);
};

/** Takes a run whose index cannot be read out of the way. What lies between its neighbors and its key is lost with it. */
const setRunAside = (transaction: Transaction, stream: number, { table, key, value, reason = '' }: RunCopy): void => {
  const { tables, counters } = transaction;
  const lastMs = observationsOfKey(key);
  const before = findLastBefore(transaction, stream, lastMs)?.observationsMs ?? -1;
  setAside(tables, key, value, { table, reason, lost: [{ validFromMs: before + 1, observationsMs: lastMs }] });
  tables[table].removeSync(key);
  const { reports, reportBytes } = claimedContents(value);
  counters.reports = Math.max(0, counters.reports - reports);
  counters.reportBytes = Math.max(0, counters.reportBytes - reportBytes);
};

/** The reports of a run that can be read. Where some cannot, the run is set aside as it is; the caller writes it anew without them. */
const salvage = ({ tables, damage, directory, counters }: Transaction, stream: number, run: IntactRun) => {
  const { table, key, block, value } = run;
  const reports: BlockReport[] = [];
  const lost: Window[] = [];
  for (let i = 0; i < block.count; i++) {
    try {
      reports.push(block.report(i));
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
      lost.push(block.window(i));
      counters.reports -= 1;
      counters.reportBytes -= block.fullReportBytes(i);
    }
  }
  if (lost.length > 0) {
    const reason = `${lost.length} of ${block.count} reports of a run do not match their checksums`;
    setAside(tables, key, value, { table, reason, lost });
    damage.note({ table, key: key.toString('hex'), reason, feedId: directory.feedIdOf(stream) });
  }
  return reports;
};

const place = (transaction: Transaction, state: StreamState, report: StoredReport): AppendOutcome => {
  if (report.validFromMs > state.newestMs) {
    state.pending.push(report);
    state.newestMs = report.observationsMs;
    return 'stored';
  }
  writePending(transaction, state);
  const refused = judgeLate(transaction, state.stream, report);
  if (refused === undefined) insertLate(transaction, state, report);
  return refused ?? 'stored';
};

/** Why a report that is not after the newest is not stored; undefined when it is. */
const judgeLate = (source: ReportSource, stream: number, report: StoredReport): AppendOutcome | undefined => {
  const next = findFirst(source, stream, report.observationsMs);
  const isSame = next?.window.observationsMs === report.observationsMs;
  const fullReport = isSame ? readFound(source, stream, next)?.fullReport : undefined;
  const previous = findLastBefore(source, stream, report.observationsMs);
  return judgeReport(report, [...(next ? [{ ...next.window, fullReport }] : []), ...(previous ? [previous] : [])]);
};

/** Puts a late report into the run that ends after it, without what is damaged there. */
const insertLate = (transaction: Transaction, state: StreamState, report: StoredReport): void => {
  const { tables } = transaction;
  const { stream } = state;
  const passed: RunCopy[] = [];
  for (const run of runsFrom(tables, stream, report.observationsMs)) {
    passed.push(copyRun(stream, run));
    if (run.block !== undefined && run.block.firstAtOrAfter(report.observationsMs) < run.block.count) break;
  }
  for (const run of passed) if (!isIntact(run)) setRunAside(transaction, stream, run);
  const run = passed.at(-1);
  if (run === undefined || !isIntact(run)) {
    // What followed it was damaged: it is the newest again.
    state.tailCount += 1;
    putRun(tables.tail, stream, [report]);
    return;
  }
  const reports = salvage(transaction, stream, run);
  const at = reports.findIndex(({ observationsMs }) => observationsMs > report.observationsMs);
  const all = reports.toSpliced(at < 0 ? reports.length : at, 0, report);
  if (run.table === 'tail') state.tailCount += all.length - run.block.count;
  tables[run.table].removeSync(run.key);
  if (all.length <= 2 * blockReports) putRun(tables[run.table], stream, all);
  else
    for (const half of [all.slice(0, blockReports), all.slice(blockReports)]) putRun(tables[run.table], stream, half);
};

/** Writes what this batch brought a stream, as one short run; once there are two runs' worth of reports, closes them into blocks. */
const writePending = (transaction: Transaction, state: StreamState): void => {
  const { tables } = transaction;
  const { stream, pending } = state;
  if (pending.length === 0) return;
  state.pending = [];
  state.tailCount += pending.length;
  if (state.tailCount < 2 * blockReports) {
    putRun(tables.tail, stream, pending);
    return;
  }
  const short = tailRuns(transaction, stream);
  const all = [...short.flatMap((run) => salvage(transaction, stream, run)), ...pending];
  for (const { key } of short) tables.tail.removeSync(key);
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
