// Writes the runs of a stream in LMDB within a batch's transaction: puts runs, moves corrupt ones out of the way, and merges late reports, each run once
// per batch (D148).
import {
  type Block,
  type BlockReport,
  blockReports,
  encodeBlock,
  encodeFittingBlock,
  openBlock,
} from '../../format/report-block.ts';
import { CorruptRecordError, type Window } from '../../store.ts';
import type { Directory } from '../directory.ts';
import { pageBytes, type Table } from '../environment.ts';
import { findLastBefore } from '../read/found-reports.ts';
import {
  type FoundRun,
  momentMax,
  noteRun,
  type ReportSource,
  runsBefore,
  runsFrom,
  runsInTail,
} from '../read/runs.ts';
import { setAside } from '../read/set-aside.ts';
import { type Counters, countOutDamaged, observationsOfKey, reportKey, streamOfKey } from '../report-tables.ts';
import type { LostRanges } from './lost-ranges.ts';
import { tableBytes } from './retention.ts';

/** One transaction: where it reads and writes, what it counts, and where reports were lost. */
export type Transaction = ReportSource & { readonly counters: Counters; readonly lostRanges: LostRanges };

/** A copy of a run: later writes do not change it. */
export type RunCopy = Omit<FoundRun, 'view' | 'checksum'> & { readonly value: Buffer };
export type IntactRun = RunCopy & { readonly block: Block };

export const copyRun = (stream: number, { table, key, view, block, reason }: FoundRun): RunCopy => {
  const bytes = view();
  const value = Buffer.from(bytes.subarray(0, bytes.length));
  return { table, key, value, reason, block: block && openBlock(stream, value) };
};

export const isIntact = (run: RunCopy): run is IntactRun => run.block !== undefined;

/** A tail of more bytes is left as it is: no transaction takes 8 MB (pages-file.ts). */
const mendedBytesMax = 4 * 1024 * 1024;

/**
 * Rewrites the tail where its keys are out of order: LMDB could neither find some of them nor put new ones in their place. Each run gets the key
 * that its content says; one that cannot be opened keeps its own, or is set aside where that is taken.
 */
export const mendTail = ({ tables, directory, damage, counters }: Transaction): void => {
  const { tail } = tables;
  const keys = [...tail.getKeys()];
  const isOrdered = keys.every((key, i) => i === 0 || Buffer.compare(keys[i - 1] as Buffer, key) < 0); // one before each
  if (isOrdered || tableBytes([tail]) > mendedBytesMax) return;
  const runs = [...tail.getRange()].map(({ key, value }) => ({ key, value, own: ownKey(directory, key, value) }));
  tail.clearSync();
  const isPlaced = (run: (typeof runs)[number]): boolean => run.own?.equals(run.key) === true;
  // Those under their own keys first: they replace what is stored twice or damaged.
  for (const run of [...runs.filter(isPlaced), ...runs.filter((one) => !isPlaced(one))]) {
    const { key, value, own } = run;
    const place = own ?? key;
    const reason = own
      ? `the key of a run of stream ${streamOfKey(own)} is damaged`
      : 'the key or index of a run is damaged';
    if (!isPlaced(run))
      damage.note({ table: 'tail', key: key.toString('hex'), reason, feedId: directory.feedIdOf(streamOfKey(place)) });
    if (tail.get(place) === undefined) tail.put(place, value);
    else if (own === undefined) {
      setAside(tables, key, value, { table: 'tail', reason, lost: [] });
      countOutDamaged(counters, streamOfKey(key), value);
    }
  }
};

/** The key that a run should have; undefined where it opens as no stream's. */
const ownKey = (directory: Directory, key: Buffer, value: Buffer): Buffer | undefined => {
  for (const stream of [streamOfKey(key), ...directory.numbers()]) {
    try {
      const block = openBlock(stream, value);
      return reportKey(stream, block.window(block.count - 1).observationsMs);
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
    }
  }
  return undefined;
};

/**
 * Puts runs of the tail, and the last block, under their own keys where these are damaged: what is written later would come to lie before
 * them, and hide them.
 */
