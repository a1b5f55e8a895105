// A report as a row: packed, with a checksum that also covers its key; and lists as one parameter.
import { crc32 } from 'node:zlib';
import type { FeedId } from '@sealpost/protocol';
import type { DamageLog } from '../damage.ts';
import { packReport, type Unpacked, unpackedBytes, unpackShared } from '../format/packed-report.ts';
import { createReportRenderer } from '../format/rendered-report.ts';
import { reportChecksum } from '../format/report-block.ts';
import { CorruptRecordError, type StoredReport, type Window } from '../store.ts';

/** The columns that make a report. */
export const reportColumns = 'observations, valid_from, record';
export type ReportRow = { readonly observations: number; readonly valid_from: number; readonly record: Buffer };

/** Rows as one row of lists, to be read by `rowsOfLists`: for a page, database and driver take half of what they take for as many rows (D206). */
export const reportLists =
  "array_agg(observations) AS observations, array_agg(valid_from) AS valid_from, array_agg(octet_length(record)) AS lengths, string_agg(record, '') AS records";
/** Lists as PostgreSQL writes them, all null where there is no row. */
export type ReportLists = {
  readonly observations: string | null;
  readonly valid_from: string | null;
  readonly lengths: string | null;
  readonly records: Buffer | null;
};

/** The numbers of a list as PostgreSQL writes it. */
export const numbersOf = (list: string | null): readonly number[] => {
  const numbers: number[] = [];
  if (list === null) return numbers;
  let [value, sign, digits] = [0, 1, 0];
  // Digit by digit: a list of texts in between takes ten times as long.
  for (let i = 1; i < list.length; i++) {
    const code = list.charCodeAt(i);
    if (code === minus) sign = -1;
    else if (code >= zero && code <= nine) {
      value = value * 10 + code - zero;
      digits += 1;
    } else if (digits > 0) {
      numbers.push(sign * value);
      [value, sign, digits] = [0, 1, 0];
    }
  }
  return numbers;
};

const [minus, zero, nine] = [45, 48, 57]; // as ASCII

/** The rows again. Their records share memory: what is kept is copied. */
export const rowsOfLists = (lists: ReportLists | undefined): readonly ReportRow[] => {
  if (lists === undefined || lists.records === null) return [];
  const { records } = lists;
  const validFrom = numbersOf(lists.valid_from);
  const lengths = numbersOf(lists.lengths);
  let start = 0;
  return numbersOf(lists.observations).map((observations, i) => {
    const end = start + (lengths[i] as number); // as many as observations
    const record = records.subarray(start, end);
    start = end;
    return { observations, valid_from: validFrom[i] as number, record }; // as above
  });
};

