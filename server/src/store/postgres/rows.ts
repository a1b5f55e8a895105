// A report as a row: packed, with a checksum that also covers its key; and lists as one parameter.
import { crc32 } from 'node:zlib';
import type { FeedId } from '@sealpost/protocol';
import type { DamageLog } from '../damage.ts';
import { packReport, unpackReport } from '../format/packed-report.ts';
import { reportChecksum } from '../format/report-block.ts';
import { CorruptRecordError, type StoredReport } from '../store.ts';

/** The columns that make a report. */
export const reportColumns = 'observations, valid_from, record';
export type ReportRow = { readonly observations: number; readonly valid_from: number; readonly record: Buffer };

export const feedBytes = (feedId: FeedId): Buffer => Buffer.from(feedId.slice(2), 'hex');
export const feedIdOfBytes = (bytes: Uint8Array): FeedId => `0x${Buffer.from(bytes).toString('hex')}` as FeedId; // written from one

const keyBytes = 40;

export type ReportKey = { readonly feedId: FeedId; readonly observationsMs: number };

/** The keys of a batch, feed id and milliseconds each, under their checksum. */
export const encodeKeys = (reports: readonly StoredReport[]): Buffer => {
  const value = Buffer.alloc(4 + reports.length * keyBytes);
  for (const [i, { feedId, observationsMs }] of reports.entries()) {
    value.write(feedId.slice(2), 4 + i * keyBytes, 'hex');
    value.writeUIntBE(observationsMs, 4 + i * keyBytes + 34, 6);
  }
  value.writeUInt32BE(crc32(value.subarray(4)));
  return value;
};

/** What tells a batch from another one at its place, after a database lost the first: the checksum of its keys. */
export const markOf = (keys: Buffer): number => (keys.length < 4 ? 0 : keys.readUInt32BE(0)); // shorter ones are damaged
export const markColumn = 'substring(keys FROM 1 FOR 4)';

const decodeKeys = (value: Buffer): readonly ReportKey[] => {
  const keys = value.subarray(4);
  if (value.length < 4 || keys.length % keyBytes !== 0 || crc32(keys) !== value.readUInt32BE(0))
    throw new CorruptRecordError('a batch of appended keys does not match its checksum');
  return Array.from({ length: keys.length / keyBytes }, (_, i) => {
    const key = keys.subarray(i * keyBytes, (i + 1) * keyBytes);
    return { feedId: feedIdOfBytes(key.subarray(0, 32)), observationsMs: key.readUIntBE(34, 6) };
  });
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

/** How many keys a batch has, whatever its positions; undefined where they are damaged. */
export const countKeys = (keys: Buffer): number | undefined => {
  try {
    return decodeKeys(keys).length;
  } catch (error) {
    if (error instanceof CorruptRecordError) return undefined;
    throw error;
  }
};

/** As `decodeBatch`; a damaged batch is noted, and undefined. One that is known to be lost is undefined as well. */
export const readBatch = (damage: DamageLog, batch: BatchRow): readonly ReportKey[] | undefined =>
  isLostBatch(batch)
    ? undefined
    : damage.contain({ table: 'appended', key: `${batch.last_position}` }, () => decodeBatch(batch));

/** The keys of a batch that a repair found damaged: none, under their checksum. Its positions stay taken (D137). */
export const lostKeys = encodeKeys([]);
export const isLostBatch = ({ keys }: Pick<BatchRow, 'keys'>): boolean => keys.equals(lostKeys);

/** What stands for a stream in the checksums of its reports. */
const createSeeds = () => {
  const seeds = new Map<FeedId, number>();
  return (feedId: FeedId): number => {
    const known = seeds.get(feedId);
    if (known !== undefined) return known;
    const seed = crc32(feedBytes(feedId));
    // Only streams that have reports get here; far more than there ever are is a mistake that shall not fill the memory.
    if (seeds.size < 100_000) seeds.set(feedId, seed);
    return seed;
  };
};

const seedOf = createSeeds();

/** Checksum, then the packed report. */
export const encodeReport = (report: StoredReport): Buffer => {
  const packed = packReport(report.fullReport);
  const record = Buffer.allocUnsafe(4 + packed.length);
  record.writeUInt32BE(reportChecksum(seedOf(report.feedId), report, report.fullReport));
  packed.copy(record, 4);
  return record;
};

/** The report of a row; throws a CorruptRecordError when it is not what was written. */
export const decodeReport = (feedId: FeedId, row: ReportRow): StoredReport => {
  const window = { validFromMs: row.valid_from, observationsMs: row.observations };
  const isWhole = row.record.length > 4;
  const fullReport = isWhole ? unpackReport(row.record.subarray(4)) : Buffer.alloc(0);
  if (!isWhole || reportChecksum(seedOf(feedId), window, fullReport) !== row.record.readUInt32BE(0))
    throw new CorruptRecordError(`the report of ${feedId} at ${row.observations} does not match its checksum`);
  return { feedId, validFromMs: row.valid_from, observationsMs: row.observations, fullReport };
};

/** As `decodeReport`; a damaged row is noted, and undefined. One that is known to be lost is undefined as well. */
export const readReport = (damage: DamageLog, feedId: FeedId, row: ReportRow): StoredReport | undefined =>
  isLostReport(row)
    ? undefined
    : damage.contain({ table: 'reports', key: `${feedId}/${row.observations}`, feedId }, () =>
        decodeReport(feedId, row),
      );

/** A row without a record: a repair found the report damaged, and it stays lost until it is sent again (D137). */
export const isLostReport = ({ record }: Pick<ReportRow, 'record'>): boolean => record.length === 0;
export const notLost = 'octet_length(record) > 0';

/** Lists as PostgreSQL reads them. The driver could do it, after asking the server for every type there is. */
export const numberList = (numbers: readonly (number | bigint)[]): string => `{${numbers.join(',')}}`;
export const bytesList = (values: readonly Uint8Array[]): string =>
  `{${values.map((bytes) => `"\\\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}"`).join(',')}}`;
export const textList = (texts: readonly string[]): string =>
  `{${texts.map((text) => `"${text.replaceAll(/[\\"]/g, '\\$&')}"`).join(',')}}`;
