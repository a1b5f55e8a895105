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
import { openRun, type RunTable } from '../read/runs.ts';
import { decodeSetAside } from '../read/set-aside.ts';
import { decodeAppended, observationsOfKey, positionOfKey, type ReportTables, streamOfKey } from '../report-tables.ts';

const tableNames = [
  'blocks',
  'tail',
  'candles',
  'hourCandles',
  'dayCandles',
  'appended',
  'quarantine',
  'numbers',
  'feedIds',
  'meta',
  'damaged',
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
  for (const { key, value } of entriesAfter(tables[name], after)) {
    entries.push(...scanRecord(directory, name, key, value));
    if (entries.length >= limit) return { entries, next: `${name}:${key.toString('hex')}` };
  }
  const following = tableNames[tableNames.indexOf(name) + 1];
  return following === undefined ? { entries } : { entries, next: `${following}:` };
};

/** The entries behind a key in the order in which they are stored. Where a damaged key hides the place, everything before it is walked. */
function* entriesAfter(table: Table | undefined, after: Buffer | undefined): Generator<{ key: Buffer; value: Buffer }> {
  if (table === undefined) return;
  if (after === undefined) return yield* table.getRange();
  const [found] = [...table.getKeys({ start: after, reverse: true, limit: 1 })];
  // A start is inclusive: one byte more makes it the first key after.
  if (found?.equals(after)) return yield* table.getRange({ start: Buffer.concat([after, Uint8Array.of(0)]) });
  let isBehind = false;
  for (const entry of table.getRange()) {
    if (isBehind) yield entry;
    else isBehind = entry.key.equals(after);
  }
}

const parseCursor = (cursor: ScanCursor | undefined) => {
  const [table, key] = (cursor ?? 'blocks:').split(':');
  const name = tableNames.find((known) => known === table);
  assert(name !== undefined, `${cursor} is not a cursor of a scan`);
  return { name, after: key ? Buffer.from(key, 'hex') : undefined };
};

type Check = (key: Buffer, value: Buffer) => void;

/** How a record of each table is checked that holds no report. */
export const recordChecks: Readonly<Record<Exclude<TableName, RunTable>, Check>> = {
  candles: (key, value) => checkCandle('candles', key, value),
  hourCandles: (key, value) => checkCandle('hourCandles', key, value),
  dayCandles: (key, value) => checkCandle('dayCandles', key, value),
  appended: decodeAppended,
  quarantine: (key, value) => decodeKeyedRecord(key, value, `quarantined line ${positionOfKey(key)}`),
  numbers: checkStreamRow,
  feedIds: checkStreamRow,
  meta: checkMeta,
  writer: (key, value) => decodeKeyedRecord(key, value, `the ${key.toString()} of the writer`),
  damaged: (key, value) => {
    const { table, reason, file } = decodeSetAside(key, value);
    if (file === undefined) throw new CorruptRecordError(`a run of ${table} was set aside: ${reason}`);
  },
};

const isOfStream = (name: TableName): boolean =>
  ['blocks', 'tail', 'candles', 'hourCandles', 'dayCandles', 'damaged'].includes(name);

/** A record's key as text, as damage is named by. */
const nameOfKey = (name: TableName, key: Buffer): string => {
  if (name === 'meta') return key.toString('latin1');
  return (name === 'appended' || name === 'quarantine') && key.length === 8
    ? `${positionOfKey(key)}`
    : key.toString('hex');
};

const scanRecord = (directory: Directory, name: TableName, key: Buffer, value: Buffer): readonly ScannedReport[] => {
  const place: Location = {
    table: name,
    key: nameOfKey(name, key),
    ...(isOfStream(name) ? placeOf(directory, key) : {}),
  };
  if (name !== 'blocks' && name !== 'tail')
    return attempt(place, () => {
      recordChecks[name](key, value);
      return [];
    });
  return attempt(place, () => {
    const block = openRun(key, value);
    const { feedId } = place;
    if (feedId === undefined) throw new CorruptRecordError(`the feed ID of stream ${streamOfKey(key)} is missing`);
    return Array.from({ length: block.count }, (_, i) => {
      const { observationsMs } = block.window(i);
      const at = { table: 'reports', key: `${streamOfKey(key)}/${observationsMs}`, feedId, observationsMs };
      return attempt(at, () => [{ report: { feedId, ...block.report(i) } }]);
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
