// The tables and keys of the reports environment. All reports of a stream are in `runs`, keyed by the stream's number and the run's last observation: full runs,
// and at the end short ones, which the writer joins.
import { crc32 } from 'node:zlib';
import type { DamageLog } from '../damage.ts';
import { openRun } from '../format/report-run.ts';
import { CorruptRecordError } from '../store.ts';
import { type Environment, openTable, type Table } from './environment.ts';
import { writerTokenTable } from './write/writer-token.ts';

export type ReportTables = {
  /** Format, identity, counters, last position. */
  readonly meta: Table;
  /** Feed id → stream number. Numbers are never used again. */
  readonly numbers: Table;
  /** Stream number → feed id. */
  readonly feedIds: Table;
  readonly runs: Table;
  /** Stream and minute → what its prices did. */
  readonly candles: Table;
  /** The same by hour and by day. */
  readonly hourCandles: Table;
  readonly dayCandles: Table;
  /** First position of a batch → the keys that it stored, in order. */
  readonly appended: Table;
  readonly quarantine: Table;
  /** Who may write (write/writer-token.ts). */
  readonly writer: Table;
};

export const openMeta = (environment: Environment): Table => openTable(environment, 'meta');

export const openReportTables = (environment: Environment): ReportTables => ({
  meta: openMeta(environment),
  numbers: openTable(environment, 'numbers'),
  feedIds: openTable(environment, 'feedIds'),
  runs: openTable(environment, 'runs', true),
  candles: openTable(environment, 'candles'),
  hourCandles: openTable(environment, 'hourCandles'),
  dayCandles: openTable(environment, 'dayCandles'),
  appended: openTable(environment, 'appended'),
  quarantine: openTable(environment, 'quarantine'),
  writer: openTable(environment, writerTokenTable),
});

/** Key of a report or a run: ordered by stream, then by time. */
export function reportKey(stream: number, observationsMs: number): Buffer {
  const key = Buffer.allocUnsafe(10);
  key.writeUInt32BE(stream, 0);
  key.writeUIntBE(Math.max(0, observationsMs), 4, 6);
  return key;
}

const requireBytes = (key: Buffer, bytes: number): void => {
  if (key.length < bytes) throw new CorruptRecordError(`the key ${key.toString('hex')} is cut short`);
};

export function streamOfKey(key: Buffer): number {
  requireBytes(key, 4);
  return key.readUInt32BE(0);
}

export function observationsOfKey(key: Buffer): number {
  requireBytes(key, 10);
  return key.readUIntBE(4, 6);
}

/** The keys of a stream from a moment on, so many at most; the end is exclusive. */
export const keysFrom = (stream: number, observationsMs: number, limit = Number.POSITIVE_INFINITY) => ({
  start: reportKey(stream, observationsMs),
  end: reportKey(stream + 1, 0),
  limit,
});

export function streamKey(stream: number): Buffer {
  const key = Buffer.allocUnsafe(4);
  key.writeUInt32BE(stream);
  return key;
}

export function positionKey(position: number): Buffer {
  const key = Buffer.allocUnsafe(8);
  key.writeBigUInt64BE(BigInt(position));
  return key;
}

export function positionOfKey(key: Buffer): number {
  requireBytes(key, 8);
  return Number(key.readBigUInt64BE());
}

const appendedEntryBytes = 10;

// The position seeds the checksum, so that a batch under another key is found out.
const seedOf = (key: Buffer): number => crc32(key);

/** The keys that one batch stored, after their checksum. `key` is that of its first position. */
export function encodeAppended(key: Buffer, keys: readonly Buffer[]): Buffer {
  const entries = Buffer.concat(keys);
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32BE(crc32(entries, seedOf(key)));
  return Buffer.concat([head, entries]);
}

/** The keys of a batch, one after the other. */
export function openAppended(
  key: Buffer,
  value: Buffer,
): { readonly count: number; readonly at: (i: number) => Buffer } {
  const entries = value.subarray(4);
  const isWhole = value.length >= 4 && entries.length % appendedEntryBytes === 0;
  if (!isWhole || crc32(entries, seedOf(key)) !== value.readUInt32BE(0))
    throw new CorruptRecordError(`the batch appended at ${positionOfKey(key)} does not match its checksum`);
  return {
    count: entries.length / appendedEntryBytes,
    at: (i) => entries.subarray(i * appendedEntryBytes, (i + 1) * appendedEntryBytes),
  };
}

/** Streams that have reports. */
export function countStreams({ feedIds, runs }: ReportTables): number {
  const hasRun = (stream: number): boolean => [...runs.getKeys(keysFrom(stream, 0, 1))].length > 0;
  return [...feedIds.getKeys()].filter((key) => key.length === 4 && hasRun(streamOfKey(key))).length;
}

/**
 * `isExact`: no damaged run was removed or replaced, of which nobody knows how many reports it had. `rewrites` grows whenever a report was stored that is not the
 * newest of its stream, or reports were removed.
 */
export type Counters = { reports: number; reportBytes: number; isExact: boolean; rewrites: number };

const countersKey = Buffer.from('counters');
const positionAt = Buffer.from('position');
/** The records of `meta` that are kept here, and the bytes of each before its checksum. */
export const countedRecords: ReadonlyMap<string, number> = new Map([
  ['counters', 29],
  ['position', 8],
]);
const countersBytes = 29; // reports 8, their bytes 8, changes 6, whether they are exact 1, rewrites 6
const positionBytes = 8;

