// A report as a row: its bytes under a checksum of what is served of it; and lists as one parameter.
import { crc32 } from 'node:zlib';
import type { FeedId } from '@sealpost/protocol';
import type { DamageLog } from '../damage.ts';
import { renderedLengthMax, renderReport, writeDigits } from '../format/rendered-report.ts';
import { CorruptRecordError, type RenderedReport, type StoredReport, type Window } from '../store.ts';
import { parseBytea } from './connection.ts';

/** The columns that make a report. */
export const reportColumns = 'observations, valid_from, record';
export type ReportRow = { readonly observations: number; readonly valid_from: number; readonly record: Buffer };

/** A row whose record is in hex digits, as the database writes it: that is how a report goes on the wire, so they are copied and never decoded (D286). */
export type HexRow = { readonly observations: number; readonly valid_from: number; readonly digits: Buffer };

/** A row as one value (D206). */
export const reportValue = 'int8send(observations) || int8send(valid_from) || record';

/** A row that was selected as one value, which is all that its row of the result has. */
export const hexRowOf = (digits: Buffer): HexRow => ({
  observations: numberAt(digits, 0),
  valid_from: numberAt(digits, numberDigits),
  digits: digits.subarray(2 * numberDigits),
});

/** Digits of a bigint, and what they say from a place on. */
export const numberDigits = 16;
export const numberAt = (digits: Buffer, at: number): number =>
  Number.parseInt(digits.toString('latin1', at, at + numberDigits), 16);

const [backslash, x] = [92, 120]; // as ASCII

/** The digits of bytes, also where the database is set to write them with escapes: there a backslash follows another one. */
export const digitsOf = (bytes: Buffer): Buffer =>
  bytes[0] === backslash && bytes[1] === x
    ? bytes.subarray(2)
    : Buffer.from(parseBytea(bytes.toString('latin1')).toString('hex'), 'latin1');

export const feedBytes = (feedId: FeedId): Buffer => Buffer.from(feedId.slice(2), 'hex');
export const feedIdOfBytes = (bytes: Buffer): FeedId => `0x${bytes.toString('hex')}` as FeedId; // written from one

/** Bytes of a key of a batch, of which a feed ID is the first 32, and where in the list, counted from one, the first begins. */
export const keyBytes = 40;
export const keysStart = 5;

export type ReportKey = { readonly feedId: FeedId; readonly observationsMs: number };

/** Salts are below this. */
export const saltMax = 2 ** 16;

/**
 * The keys of a batch under their checksum: feed id, two bytes that nobody reads, and milliseconds each. A salt in the first of these tells a batch from
 * the same reports stored at another time.
 */
export function encodeKeys(reports: readonly StoredReport[], salt = 0): Buffer {
  const value = Buffer.alloc(4 + reports.length * keyBytes);
  let at = 4;
  for (const { feedId, observationsMs } of reports) {
    value.write(feedId.slice(2), at, 'hex');
    value.writeUIntBE(observationsMs, at + 34, 6);
    at += keyBytes;
  }
  if (reports.length > 0) value.writeUInt16BE(salt, 4 + 32);
  value.writeUInt32BE(crc32(value.subarray(4)));
  return value;
}

/** What tells a batch from another one at its place, after a database lost the first: the checksum of its keys. */
export const markOf = (keys: Buffer): number => (keys.length < 4 ? 0 : keys.readUInt32BE(0)); // shorter ones are damaged
export const markColumn = 'substring(keys FROM 1 FOR 4)';

const decodeKeys = (value: Buffer): readonly ReportKey[] => {
  const keys = value.subarray(4);
  if (value.length < 4 || keys.length % keyBytes !== 0 || crc32(keys) !== value.readUInt32BE(0))
    throw new CorruptRecordError('a batch of appended keys does not match its checksum');
  const found: ReportKey[] = [];
  for (let at = 0; at < keys.length; at += keyBytes)
    found.push({
      feedId: feedIdOfBytes(keys.subarray(at, at + 32)),
      observationsMs: keys.readUIntBE(at + 34, 6),
    });
  return found;
};

/** A batch of the append order as a row. */
export type BatchRow = { readonly first_position: number; readonly last_position: number; readonly keys: Buffer };

/** The keys of a batch; throws a CorruptRecordError when they are not what was written, or not as many as it has positions. */
const decodeBatch = ({ first_position: first, last_position: last, keys }: BatchRow): readonly ReportKey[] => {
  const found = decodeKeys(keys);
  if (first + found.length - 1 !== last)
    throw new CorruptRecordError(`the batch from position ${first} to ${last} has ${found.length} keys`);
  return found;
};

