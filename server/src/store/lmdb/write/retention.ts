// Removes old reports from LMDB, a slice per transaction: whole runs and tail reports, oldest first. A run is removed when its last report is too old, so some
// reports outlive the bound by a run; readers hide them (D52).
import type { DamageLog } from '../../damage.ts';
import { blockReports, openBlock } from '../../format/report-block.ts';
import { CorruptRecordError, type Retention } from '../../store.ts';
import { rollupNames, trimCandles } from '../candles.ts';
import { loadStreams } from '../directory.ts';
import type { Environment, Table } from '../environment.ts';
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

/** Records removed per transaction: a few milliseconds of writing, so that appends are hardly delayed. */
const sliceRecords = 64;

type OldRecord = { readonly table: 'blocks' | 'tail'; readonly key: Buffer };

/** Removes one slice. Returns how many reports went and whether another slice is due. */
export const trimSlice = (
  environment: Environment,
  tables: ReportTables,
  retention: Retention,
  damage: DamageLog,
): { removed: number; more: boolean } =>
  environment.root.transactionSync(() => {
    const slice = dueRecords(tables, retention, damage);
    const counters = readCounters(tables, damage);
    const before = counters.reports;
    let removed = 0;
    for (const { table, key } of slice) {
      const lastMs = lastObservationOf(tables, { table, key });
      const value = tables[table].get(key);
      if (!tables[table].removeSync(key)) continue; // its key is damaged, and it is not found by it
      removed += 1;
      trimCandles(tables, streamOfKey(key), Math.max(retention.beforeMs, lastMs), 2 * blockReports);
      if (value !== undefined) countOut(counters, key, value);
    }
    forgetSetAside(tables, retention.beforeMs);
    writeCounters(tables, counters);
    return { removed: before - counters.reports, more: removed > 0 };
  });

const dueRecords = (
  tables: ReportTables,
  { beforeMs, bytesMax }: Retention,
  damage: DamageLog,
): readonly OldRecord[] => {
  const oldest = oldestRecords(tables, damage);
  const aged = oldest.filter((record) => lastObservationOf(tables, record) < beforeMs);
  if (aged.length > 0) return aged.slice(0, sliceRecords);
  // One at a time by bytes: the next slice may find that the file has room again. Only what goes by it counts: rejected lines and the order of
  // appending have their own bounds. Every stream keeps its newest run (D147).
  if (freeableBytes(tables) <= bytesMax) return [];
  return oldest.filter((record) => !isNewest(tables, record)).slice(0, 1);
};

/** Is a record, the oldest of its stream, also its last? */
const isNewest = (tables: ReportTables, { table, key }: OldRecord): boolean => {
  const stream = streamOfKey(key);
  const ofStream = (name: OldRecord['table']) => [...tables[name].getKeys(keysFrom(stream, 0, 2))].length;
  return ofStream(table) + (table === 'blocks' ? ofStream('tail') : 0) < 2;
};

/** When the last report of a record was observed: a damaged key must not age an intact run. */
const lastObservationOf = (tables: ReportTables, { table, key }: OldRecord): number => {
  const value = tables[table].get(key);
  try {
    const run = value && openBlock(streamOfKey(key), value);
    return run?.window(run.count - 1).observationsMs ?? observationsOfKey(key);
  } catch (error) {
    if (error instanceof CorruptRecordError) return observationsOfKey(key);
    throw error;
  }
};

/** Each stream's oldest record, the oldest of all first. */
const oldestRecords = (tables: ReportTables, damage: DamageLog): readonly OldRecord[] => {
  const streams = loadStreams(tables, damage).byNumber.keys();
  const oldest = [...streams].flatMap((stream) => firstRecord(tables, stream) ?? []);
  return oldest.sort((a, b) => observationsOfKey(a.key) - observationsOfKey(b.key));
};

const firstRecord = (tables: ReportTables, stream: number): OldRecord | undefined => {
  for (const table of ['blocks', 'tail'] as const) {
    for (const key of tables[table].getKeys(keysFrom(stream, 0, 1))) return { table, key };
  }
  return undefined;
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