export const feedBytes = (feedId: FeedId): Buffer => Buffer.from(feedId.slice(2), 'hex');
export const feedIdOfBytes = (bytes: Uint8Array): FeedId => `0x${Buffer.from(bytes).toString('hex')}` as FeedId; // written from one

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
export const encodeKeys = (reports: readonly StoredReport[], salt = 0): Buffer => {
  const value = Buffer.alloc(4 + reports.length * keyBytes);
  let at = 4;
  for (const { feedId, observationsMs } of reports) {
    value.set(knownFeed(feedId).bytes, at);
    value.writeUIntBE(observationsMs, at + 34, 6);
    at += keyBytes;
  }
  if (reports.length > 0) value.writeUInt16BE(salt, 4 + 32);
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
  const found: ReportKey[] = [];
  for (let at = 0; at < keys.length; at += keyBytes)
    found.push({
      feedId: knownFeedId(keys.toString('latin1', at, at + 32)),
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

/** As `decodeBatch`; a damaged batch is noted, and undefined. One that is known to be lost is undefined as well. */
export const readBatch = (damage: DamageLog, batch: BatchRow): readonly ReportKey[] | undefined =>
  isLostBatch(batch)
    ? undefined
    : damage.contain({ table: 'appended', key: `${batch.last_position}` }, () => decodeBatch(batch));

/** The keys of a batch that a repair found damaged: none, under their checksum. Its positions stay taken. */
const lostKeys = encodeKeys([]);
export const isLostBatch = ({ keys }: Pick<BatchRow, 'keys'>): boolean => keys.equals(lostKeys);

/** A memo of something about streams. Only those with reports get here; far more than there ever are is a mistake that shall not fill the memory. */
const memoOfStreams = <K, V>(make: (key: K) => V): ((key: K) => V) => {
  const known = new Map<K, V>();
  return (key) => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = make(key);
    if (known.size < 100_000) known.set(key, made);
    return made;
  };
};

/** The bytes of a feed ID, and what stands for the stream in the checksums of its reports. */
const knownFeed = memoOfStreams((feedId: FeedId) => {
  const bytes = feedBytes(feedId);
  return { bytes, seed: crc32(bytes) };
});

/** What writes reports of a stream as on the wire: it takes longer to make than a report to write. */
export const writerOf = memoOfStreams(createReportRenderer);

/** The feed ID of bytes, given as a text of one character each. */
const knownFeedId = memoOfStreams((latin1: string) => feedIdOfBytes(Buffer.from(latin1, 'latin1')));

/** Checksum, then the packed report. */
export const encodeReport = (report: StoredReport): Buffer => {
  const packed = packReport(report.fullReport);
  const record = Buffer.allocUnsafe(4 + packed.length);
  record.writeUInt32BE(reportChecksum(knownFeed(report.feedId).seed, report, report.fullReport));
  packed.copy(record, 4);
  return record;
};

export const windowOf = ({ valid_from, observations }: Omit<ReportRow, 'record'>): Window => ({
  validFromMs: valid_from,
  observationsMs: observations,
});

/** The full report of a row, in memory that the next call uses again; throws a CorruptRecordError when it is not what was written. */
export const unpackRow = (feedId: FeedId, row: ReportRow): Unpacked => {
  const { record } = row;
  const unpacked = record.length > 4 ? unpackShared(record, 4, record.length) : undefined;
  if (
    unpacked === undefined ||
    reportChecksum(knownFeed(feedId).seed, windowOf(row), unpacked.bytes) !== record.readUInt32BE(0)
  )
    throw new CorruptRecordError(`the report of ${feedId} at ${row.observations} does not match its checksum`);
  return unpacked;
};

/** Bytes of the full report of a row, as its record claims. */
export const fullReportBytes = ({ record }: ReportRow): number => unpackedBytes(record, 4, record.length);

/** The report of a row; throws a CorruptRecordError when it is not what was written. */
export const decodeReport = (feedId: FeedId, row: ReportRow): StoredReport => ({
  feedId,
  ...windowOf(row),
  fullReport: Buffer.from(unpackRow(feedId, row).bytes),
});

/** What `read` makes of a row; a damaged row is noted, and undefined. One that is known to be lost is undefined as well. */
export const containDamage = <T>(damage: DamageLog, feedId: FeedId, row: ReportRow, read: () => T): T | undefined => {
  if (isLostReport(row)) return undefined;
  try {
    return read();
  } catch (error) {
    const place = { table: 'reports', key: `${feedId}/${row.observations}`, feedId };
    return damage.contain(place, (): T => {
      throw error;
    });
  }
};

/** As `decodeReport`; undefined where the row is damaged or lost. */
export const readReport = (damage: DamageLog, feedId: FeedId, row: ReportRow): StoredReport | undefined =>
  containDamage(damage, feedId, row, () => decodeReport(feedId, row));

/** A row without a record: a repair found the report damaged, and it stays lost until it is sent again. */
export const isLostReport = ({ record }: Pick<ReportRow, 'record'>): boolean => record.length === 0;
export const notLost = 'octet_length(record) > 0';

/** Lists as PostgreSQL reads them. The driver could do it, after asking the server for every type there is. */
export const numberList = (numbers: readonly (number | bigint)[]): string => `{${numbers.join(',')}}`;
export const bytesList = (values: readonly Uint8Array[]): string =>
  `{${values.map((bytes) => `"\\\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}"`).join(',')}}`;
export const feedList = (feedIds: readonly FeedId[]): string => {
  let list = '';
  for (const feedId of feedIds) list += `${list === '' ? '{' : ','}"\\\\x${feedId.slice(2)}"`;
  return list === '' ? '{}' : `${list}}`;
};
export const textList = (texts: readonly string[]): string =>
  `{${texts.map((text) => `"${text.replaceAll(/[\\"]/g, '\\$&')}"`).join(',')}}`;