/** As `decodeBatch`; a damaged batch is noted, and undefined. */
export const readBatch = (damage: DamageLog, batch: BatchRow): readonly ReportKey[] | undefined =>
  damage.contain({ table: 'appended', key: `${batch.last_position}` }, () => decodeBatch(batch));

/** The checksum is of the report as it is served, which has its stream and whole seconds, and of the milliseconds: what is wrong in the key is found too. */
const seedOf = ({ validFromMs, observationsMs }: Window): number =>
  ((validFromMs % 1_000) * 1_000 + (observationsMs % 1_000)) >>> 0;
const checksumOf = (report: StoredReport): number => crc32(renderReport(report), seedOf(report));
const checksumBytes = 4;

const corrupt = (feedId: FeedId, observationsMs: number): CorruptRecordError =>
  new CorruptRecordError(`the report of ${feedId} at ${observationsMs} does not match its checksum`);

/** Checksum, then the full report. */
export function encodeReport(report: StoredReport): Buffer {
  const record = Buffer.allocUnsafe(checksumBytes + report.fullReport.length);
  record.writeUInt32BE(checksumOf(report));
  record.set(report.fullReport, checksumBytes);
  return record;
}

export const windowOf = ({ valid_from, observations }: Pick<ReportRow, 'valid_from' | 'observations'>): Window => ({
  validFromMs: valid_from,
  observationsMs: observations,
});

/** The report of a row; throws a CorruptRecordError when it is not what was written. */
export function decodeReport(feedId: FeedId, row: ReportRow): StoredReport {
  const report = { feedId, ...windowOf(row), fullReport: row.record.subarray(checksumBytes) };
  if (row.record.length <= checksumBytes || checksumOf(report) !== row.record.readUInt32BE(0))
    throw corrupt(feedId, row.observations);
  return report;
}

const checksumDigits = 2 * checksumBytes;

/** At least as many bytes as rows take on the wire, with a comma each. */
export function renderedRoom(rows: readonly (readonly [FeedId, HexRow])[]): number {
  let room = 0;
  for (const [feedId, { digits }] of rows) room += 1 + renderedLengthMax(feedId, digits.length / 2);
  return room;
}

/** Writes the report of a row as on the wire into `text` from `start` on; throws a CorruptRecordError when it is not what was written. */
export function renderRow(feedId: FeedId, row: HexRow, text: Buffer, start: number): RenderedReport {
  const window = windowOf(row);
  const { digits } = row;
  const end = writeDigits(text, start, feedId, window, digits.subarray(checksumDigits));
  const json = text.subarray(start, end);
  const checksum = Number.parseInt(digits.toString('latin1', 0, checksumDigits), 16);
  if (digits.length <= checksumDigits || crc32(json, seedOf(window)) !== checksum)
    throw corrupt(feedId, window.observationsMs);
  return { observationsMs: window.observationsMs, json };
}

/** The report of a row; throws a CorruptRecordError when it is not what was written. */
export const decodeHexRow = (feedId: FeedId, { digits, ...window }: HexRow): StoredReport =>
  decodeReport(feedId, { ...window, record: Buffer.from(digits.toString('latin1'), 'hex') });

/** As `decodeReport`; a damaged row is noted, and undefined. */
export const readReport = (damage: DamageLog, feedId: FeedId, row: ReportRow): StoredReport | undefined =>
  damage.contain(placeOf(feedId, row.observations), () => decodeReport(feedId, row));

/** Names the row of a report. */
export const placeOf = (feedId: FeedId, observationsMs: number) => ({
  table: 'reports',
  key: `${feedId}/${observationsMs}`,
  feedId,
});

/** Lists as PostgreSQL reads them. The driver could do it, after asking the server for every type there is. */
export const numberList = (numbers: readonly (number | bigint)[]): string => `{${numbers.join(',')}}`;
export const bytesList = (values: readonly Uint8Array[]): string =>
  `{${values.map((bytes) => `"\\\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}"`).join(',')}}`;
export function feedList(feedIds: readonly FeedId[]): string {
  let list = '';
  for (const feedId of feedIds) list += `${list === '' ? '{' : ','}"\\\\x${feedId.slice(2)}"`;
  return list === '' ? '{}' : `${list}}`;
}
export const textList = (texts: readonly string[]): string =>
  `{${texts.map((text) => `"${text.replaceAll(/[\\"]/g, '\\$&')}"`).join(',')}}`;
