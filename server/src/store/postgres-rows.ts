// Owns a report as a row: packed, and under a checksum that covers its key as well; and how lists travel as one parameter.
import { crc32 } from 'node:zlib';
import type { FeedId } from '@sealpost/protocol';
import { packReport, unpackReport } from './packed-report.ts';
import { CorruptRecordError, type StoredReport, type Window } from './store.ts';

/** The columns that make a report. */
export const reportColumns = 'observations, valid_from, record';
export type ReportRow = { readonly observations: number; readonly valid_from: number; readonly record: Buffer };

export const feedBytes = (feedId: FeedId): Buffer => Buffer.from(feedId.slice(2), 'hex');
export const feedIdOfBytes = (bytes: Uint8Array): FeedId => `0x${Buffer.from(bytes).toString('hex')}` as FeedId; // written from one

const keyBytes = 40;

/** A report's key in the order of appending: feed id, then milliseconds. */
const encodeKey = ({ feedId, observationsMs }: Pick<StoredReport, 'feedId' | 'observationsMs'>): Buffer => {
  const key = Buffer.alloc(keyBytes);
  key.write(feedId.slice(2), 0, 'hex');
  key.writeBigUInt64BE(BigInt(observationsMs), 32);
  return key;
};

export type ReportKey = { readonly feedId: FeedId; readonly observationsMs: number };

/** The keys of a batch under their checksum. */
export const encodeKeys = (reports: readonly StoredReport[]): Buffer => {
  const keys = Buffer.concat(reports.map(encodeKey));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(crc32(keys));
  return Buffer.concat([head, keys]);
};

export const decodeKeys = (value: Buffer): readonly ReportKey[] => {
  const keys = value.subarray(4);
  if (value.length < 4 || keys.length % keyBytes !== 0 || crc32(keys) !== value.readUInt32BE(0))
    throw new CorruptRecordError('a batch of appended keys does not match its checksum');
  return Array.from({ length: keys.length / keyBytes }, (_, i) => {
    const key = keys.subarray(i * keyBytes, (i + 1) * keyBytes);
    return { feedId: feedIdOfBytes(key.subarray(0, 32)), observationsMs: Number(key.readBigUInt64BE(32)) };
  });
};

const seed = Buffer.alloc(keyBytes + 8);

const checksumOf = (feedId: FeedId, { validFromMs, observationsMs }: Window, fullReport: Uint8Array): number => {
  seed.write(feedId.slice(2), 0, 'hex');
  seed.writeBigUInt64BE(BigInt(observationsMs), 32);
  seed.writeBigUInt64BE(BigInt(validFromMs), keyBytes);
  return crc32(fullReport, crc32(seed));
};

/** Checksum, then the packed report. */
export const encodeReport = (report: StoredReport): Buffer => {
  const packed = packReport(report.fullReport);
  const record = Buffer.allocUnsafe(4 + packed.length);
  record.writeUInt32BE(checksumOf(report.feedId, report, report.fullReport));
  packed.copy(record, 4);
  return record;
};

/** The report of a row; throws a CorruptRecordError when it is not what was written. */
export const decodeReport = (feedId: FeedId, row: ReportRow): StoredReport => {
  const window = { validFromMs: row.valid_from, observationsMs: row.observations };
  const fullReport = row.record.length < 4 ? Buffer.alloc(0) : unpackReport(row.record.subarray(4));
  if (row.record.length < 4 || checksumOf(feedId, window, fullReport) !== row.record.readUInt32BE(0))
    throw new CorruptRecordError(`the report of ${feedId} at ${row.observations} does not match its checksum`);
  return { feedId, ...window, fullReport };
};

/** Lists as PostgreSQL reads them. The driver could do it, after asking the server for every type there is. */
export const numberList = (numbers: readonly (number | bigint)[]): string => `{${numbers.join(',')}}`;
export const bytesList = (values: readonly Uint8Array[]): string =>
  `{${values.map((bytes) => `"\\\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}"`).join(',')}}`;
export const textList = (texts: readonly string[]): string =>
  `{${texts.map((text) => `"${text.replaceAll(/[\\"]/g, '\\$&')}"`).join(',')}}`;
