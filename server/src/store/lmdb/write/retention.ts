// Removes old reports from LMDB, a slice per transaction: whole runs and tail reports, oldest first. A run is removed when its last report is too old, so some
// reports outlive the bound by a run; readers hide them (D52).
import type { DamageLog } from '../../damage.ts';
import { blockReports, openBlock } from '../../format/report-block.ts';
import { CorruptRecordError, type Retention, type Trimmed } from '../../store.ts';
import { rollupNames, trimRollups } from '../candles.ts';
import { createDirectory } from '../directory.ts';
import type { Environment, Table } from '../environment.ts';
import { pricesIn } from '../read/found-reports.ts';
import { momentMax, type ReportSource } from '../read/runs.ts';
import {
  type Counters,
  countOutDamaged,
  keysFrom,
  observationsOfKey,
  type ReportTables,
  readCounters,
  streamOfKey,
  writeCounters,
} from '../report-tables.ts';

/**
 * Records removed per transaction, each of another stream. With the roll-ups that are rebuilt they take 8 ms where each has a report per second, 26 ms with
 * 1,000 streams, whose oldest records are all looked at: so appends are hardly delayed.
 */
const sliceRecords = 8;

/** Roll-ups of each kind that one slice removes of a stream: more than a run has reports. */
const rollupsMax = 4 * blockReports;

/** A stream's oldest record. A damaged key must not age an intact run, so observations are those of its windows; of a damaged run, its key's. */
type OldRecord = {
  readonly table: 'blocks' | 'tail';
  readonly key: Buffer;
  readonly stream: number;
  /** Undefined where the run is damaged. */
  readonly firstMs: number | undefined;
  readonly lastMs: number;
};

/** Removes one slice. Returns how many reports were removed and whether another slice is due. */
export const trimSlice = (
  environment: Environment,
  tables: ReportTables,
  retention: Retention,
  damage: DamageLog,
): Trimmed =>
  environment.root.transactionSync(() => {
    const directory = createDirectory(tables, damage);
    const source = { tables, directory, damage };
    const oldest = [...directory.numbers()].map((stream) => ({ stream, record: firstRecord(tables, stream) }));
    const records = oldest.flatMap(({ record }) => record ?? []);
    const overdueFromMs = retention.beforeMs - (retention.overdueMaxMs ?? Number.POSITIVE_INFINITY);
    if (records.some(({ lastMs }) => lastMs < overdueFromMs)) return { removed: 0, more: false, isWithheld: true };
    const slice = dueRecords(tables, records, retention);
    const counters = readCounters(tables, damage);
    const before = counters.reports;
    let isMore = false;
    for (const { table, key, stream, lastMs } of slice) {
      const value = tables[table].get(key);
      if (!tables[table].removeSync(key)) continue; // its key is damaged, and it is not found by it
      isMore = true;
      // What a damaged run has is not known, but nothing of it is older than what was removed.
      trimRollupsOf(source, stream, firstMsOf(firstRecord(tables, stream)) ?? lastMs + 1);
      if (value !== undefined) countOut(counters, key, value);
    }
    if (slice.length === 0) isMore = trimStale(source, oldest, retention.beforeMs);
    forgetSetAside(tables, retention.beforeMs);
    writeCounters(tables, counters);
    const endMs = slice.length === 0 ? undefined : Math.max(...slice.map(({ lastMs }) => lastMs)) + 1;
    return { removed: before - counters.reports, more: isMore, endMs };
  });

/** When a stream's oldest report was observed, later than any where it has none; undefined where its run is damaged. */
const firstMsOf = (record: OldRecord | undefined): number | undefined =>
  record === undefined ? momentMax : record.firstMs;

/** Makes the roll-ups of a stream those of its reports from a moment on; returns how many were removed. */
const trimRollupsOf = (source: ReportSource, stream: number, firstMs: number): number =>
  trimRollups(
    source.tables,
    stream,
    { firstMs, pricesOf: (...range) => pricesIn(source, ...range), most: rollupsMax },
    source.damage,
  );

/** Before reports come back that are older than a stream's oldest: roll-ups that count them still, as older releases left them, would count them twice. */
export const forgetRemoved = (source: ReportSource, stream: number, returningMs: number): void => {
  const firstMs = firstMsOf(firstRecord(source.tables, stream));
  if (firstMs !== undefined && returningMs < firstMs) trimRollupsOf(source, stream, firstMs);
};