export const putInPlace = (transaction: Transaction, stream: number): void => {
  const { tables } = transaction;
  const misplaced: IntactRun[] = [];
  const look = (run: FoundRun): void => {
    if (run.reason === undefined) return;
    noteRun(transaction, stream, run);
    const copy = copyRun(stream, run);
    if (isIntact(copy)) misplaced.push(copy);
  };
  for (const run of runsInTail(tables, stream)) look(run);
  for (const run of runsBefore(tables, stream, momentMax)) {
    if (run.table !== 'blocks') continue;
    look(run);
    break;
  }
  for (const run of misplaced) {
    const table = tables[run.table];
    const own = reportKey(stream, run.block.window(run.block.count - 1).observationsMs);
    // Where it is not found by its own key it stays, and counts as damaged.
    if (table.get(own) !== undefined || !removeRun(transaction, run)) continue;
    const reports = salvage(transaction, stream, run);
    if (reports.length > 0) putRun(table, stream, reports);
  }
};

/**
 * Removes a run. False where its key leads to nothing, or to another record: a damaged key may be out of order, or equal that of an intact run.
 */
export const removeRun = ({ tables }: Transaction, { table, key, value }: RunCopy): boolean =>
  tables[table].get(key)?.equals(value) === true && tables[table].removeSync(key);

/** The stream's runs in the tail; damaged ones are set aside. */
export const tailRuns = (transaction: Transaction, stream: number): readonly IntactRun[] => {
  const runs: RunCopy[] = [];
  for (const run of runsInTail(transaction.tables, stream)) {
    noteRun(transaction, stream, run);
    runs.push(copyRun(stream, run));
  }
  for (const run of runs) if (!isIntact(run)) setRunAside(transaction, stream, run);
  return runs.filter(isIntact);
};

/** Takes a run whose index cannot be read out of the way. What lies between its neighbors and its key is lost with it. */
export const setRunAside = (transaction: Transaction, stream: number, run: RunCopy): void => {
  const { tables, counters, lostRanges } = transaction;
  const { table, key, value, reason = '' } = run;
  const lastMs = observationsOfKey(key);
  const before = findLastBefore(transaction, stream, lastMs)?.observationsMs ?? -1;
  const lost = [{ validFromMs: before + 1, observationsMs: lastMs }];
  setAside(tables, key, value, { table, reason, lost });
  lostRanges.add(stream, lost);
  removeRun(transaction, run);
  countOutDamaged(counters, stream, value);
};

/** The reports of a run that can be read. Where some cannot, the run is set aside as it is; the caller rewrites it without them. */
export const salvage = (transaction: Transaction, stream: number, run: IntactRun): readonly BlockReport[] => {
  const { tables, damage, directory, counters, lostRanges } = transaction;
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
    lostRanges.add(stream, lost);
    damage.note({ table, key: key.toString('hex'), reason, feedId: directory.feedIdOf(stream) });
  }
  return reports;
};

export const putRun = (table: Table, stream: number, reports: readonly BlockReport[]): void => {
  const last = reports[reports.length - 1] as Window; // a run is never empty
  table.put(reportKey(stream, last.observationsMs), encodeBlock(stream, reports));
};

/** LMDB stores a record of this size in whole pages, the first of which has a header. */
const pagesOf = (bytes: number): number => Math.ceil((pageHeadBytes + bytes) / pageBytes) * pageBytes;
const pageHeadBytes = 16;

/**
 * Puts ascending reports as runs that fill their pages, each as long as takes the least disk (D204). Returns how many were put, and the length of the last
 * run: the rest is shorter than that. There must be 64 or more.
 */
export const putFittingRuns = (
  table: Table,
  stream: number,
  reports: readonly BlockReport[],
): { readonly put: number; readonly length: number } => {
  let put = 0;
  let length = blockReports;
  while (reports.length - put >= length) {
    const { count, bytes } = encodeFittingBlock(stream, reports.slice(put), pagesOf);
    put += count;
    length = count;
    table.put(reportKey(stream, (reports[put - 1] as Window).observationsMs), bytes); // the last of those encoded
  }
  return { put, length };
};

/** Puts reports as runs of 64, the last of which takes up to 63 more; fewer than 64 are one run. */
const putRuns = (table: Table, stream: number, reports: readonly BlockReport[]): void => {
  const count = Math.max(1, Math.floor(reports.length / blockReports));
  for (let i = 0; i < count && reports.length > 0; i++)
    putRun(table, stream, reports.slice(i * blockReports, i === count - 1 ? undefined : (i + 1) * blockReports));
};

/** The first of ascending reports observed at or after a moment; their number when there is none. */
export const firstAtOrAfter = (reports: readonly Window[], observationsMs: number): number => {
  let low = 0;
  let high = reports.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { observationsMs: found } = reports[middle] as Window; // inside the list
    if (found >= observationsMs) high = middle;
    else low = middle + 1;
  }
  return low;
};

