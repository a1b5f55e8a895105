// Owns walking through every record of the reports environment, for those who check a store.
import type { FeedId } from '@sealpost/protocol';
import { checkCandle } from './lmdb-candles.ts';
import type { Environment } from './lmdb-environment.ts';
import { feedIdOf } from './lmdb-report-reader.ts';
import { decodeLatest, observationsOfKey, type ReportTables, streamOfKey } from './lmdb-report-tables.ts';
import { type BlockReport, openBlock } from './report-block.ts';
import { CorruptRecordError, type ScanCursor, type ScannedReport, StoreError } from './store.ts';

const tableNames = ['blocks', 'tail', 'latest', 'candles'] as const;

type TableName = (typeof tableNames)[number];

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

const scanRecord = (tables: ReportTables, table: TableName, key: Buffer, value: Buffer): readonly ScannedReport[] => {
  const stream = streamOfKey(key);
  const place = placeOf(tables, stream);
  if (table === 'latest') return attempt(place, undefined, () => nothing(decodeLatest(stream, value)));
  const observationsMs = observationsOfKey(key);
  if (table === 'candles') return attempt(place, observationsMs, () => nothing(checkCandle(stream, value)));
  const withFeed = (read: () => BlockReport) => () => [{ report: { feedId: feedIdOf(tables, stream), ...read() } }];
  return attempt(place, observationsMs, () => {
    const block = openBlock(stream, value);
    return Array.from({ length: block.count }, (_, i) =>
      attempt(
        place,
        block.window(i).observationsMs,
        withFeed(() => block.report(i)),
      ),
    ).flat();
  });
};

/** A record that was only checked holds no report of its own. */
const nothing = (_checked: unknown): readonly ScannedReport[] => [];

/** The feed id of a stream number, as part of an error; nothing when that is damaged too. */
const placeOf = (tables: ReportTables, stream: number): { readonly feedId?: FeedId } => {
  try {
    return { feedId: feedIdOf(tables, stream) };
  } catch {
    return {};
  }
};

/** What a record holds, or the error that says where and why it cannot be read. */
const attempt = (
  place: { readonly feedId?: FeedId },
  observationsMs: number | undefined,
  read: () => readonly ScannedReport[],
): readonly ScannedReport[] => {
  try {
    return read();
  } catch (error) {
    if (error instanceof CorruptRecordError)
      return [{ error, ...place, ...(observationsMs !== undefined && { observationsMs }) }];
    throw error;
  }
};