/** Does a stream have roll-ups of minutes that ended before the minute of a moment? */
const hasMinuteBefore = ({ candles }: ReportTables, stream: number, ms: number): boolean =>
  [...candles.getKeys(keysFrom(stream, 0, 1))].some(
    (key) => key.length === 10 && streamOfKey(key) === stream && observationsOfKey(key) < ms - (ms % 60_000),
  );

type Oldest = { readonly stream: number; readonly record: OldRecord | undefined };

/** Removes roll-ups that are too old and older than the reports of their streams: those of lost reports. Returns whether there were any. */
const trimStale = (source: ReportSource, oldest: readonly Oldest[], beforeMs: number): boolean => {
  const stale = oldest
    .map(({ stream, record }) => ({ stream, firstMs: Math.min(beforeMs, firstMsOf(record) ?? 0) }))
    .filter(({ stream, firstMs }) => hasMinuteBefore(source.tables, stream, firstMs))
    .slice(0, sliceRecords);
  return stale.reduce((removed, { stream, firstMs }) => removed + trimRollupsOf(source, stream, firstMs), 0) > 0;
};

const dueRecords = (
  tables: ReportTables,
  oldest: readonly OldRecord[],
  { beforeMs, bytesMax }: Retention,
): readonly OldRecord[] => {
  const byAge = oldest.toSorted((a, b) => observationsOfKey(a.key) - observationsOfKey(b.key));
  const aged = byAge.filter(({ lastMs }) => lastMs < beforeMs);
  if (aged.length > 0) return aged.slice(0, sliceRecords);
  // One at a time by bytes: the next slice may find that the file has room again. Only what goes by it counts: rejected lines and the order of
  // appending have their own bounds. Every stream keeps its newest run (D147).
  if (freeableBytes(tables) <= bytesMax) return [];
  return byAge.filter((record) => !isNewest(tables, record)).slice(0, 1);
};

/** Is a record, the oldest of its stream, also its last? */
const isNewest = (tables: ReportTables, { table, stream }: OldRecord): boolean => {
  const ofStream = (name: OldRecord['table']) => [...tables[name].getKeys(keysFrom(stream, 0, 2))].length;
  return ofStream(table) + (table === 'blocks' ? ofStream('tail') : 0) < 2;
};

const firstRecord = (tables: ReportTables, stream: number): OldRecord | undefined => {
  for (const table of ['blocks', 'tail'] as const)
    for (const { key, value } of tables[table].getRange(keysFrom(stream, 0, 1)))
      return { table, key, stream: streamOfKey(key), ...observationsOf(key, value) };
  return undefined;
};

const observationsOf = (key: Buffer, value: Buffer): Pick<OldRecord, 'firstMs' | 'lastMs'> => {
  try {
    const run = openBlock(streamOfKey(key), value);
    return { firstMs: run.window(0).observationsMs, lastMs: run.window(run.count - 1).observationsMs };
  } catch (error) {
    if (error instanceof CorruptRecordError) return { firstMs: undefined, lastMs: observationsOfKey(key) };
    throw error;
  }
};

/** A record that is damaged is removed all the same. */
const countOut = (counters: Counters, key: Buffer, value: Buffer): void => {
  try {
    const block = openBlock(streamOfKey(key), value);
    counters.reports -= block.count;
    counters.reportBytes -= block.reportBytes();
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    countOutDamaged(counters, streamOfKey(key), value);
  }
};

/** What was set aside is forgotten when it would have been removed. */
const forgetSetAside = ({ damaged }: ReportTables, beforeMs: number): void => {
  for (const key of [...(damaged?.getKeys() ?? [])]) if (observationsOfKey(key) < beforeMs) damaged?.removeSync(key);
};

/** Bytes of pages in use by the tables; free pages are used again before the file grows. */
export const usedBytes = (tables: ReportTables): number => tableBytes(Object.values(tables));

/** Bytes of the tables that retention removes from: reports, and the roll-ups of their prices. */
export const freeableBytes = (tables: ReportTables): number =>
  tableBytes([tables.blocks, tables.tail, ...rollupNames.map((name) => tables[name])]);

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