/** Two ascending lists as one. */
export const mergeReports = (a: readonly BlockReport[], b: readonly BlockReport[]): readonly BlockReport[] =>
  [...a, ...b].sort((one, other) => one.observationsMs - other.observationsMs);

/** Merges ascending late reports into the blocks around them; returns those that are after every block. */
export const mergeIntoBlocks = (
  transaction: Transaction,
  stream: number,
  late: readonly BlockReport[],
): readonly BlockReport[] => {
  let rest = late;
  for (let [first] = rest; first !== undefined; [first] = rest) {
    const run = findRunFor(transaction, stream, first.observationsMs);
    if (run?.table !== 'blocks') return rest;
    const count = firstAtOrAfter(rest, run.block.window(run.block.count - 1).observationsMs + 1);
    mergeIntoBlock(transaction, stream, run, rest.slice(0, count));
    rest = rest.slice(count);
  }
  return [];
};

/** The run that ends at or after a moment. Damaged ones before it are set aside. */
const findRunFor = (transaction: Transaction, stream: number, observationsMs: number): IntactRun | undefined => {
  const passed: RunCopy[] = [];
  for (const run of runsFrom(transaction.tables, stream, observationsMs)) {
    passed.push(copyRun(stream, run));
    if (run.block !== undefined && run.block.firstAtOrAfter(observationsMs) < run.block.count) break;
  }
  for (const run of passed) if (!isIntact(run)) setRunAside(transaction, stream, run);
  const found = passed.at(-1);
  return found && isIntact(found) ? found : undefined;
};

/**
 * Which of a run's gaps all late reports fall into: before report i of it. Undefined where they fall into several, or take the place of a
 * damaged one.
 */
const gapIn = ({ block }: IntactRun, late: readonly BlockReport[]): number | undefined => {
  const i = block.firstAtOrAfter((late[0] as Window).observationsMs); // there is one
  return i < block.count && block.window(i).observationsMs > (late.at(-1) as Window).observationsMs ? i : undefined; // never empty
};

const mergeIntoBlock = (
  transaction: Transaction,
  stream: number,
  run: IntactRun,
  late: readonly BlockReport[],
): void => {
  const { blocks } = transaction.tables;
  const gap = gapIn(run, late);
  const isShort = run.block.count < blockReports;
  // Between two full runs they become a new run, which the next ones fill: a backfill must not write a full run again for each batch.
  const target = gap !== 0 ? run : (shortRunBefore(transaction, stream, late) ?? (isShort ? run : undefined));
  const known = target === undefined ? [] : salvage(transaction, stream, target);
  if (target !== undefined) removeRun(transaction, target);
  const all = mergeReports(known, late);
  // Cut where they end: the next ones come there.
  const end = gap && all.length > blockReports ? firstAtOrAfter(all, (late.at(-1) as Window).observationsMs + 1) : 0; // never empty
  for (const part of [all.slice(0, end), all.slice(end)]) putRuns(blocks, stream, part);
};

/** Puts late reports as a short run into a gap of the tail. False, and nothing is written, where they fall into several gaps. */
export const insertIntoTail = (transaction: Transaction, stream: number, late: readonly BlockReport[]): boolean => {
  const { tail } = transaction.tables;
  const run = findRunFor(transaction, stream, late[0]?.observationsMs ?? 0);
  const gap = run === undefined ? 0 : gapIn(run, late);
  if (gap === undefined) return false;
  if (run !== undefined && gap > 0) {
    const known = salvage(transaction, stream, run);
    const end = firstAtOrAfter(known, late[0]?.observationsMs ?? 0);
    removeRun(transaction, run);
    for (const part of [known.slice(0, end), known.slice(end)]) putRuns(tail, stream, part);
  }
  putRun(tail, stream, late);
  return true;
};

/** The run before late reports, if it is an intact block with fewer reports than a run takes. */
const shortRunBefore = (
  { tables }: Transaction,
  stream: number,
  [first]: readonly BlockReport[],
): IntactRun | undefined => {
  for (const run of runsBefore(tables, stream, first?.observationsMs ?? 0)) {
    if (run.table !== 'blocks' || run.block === undefined || run.block.count >= blockReports) return undefined;
    const copy = copyRun(stream, run);
    return isIntact(copy) ? copy : undefined;
  }
  return undefined;
};
