// Scans every record of the reports environment with the check of its table.
import assert from 'node:assert/strict';
import type { FeedId } from '@sealpost/protocol';
import { createDamageLog } from '../../damage.ts';
import { decodeKeyedRecord } from '../../format/record.ts';
import { CorruptRecordError, type ScanCursor, type ScannedReport } from '../../store.ts';
import { checkCandle } from '../candles.ts';
import { checkStreamRow, createDirectory, type Directory } from '../directory.ts';
import type { Environment, Table } from '../environment.ts';
import { checkMeta } from '../format.ts';
import { requireRun } from '../read/runs.ts';
import { decodeAppended, observationsOfKey, positionOfKey, type ReportTables, streamOfKey } from '../report-tables.ts';

const tableNames = [
  'runs',
  'candles',
  'hourCandles',
  'dayCandles',
  'appended',
  'quarantine',
  'numbers',
  'feedIds',
  'meta',
  'writer',
] as const;

type TableName = (typeof tableNames)[number];

/** A cursor is the table and the last key that was read. */
export const scanSlice = (
  environment: Environment,
  tables: ReportTables,
  cursor: ScanCursor | undefined,
  limit: number,
) => {
  environment.root.resetReadTxn();
  const { name, after } = parseCursor(cursor);
  const directory = createDirectory(tables, createDamageLog());
  const entries: ScannedReport[] = [];
  for (const key of keysAfter(tables[name], after)) {
    entries.push(...scanRecord(tables, directory, name, key));
    if (entries.length >= limit) return { entries, next: `${name}:${key.toString('hex')}` };
  }
  const following = tableNames[tableNames.indexOf(name) + 1];
  return following === undefined ? { entries } : { entries, next: `${following}:` };
};

/** The keys behind a key in the order in which they are stored. Where a damaged key hides the place, everything before it is walked. */
function* keysAfter(table: Table | undefined, after: Buffer | undefined): Generator<Buffer> {
  if (table === undefined) return;
  if (after === undefined) return yield* table.getKeys();
  const [found] = [...table.getKeys({ start: after, reverse: true, limit: 1 })];
  // A start is inclusive: one byte more makes it the first key after.
  if (found?.equals(after)) return yield* table.getKeys({ start: Buffer.concat([after, Uint8Array.of(0)]) });
  let isBehind = false;
  for (const key of table.getKeys()) {
    if (isBehind) yield key;
    else isBehind = key.equals(after);
  }
}

const parseCursor = (cursor: ScanCursor | undefined) => {
  const [table, key] = (cursor ?? 'runs:').split(':');
  const name = tableNames.find((known) => known === table);
  assert(name !== undefined, `${cursor} is not a cursor of a scan`);
  return { name, after: key ? Buffer.from(key, 'hex') : undefined };
};

type Check = (key: Buffer, value: Buffer) => void;

/** How a record of each table is checked that holds no report. */
export const recordChecks: Readonly<Record<Exclude<TableName, 'runs'>, Check>> = {
  candles: (key, value) => checkCandle('candles', key, value),
  hourCandles: (key, value) => checkCandle('hourCandles', key, value),
  dayCandles: (key, value) => checkCandle('dayCandles', key, value),
  appended: decodeAppended,
  quarantine: (key, value) => decodeKeyedRecord(key, value, `quarantined line ${positionOfKey(key)}`),
  numbers: checkStreamRow,
  feedIds: checkStreamRow,
  meta: checkMeta,
  writer: (key, value) => decodeKeyedRecord(key, value, `the ${key.toString()} of the writer`),
};

const isOfStream = (name: TableName): boolean => ['runs', 'candles', 'hourCandles', 'dayCandles'].includes(name);

/** A record's key as text, as damage is named by. */
const nameOfKey = (name: TableName, key: Buffer): string => {
  if (name === 'meta') return key.toString('latin1');
  return (name === 'appended' || name === 'quarantine') && key.length === 8
    ? `${positionOfKey(key)}`
    : key.toString('hex');
};

const scanRecord = (
  tables: ReportTables,
  directory: Directory,
  name: TableName,
  key: Buffer,
): readonly ScannedReport[] => {
  const place: Location = {
    table: name,
    key: nameOfKey(name, key),
    ...(isOfStream(name) ? placeOf(directory, key) : {}),
  };
  return attempt(place, () => {
    if (name !== 'runs') {
      const value = tables[name].get(key);
      if (value === undefined) throw new CorruptRecordError('its key is out of order');
      recordChecks[name](key, value);
      return [];
    }
    const run = requireRun(tables, key);
    const { feedId } = place;
    if (feedId === undefined) throw new CorruptRecordError(`the feed ID of stream ${streamOfKey(key)} is missing`);
    return Array.from({ length: run.count }, (_, i) => {
      const window = run.window(i);
      const { observationsMs } = window;
      const at = { table: 'reports', key: `${streamOfKey(key)}/${observationsMs}`, feedId, observationsMs };
      return attempt(at, () => [{ report: { feedId, ...window, fullReport: run.fullReport(i) } }]);
    }).flat();
  });
};

type Location = {
  readonly table: string;
  readonly key: string;
  readonly feedId?: FeedId;
  readonly observationsMs?: number;
};

/** Where a record is, as far as its key tells. */
const placeOf = (directory: Directory, key: Buffer): Pick<Location, 'feedId' | 'observationsMs'> => {
  if (key.length !== 10) return {};
  const feedId = directory.feedIdOf(streamOfKey(key));
  return { ...(feedId && { feedId }), observationsMs: observationsOfKey(key) };
};

/** What a record holds, or the error that says where and why it cannot be read. */
const attempt = (place: Location, read: () => readonly ScannedReport[]): readonly ScannedReport[] => {
  try {
    return read();
  } catch (error) {
    if (error instanceof CorruptRecordError) return [{ error, ...place }];
    throw error;
  }
};
