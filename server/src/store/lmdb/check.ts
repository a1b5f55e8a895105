// `store verify`: scans every record of the reports environment with the check of its table, checks those of the administrative environment, and that the tables
// agree: records may match their checksums and still contradict each other (D130). Reads one snapshot at a time, so a writer may continue.
import assert from 'node:assert/strict';
import type { FeedId } from '@sealpost/protocol';
import { createDamageLog, type DamageLog } from '../damage.ts';
import { decodeKeyedRecord } from '../format/record.ts';
import type { StoredRun } from '../format/report-run.ts';
import { CorruptRecordError, type Damage, type ScanCursor, type ScannedReport, type Window } from '../store.ts';
import { decodeAdminRecord, decodeAuditEntry } from './admin.ts';
import { checkCandle } from './candles.ts';
import { checkStreamRow, createDirectory, type Directory, loadStreams } from './directory.ts';
import { type Environment, openTable, type Table } from './environment.ts';
import { checkMeta } from './format.ts';
import { requireRun } from './read/runs.ts';
import {
  lastAppended,
  observationsOfKey,
  openAppended,
  positionOfKey,
  type ReportTables,
  storedCounters,
  storedPosition,
  streamOfKey,
} from './report-tables.ts';

const reportTables = [
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

type TableName = (typeof reportTables)[number];

/** A cursor is the table and the last key that was read. */
export function scanSlice(
  environment: Environment,
  tables: ReportTables,
  cursor: ScanCursor | undefined,
  limit: number,
) {
  environment.root.resetReadTxn();
  const { name, after } = parseCursor(cursor);
  const directory = createDirectory(tables, createDamageLog());
  const entries: ScannedReport[] = [];
  for (const key of keysAfter(tables[name], after)) {
    entries.push(...scanRecord(tables, directory, name, key));
    if (entries.length >= limit) return { entries, next: `${name}:${key.toString('hex')}` };
  }
  const following = reportTables[reportTables.indexOf(name) + 1];
  return following === undefined ? { entries } : { entries, next: `${following}:` };
}

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
  const name = reportTables.find((known) => known === table);
  assert(name !== undefined, `${cursor} is not a cursor of a scan`);
  return { name, after: key ? Buffer.from(key, 'hex') : undefined };
};

type Check = (key: Buffer, value: Buffer) => void;

/** How a record of each table is checked that holds no report. */
export const recordChecks: Readonly<Record<Exclude<TableName, 'runs'>, Check>> = {
  candles: (key, value) => checkCandle('candles', key, value),
  hourCandles: (key, value) => checkCandle('hourCandles', key, value),
  dayCandles: (key, value) => checkCandle('dayCandles', key, value),
  appended: openAppended,
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
  return readRecord(place, () => {
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
      return readRecord(at, () => [{ report: { feedId, ...window, fullReport: run.fullReport(i) } }]);
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
const readRecord = (place: Location, read: () => readonly ScannedReport[]): readonly ScannedReport[] => {
  try {
    return read();
  } catch (error) {
    if (error instanceof CorruptRecordError) return [{ error, ...place }];
    throw error;
  }
};

type AdminEntry = { readonly key: Buffer; readonly value: Buffer };

const decodeCount = ({ key, value }: AdminEntry): unknown => decodeKeyedRecord(key, value, key.toString());

/** How a record of each table is decoded, which throws where it is damaged. */
export const adminDecoders: Readonly<Record<string, (entry: AdminEntry) => unknown>> = {
  records: decodeAdminRecord,
  audit: decodeAuditEntry,
  usage: decodeCount,
  secretUses: decodeCount,
  writer: decodeCount,
  retention: decodeCount,
};

/** Every damaged record of the environment. */
export function checkAdministration(environment: Environment): readonly Damage[] {
  environment.root.resetReadTxn();
  const damage: DamageLog = createDamageLog();
  for (const [table, decode] of Object.entries(adminDecoders)) {
    // A reader cannot make a table.
    const opened: Table | undefined = openTable(environment, table);
    for (const entry of opened?.getRange() ?? [])
      damage.contain({ table, key: entry.key.toString(table === 'audit' ? 'hex' : 'utf8') }, () => decode(entry));
  }
  return damage.list();
}

/** Every contradiction between records. What does not match its own checksum is named by the scan. */
export function checkAgreement(environment: Environment, tables: ReportTables): readonly Damage[] {
  environment.root.resetReadTxn();
  const damage = createDamageLog();
  checkRuns(tables, damage);
  checkPositions(tables, damage);
  return damage.list();
}

const checkRuns = (tables: ReportTables, damage: DamageLog): void => {
  const { byNumber, single } = loadStreams(tables, damage);
  for (const { feedId, stream } of single)
    damage.note({
      table: 'numbers',
      key: `${feedId} ${stream}`,
      reason: `stream number ${stream} and ${feedId} belong together in one direction only`,
      feedId,
    });
  const last = new Map<number, Window>();
  const totals = { reports: 0, reportBytes: 0, damaged: 0 };
  for (const { key, run } of intactRuns(tables, damage)) {
    if (run === undefined) {
      totals.damaged += 1;
      continue;
    }
    const stream = streamOfKey(key);
    const feedId = byNumber.get(stream);
    const name = { table: 'runs', key: key.toString('hex'), feedId };
    if (feedId === undefined) damage.note({ ...name, reason: `stream number ${stream} has no feed ID` });
    const before = last.get(stream);
    if (before !== undefined && run.window(0).validFromMs <= before.observationsMs)
      damage.note({ ...name, reason: 'a run begins before the run before it ends' });
    last.set(stream, run.window(run.count - 1));
    totals.reports += run.count;
    totals.reportBytes += run.reportBytes;
  }
  const counted = storedCounters(tables);
  // What a damaged run has or had is counted, and cannot be compared.
  if (counted === undefined || totals.damaged > 0 || !counted.isExact) return;
  if (counted.reports !== totals.reports || counted.reportBytes !== totals.reportBytes)
    damage.note({
      table: 'meta',
      key: 'counters',
      reason: `the counters say ${counted.reports} reports of ${counted.reportBytes} bytes, the runs hold ${totals.reports} of ${totals.reportBytes}`,
    });
};

function* intactRuns(tables: ReportTables, damage: DamageLog): Generator<{ key: Buffer; run: StoredRun | undefined }> {
  let before: Buffer | undefined;
  for (const key of tables.runs.getKeys()) {
    if (before !== undefined && Buffer.compare(before, key) >= 0)
      damage.note({ table: 'runs', key: key.toString('hex'), reason: 'a key of runs is out of order' });
    before = key;
    let run: StoredRun | undefined;
    try {
      run = requireRun(tables, key);
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
    }
    yield { key, run };
  }
}

const checkPositions = (tables: ReportTables, damage: DamageLog): void => {
  let isReadable = true;
  let next: number | undefined;
  for (const { key, value } of tables.appended.getRange()) {
    let [first, count] = [0, 0];
    try {
      first = positionOfKey(key);
      ({ count } = openAppended(key, value));
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
      isReadable = false;
      next = undefined;
      continue;
    }
    if (next !== undefined && first !== next)
      damage.note({
        table: 'appended',
        key: `${first}`,
        reason: `the batch before position ${first} ends at ${next - 1}`,
      });
    next = first + count;
  }
  const position = storedPosition(tables);
  const end = lastAppended(tables, createDamageLog());
  if (isReadable && position !== undefined && position !== end)
    damage.note({
      table: 'meta',
      key: 'position',
      reason: `the last position is ${position}, the last appended batch ends at ${end}`,
    });
};
