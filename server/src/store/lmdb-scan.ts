// Owns walking through every record of the reports environment, for those who check a store.
import type { Environment } from './lmdb-environment.ts';
import { feedIdOf } from './lmdb-report-reader.ts';
import { decodeLatest, decodeTailReport, type ReportTables, streamOfKey } from './lmdb-report-tables.ts';
import { openBlock } from './report-block.ts';
import { CorruptRecordError, type ScanCursor, type ScannedReport, StoreError } from './store.ts';

const tableNames = ['blocks', 'tail', 'latest'] as const;

/** A cursor is the table and the last key that was read. */
export const scanSlice = (
  environment: Environment,
  tables: ReportTables,
  cursor: ScanCursor | undefined,
  limit: number,
) => {
  environment.root.resetReadTxn();
  const { table, after } = parseCursor(cursor);
  const entries: ScannedReport[] = [];
  // A start is inclusive: one byte more makes it the first key after.
  const start = after && Buffer.concat([after, Uint8Array.of(0)]);
  for (const { key, value } of tables[table].getRange(start ? { start } : {})) {
    entries.push(...scanRecord(tables, table, key, value));
    if (entries.length >= limit) return { entries, next: `${table}:${key.toString('hex')}` };
  }
  const following = tableNames[tableNames.indexOf(table) + 1];
  return following === undefined ? { entries } : { entries, next: `${following}:` };
};

const parseCursor = (cursor: ScanCursor | undefined) => {
  const [name, key] = (cursor ?? 'blocks:').split(':');
  const table = tableNames.find((known) => known === name);
  if (table === undefined) throw new StoreError('store_corrupt', `${cursor} is no cursor of a scan.`);
  return { table, after: key ? Buffer.from(key, 'hex') : undefined };
};

const scanRecord = (
  tables: ReportTables,
  table: (typeof tableNames)[number],
  key: Buffer,
  value: Buffer,
): readonly ScannedReport[] => {
  if (table === 'latest') return checked(() => void decodeLatest(key.readUInt32BE(), value));
  const stream = streamOfKey(key);
  if (table === 'tail') return [scanned(tables, stream, () => decodeTailReport(key, value))];
  const opened = checked(() => void openBlock(stream, value));
  if (opened.length > 0) return opened;
  const block = openBlock(stream, value);
  return Array.from({ length: block.count }, (_, i) => scanned(tables, stream, () => block.report(i)));
};

const scanned = (
  tables: ReportTables,
  stream: number,
  read: () => Omit<NonNullable<ScannedReport['report']>, 'feedId'>,
): ScannedReport => {
  try {
    return { report: { feedId: feedIdOf(tables, stream), ...read() } };
  } catch (error) {
    if (error instanceof CorruptRecordError) return { error };
    throw error;
  }
};

/** Nothing when the check passes, its error otherwise. */
const checked = (check: () => void): readonly ScannedReport[] => {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof CorruptRecordError) return [{ error }];
    throw error;
  }
};