/** Does a record of `countedRecords` match its checksum? */
export const isCounted = (value: Buffer | undefined, bytes: number): value is Buffer =>
  value !== undefined && value.length === bytes + 4 && crc32(value.subarray(0, bytes)) === value.readUInt32BE(bytes);

const putChecked = ({ meta }: ReportTables, key: Buffer, write: (value: Buffer) => void, bytes: number): void => {
  const value = Buffer.alloc(bytes + 4);
  write(value);
  value.writeUInt32BE(crc32(value.subarray(0, bytes)), bytes);
  meta.put(key, value);
};

/** The counts; undefined where their record is damaged, zero in an empty store. */
export function storedCounters({ meta, runs }: ReportTables): Counters | undefined {
  const value = meta.get(countersKey);
  if (value === undefined && [...runs.getKeys({ limit: 1 })].length === 0)
    return { reports: 0, reportBytes: 0, isExact: true, rewrites: 0 };
  if (!isCounted(value, countersBytes)) return undefined;
  return {
    reports: Number(value.readBigUInt64BE(0)),
    reportBytes: Number(value.readBigUInt64BE(8)),
    isExact: value[22] === 1,
    rewrites: value.readUIntBE(23, 6),
  };
}

/** The counts. Where their record is damaged every run is counted, which takes about a second for a million reports. */
export function readCounters(tables: ReportTables, damage: DamageLog): Counters {
  const stored = storedCounters(tables);
  if (stored !== undefined) return stored;
  damage.note({
    table: 'meta',
    key: 'counters',
    reason: 'the counters do not match their checksum; they were counted again',
  });
  return countRuns(tables);
}

/** What the runs hold, counted. */
const countRuns = (tables: ReportTables): Counters => {
  // A number that no process has seen.
  const sum = { reports: 0, reportBytes: 0, isExact: true, rewrites: Math.floor(Math.random() * 2 ** 47) };
  for (const key of tables.runs.getKeys()) {
    try {
      const run = openRun(key, tables.runs.get(key) ?? Buffer.alloc(0));
      sum.reports += run.count;
      sum.reportBytes += run.reportBytes;
    } catch {
      sum.isExact = false;
    }
  }
  return sum;
};

/** Every transaction that changes reports ends with this. */
export function writeCounters(tables: ReportTables, { reports, reportBytes, isExact, rewrites }: Counters): void {
  const stored = tables.meta.get(countersKey);
  const isDamaged = stored !== undefined && !isCounted(stored, countersBytes);
  // After damage, a number that no process has seen.
  const next = isDamaged ? Math.floor(Math.random() * 2 ** 47) : changesOf(tables) + 1;
  putChecked(
    tables,
    countersKey,
    (value) => {
      value.writeBigUInt64BE(BigInt(Math.max(0, reports)), 0);
      value.writeBigUInt64BE(BigInt(Math.max(0, reportBytes)), 8);
      value.writeUIntBE(next, 16, 6);
      value[22] = isExact ? 1 : 0;
      value.writeUIntBE(rewrites, 23, 6);
    },
    countersBytes,
  );
}

/**
 * What was written by now: as long as `changes` is the same nothing was, as long as `rewrites` is, nothing but reports that are the newest of their streams. The
 * checksum costs as much as reading it and is left to the writer.
 */
export function writtenIn({ meta }: ReportTables): { readonly changes: number; readonly rewrites: number } {
  const value = meta.view(countersKey);
  if (value === undefined || value.length < countersBytes) return { changes: 0, rewrites: Number.NaN };
  return { changes: value.readUIntBE(16, 6), rewrites: value.readUIntBE(23, 6) };
}

export const changesOf = (tables: ReportTables): number => writtenIn(tables).changes;

/** The record of the last position; undefined where it is damaged or missing. */
export function storedPosition({ meta }: ReportTables): number | undefined {
  const value = meta.get(positionAt);
  return isCounted(value, positionBytes) ? Number(value.readBigUInt64BE()) : undefined;
}

/** The last appended position, 0 when nothing ever was. Where its record is damaged it is that of the last intact batch. */
export function lastPosition(tables: ReportTables, damage: DamageLog): number {
  const stored = storedPosition(tables);
  if (stored !== undefined) return stored;
  if (tables.meta.get(positionAt) !== undefined)
    damage.note({ table: 'meta', key: 'position', reason: 'the last position does not match its checksum' });
  return lastAppended(tables, damage);
}

/** The position that the last intact batch ends at. */
export function lastAppended({ appended }: ReportTables, damage: DamageLog): number {
  for (const { key, value } of appended.getRange({ reverse: true })) {
    const first = key.length < 8 ? Number.NaN : positionOfKey(key);
    const keys = damage.contain({ table: 'appended', key: `${first}` }, () => openAppended(key, value));
    if (keys !== undefined && Number.isSafeInteger(first)) return first + keys.count - 1;
  }
  return 0;
}

export const writePosition = (tables: ReportTables, position: number): void =>
  putChecked(tables, positionAt, (value) => void value.writeBigUInt64BE(BigInt(position)), positionBytes);
