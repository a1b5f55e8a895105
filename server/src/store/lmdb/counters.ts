// What is counted in the reports environment, in small records under checksums that every change of reports writes again. What is damaged is
// counted anew (D121).
import { crc32 } from 'node:zlib';
import type { DamageLog } from '../damage.ts';
import type { RecordBytes } from '../format/record-bytes.ts';
import { openBlock } from '../format/report-block.ts';
import { viewRecord } from './environment.ts';
import { decodeAppended, positionOfKey, type ReportTables, streamOfKey } from './report-tables.ts';

export type Counters = { reports: number; reportBytes: number };

const countersKey = Buffer.from('counters');
const positionAt = Buffer.from('position');
/** The records of `meta` that are kept here, and the bytes of each before its checksum. */
export const countedRecords: ReadonlyMap<string, number> = new Map([
  ['counters', 22],
  ['position', 8],
]);
const countersBytes = 22;
const positionBytes = 8;

// A record of format 1 has no checksum.
export const isCounted = (value: RecordBytes | undefined, bytes: number): value is RecordBytes =>
  value !== undefined &&
  (value.length === bytes ||
    (value.length === bytes + 4 && crc32(value.subarray(0, bytes)) === value.readUInt32BE(bytes)));

const putChecked = ({ meta }: ReportTables, key: Buffer, write: (value: Buffer) => void, bytes: number): void => {
  const value = Buffer.alloc(bytes + 4);
  write(value);
  value.writeUInt32BE(crc32(value.subarray(0, bytes)), bytes);
  meta.put(key, value);
};

/** The counts; undefined where their record is damaged, zero in an empty store. */
export const storedCounters = ({ meta, blocks, tail }: ReportTables): Counters | undefined => {
  const value = meta.get(countersKey);
  if (value === undefined) {
    const isEmpty = [blocks, tail].every((table) => [...table.getKeys({ limit: 1 })].length === 0);
    return isEmpty ? { reports: 0, reportBytes: 0 } : undefined;
  }
  if (!isCounted(value, countersBytes)) return undefined;
  return { reports: Number(value.readBigUInt64BE(0)), reportBytes: Number(value.readBigUInt64BE(8)) };
};

/** The counts. Where their record is damaged every run is counted, which takes about a second for a million reports. */
export const readCounters = (tables: ReportTables, damage: DamageLog): Counters => {
  const stored = storedCounters(tables);
  if (stored !== undefined) return stored;
  damage.note({
    table: 'meta',
    key: 'counters',
    reason: 'the counters do not match their checksum; they were counted anew',
  });
  return countRuns(tables);
};

/** What the runs hold, counted. */
export const countRuns = (tables: ReportTables): Counters => {
  const sum = { reports: 0, reportBytes: 0 };
  for (const table of [tables.blocks, tables.tail]) {
    for (const { key, value } of table.getRange()) {
      try {
        const run = openBlock(streamOfKey(key), value);
        sum.reports += run.count;
        sum.reportBytes += run.reportBytes();
      } catch {
        // A damaged run holds nothing that can be counted.
      }
    }
  }
  return sum;
};

/** Every transaction that changes reports ends with this. */
export const writeCounters = (tables: ReportTables, { reports, reportBytes }: Counters): void => {
  const isDamaged = !isCounted(viewRecord(tables.meta, countersKey) ?? Buffer.alloc(countersBytes), countersBytes);
  // After damage a number that nobody remembers as seen.
  const next = isDamaged ? Math.floor(Math.random() * 2 ** 47) : changesOf(tables) + 1;
  putChecked(
    tables,
    countersKey,
    (value) => {
      value.writeBigUInt64BE(BigInt(reports), 0);
      value.writeBigUInt64BE(BigInt(reportBytes), 8);
      value.writeUIntBE(next, 16, 6);
    },
    countersBytes,
  );
};

/** A number that changes whenever reports were written or removed. Its checksum costs as much as reading it and is left to the writer. */
export const changesOf = ({ meta }: ReportTables): number => {
  const value = viewRecord(meta, countersKey);
  return value === undefined || value.length < countersBytes ? 0 : value.readUIntBE(16, 6);
};

/** The record of the last position; undefined where it is damaged or missing. */
export const storedPosition = ({ meta }: ReportTables): number | undefined => {
  const value = meta.get(positionAt);
  return isCounted(value, positionBytes) ? Number(value.readBigUInt64BE()) : undefined;
};

/** The last appended position, 0 when nothing ever was. Where its record is damaged it is that of the last intact batch. */
export const lastPosition = (tables: ReportTables, damage: DamageLog): number => {
  const stored = storedPosition(tables);
  if (stored !== undefined) return stored;
  if (tables.meta.get(positionAt) !== undefined)
    damage.note({ table: 'meta', key: 'position', reason: 'the last position does not match its checksum' });
  return lastAppended(tables, damage);
};

/** The position that the last intact batch ends at. */
export const lastAppended = ({ appended }: ReportTables, damage: DamageLog): number => {
  for (const { key, value } of appended.getRange({ reverse: true })) {
    const first = positionOfKey(key);
    const keys = damage.contain({ table: 'appended', key: `${first}` }, () => decodeAppended(key, value));
    if (keys !== undefined && Number.isSafeInteger(first)) return first + keys.length - 1;
  }
  return 0;
};

export const writePosition = (tables: ReportTables, position: number): void =>
  putChecked(tables, positionAt, (value) => void value.writeBigUInt64BE(BigInt(position)), positionBytes);
