// Owns the tables and keys of the reports environment. Per stream: closed runs in `blocks`, then short ones in `tail`, every report of
// which is observed after every block. Both hold runs of one form, keyed by stream number and the run's last observation.
import { crc32 } from 'node:zlib';
import { type Environment, openTable, type Table } from './lmdb-environment.ts';
import type { RecordBytes } from './record-bytes.ts';
import { CorruptRecordError, type LatestReport, type Window } from './store.ts';

export type ReportTables = {
  /** Format, counters, last position. */
  readonly meta: Table;
  /** Feed id → stream number. Numbers are never used again. */
  readonly numbers: Table;
  /** Stream number → feed id. */
  readonly feedIds: Table;
  readonly blocks: Table;
  readonly tail: Table;
  /** Stream number → its newest report, rendered. */
  readonly latest: Table;
  /** Stream and minute → what its prices did. */
  readonly candles: Table;
  /** First position of a batch → the keys that it stored, in order. */
  readonly appended: Table;
  readonly quarantine: Table;
};

export const openReportTables = (environment: Environment): ReportTables => ({
  meta: openTable(environment, 'meta'),
  numbers: openTable(environment, 'numbers'),
  feedIds: openTable(environment, 'feedIds'),
  blocks: openTable(environment, 'blocks'),
  tail: openTable(environment, 'tail'),
  latest: openTable(environment, 'latest'),
  candles: openTable(environment, 'candles'),
  appended: openTable(environment, 'appended'),
  quarantine: openTable(environment, 'quarantine'),
});

/** Key of a report or a block: ordered by stream, then by time. */
export const reportKey = (stream: number, observationsMs: number): Buffer => {
  const key = Buffer.allocUnsafe(10);
  key.writeUInt32BE(stream, 0);
  key.writeUIntBE(Math.max(0, observationsMs), 4, 6);
  return key;
};

export const streamOfKey = (key: Buffer): number => key.readUInt32BE(0);
export const observationsOfKey = (key: Buffer): number => key.readUIntBE(4, 6);

/** The keys of a stream from a moment on; the end is exclusive. */
export const keysFrom = (stream: number, observationsMs: number) => ({
  start: reportKey(stream, observationsMs),
  end: reportKey(stream + 1, 0),
});

/** The keys of a stream before a moment, latest first. */
export const keysBefore = (stream: number, observationsMs: number) => ({
  start: reportKey(stream, observationsMs - 1),
  end: reportKey(stream, 0),
  reverse: true,
});

export const streamKey = (stream: number): Buffer => {
  const key = Buffer.allocUnsafe(4);
  key.writeUInt32BE(stream);
  return key;
};

export const positionKey = (position: number): Buffer => {
  const key = Buffer.allocUnsafe(8);
  key.writeBigUInt64BE(BigInt(position));
  return key;
};

export const positionOfKey = (key: Buffer): number => Number(key.readBigUInt64BE());

const tagCharacters = 32;
const latestHeadBytes = 16 + tagCharacters;

/** A stream's newest report: checksum of the rest, window, tag, rendered JSON. */
export const encodeLatest = (
  stream: number,
  { validFromMs, observationsMs }: Window,
  tag: string,
  json: string,
): Buffer => {
  const value = Buffer.allocUnsafe(latestHeadBytes + json.length);
  value.writeUIntBE(validFromMs, 4, 6);
  value.writeUIntBE(observationsMs, 10, 6);
  value.write(tag, 16, 'latin1');
  value.write(json, latestHeadBytes, 'latin1');
  value.writeUInt32BE(crc32(value.subarray(4), stream), 0);
  return value;
};

export const decodeLatest = (stream: number, value: RecordBytes): LatestReport => {
  if (value.length < latestHeadBytes || crc32(value.subarray(4, value.length), stream) !== value.readUInt32BE(0)) {
    throw new CorruptRecordError(`the newest report of stream ${stream} does not match its checksum`);
  }
  return {
    validFromMs: value.readUIntBE(4, 6),
    observationsMs: value.readUIntBE(10, 6),
    tag: value.toString('latin1', 16, latestHeadBytes),
    json: value.toString('latin1', latestHeadBytes, value.length),
  };
};

const appendedEntryBytes = 10;

/** The keys that one batch stored, after their checksum. */
export const encodeAppended = (keys: readonly Buffer[]): Buffer => {
  const entries = Buffer.concat(keys);
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32BE(crc32(entries));
  return Buffer.concat([head, entries]);
};

export const decodeAppended = (value: Buffer): readonly Buffer[] => {
  const entries = value.subarray(4);
  if (value.length < 4 || crc32(entries) !== value.readUInt32BE(0))
    throw new CorruptRecordError('a batch of appended keys does not match its checksum');
  return Array.from({ length: entries.length / appendedEntryBytes }, (_, i) =>
    entries.subarray(i * appendedEntryBytes, (i + 1) * appendedEntryBytes),
  );
};
