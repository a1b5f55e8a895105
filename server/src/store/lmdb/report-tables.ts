// The tables and keys of the reports environment. Per stream: closed runs in `blocks`, then short ones in `tail`, every report of which is
// observed after every block. Both hold runs of one form, keyed by stream number and the run's last observation.
import { crc32 } from 'node:zlib';
import { CorruptRecordError } from '../store.ts';
import { type Environment, openTable, type Table } from './environment.ts';
import { fenceTable } from './write/fence.ts';

export type ReportTables = {
  /** Format, identity, counters, last position. */
  readonly meta: Table;
  /** Feed id → stream number. Numbers are never used again. */
  readonly numbers: Table;
  /** Stream number → feed id. */
  readonly feedIds: Table;
  readonly blocks: Table;
  readonly tail: Table;
  /** Stream and minute → what its prices did. */
  readonly candles: Table;
  /** The same by hour and by day. Absent in a store that no writer of this format opened. */
  readonly hourCandles: Table | undefined;
  readonly dayCandles: Table | undefined;
  /** First position of a batch → the keys that it stored, in order. */
  readonly appended: Table;
  readonly quarantine: Table;
  /** Runs that were found damaged and taken out of `blocks` or `tail`, by their keys. Absent in a store that no writer of this format opened. */
  readonly damaged: Table | undefined;
  /** Who may write (write/fence.ts). Absent like `damaged`. */
  readonly writer: Table | undefined;
};

export const openReportTables = (environment: Environment): ReportTables => ({
  meta: openTable(environment, 'meta'),
  numbers: openTable(environment, 'numbers'),
  feedIds: openTable(environment, 'feedIds'),
  blocks: openTable(environment, 'blocks'),
  tail: openTable(environment, 'tail'),
  candles: openTable(environment, 'candles'),
  hourCandles: openTable(environment, 'hourCandles'),
  dayCandles: openTable(environment, 'dayCandles'),
  appended: openTable(environment, 'appended'),
  quarantine: openTable(environment, 'quarantine'),
  damaged: openTable(environment, 'damaged'),
  writer: openTable(environment, fenceTable),
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

const appendedEntryBytes = 10;

// The position seeds the checksum, so that a batch under another key is found out.
const seedOf = (key: Buffer): number => crc32(key);

/** The keys that one batch stored, after their checksum. `key` is that of its first position. */
export const encodeAppended = (key: Buffer, keys: readonly Buffer[]): Buffer => {
  const entries = Buffer.concat(keys);
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32BE(crc32(entries, seedOf(key)));
  return Buffer.concat([head, entries]);
};

/** The keys of a batch, one after the other. Batches of releases whose checksums did not cover the key are accepted. */
export const openAppended = (
  key: Buffer,
  value: Buffer,
): { readonly count: number; readonly at: (i: number) => Buffer } => {
  const entries = value.subarray(4);
  const isWhole = value.length >= 4 && entries.length % appendedEntryBytes === 0;
  if (!isWhole || ![seedOf(key), 0].some((seed) => crc32(entries, seed) === value.readUInt32BE(0)))
    throw new CorruptRecordError(`the batch appended at ${positionOfKey(key)} does not match its checksum`);
  return {
    count: entries.length / appendedEntryBytes,
    at: (i) => entries.subarray(i * appendedEntryBytes, (i + 1) * appendedEntryBytes),
  };
};

/** Undoes `encodeAppended`. */
export const decodeAppended = (key: Buffer, value: Buffer): readonly Buffer[] => {
  const { count, at } = openAppended(key, value);
  return Array.from({ length: count }, (_, i) => at(i));
};
