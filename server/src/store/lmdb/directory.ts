// Maps streams to numbers in LMDB. Both directions are stored, each row with a checksum that covers its key, so that one can be restored from the other
// (D121). The small tables are read whole, so a damaged key hides no other row.
import { crc32 } from 'node:zlib';
import type { FeedId } from '@sealpost/protocol';
import type { DamageLog } from '../damage.ts';
import { CorruptRecordError } from '../store.ts';
import { type ReportTables, streamKey } from './report-tables.ts';

export type Directory = {
  readonly numberOf: (feedId: FeedId) => number | undefined;
  readonly feedIdOf: (stream: number) => FeedId | undefined;
  /** The numbers of all streams. */
  readonly numbers: () => Iterable<number>;
};

const feedIdBytes = (feedId: FeedId): Buffer => Buffer.from(feedId.slice(2), 'hex');

const withChecksum = (key: Buffer, value: Buffer): Buffer => {
  const row = Buffer.allocUnsafe(value.length + 4);
  value.copy(row);
  row.writeUInt32BE(crc32(value, crc32(key)), value.length);
  return row;
};

/** Writes both rows of a stream. */
export function putStream({ numbers, feedIds }: ReportTables, feedId: FeedId, stream: number): void {
  const [id, number] = [feedIdBytes(feedId), streamKey(stream)];
  numbers.put(id, withChecksum(id, number));
  feedIds.put(number, withChecksum(number, id));
}

type Row = { readonly feedId: FeedId; readonly stream: number };

const readRow = (key: Buffer, value: Buffer, keyBytes: number, valueBytes: number): Row | undefined => {
  const [id, number] = keyBytes === 32 ? [key, value.subarray(0, 4)] : [value.subarray(0, 32), key];
  if (key.length !== keyBytes || value.length !== valueBytes + 4) return undefined;
  if (crc32(value.subarray(0, valueBytes), crc32(key)) !== value.readUInt32BE(valueBytes)) return undefined;
  return { feedId: `0x${id.toString('hex')}` as FeedId, stream: number.readUInt32BE() }; // 32 bytes
};

/** Throws unless a row of either table is what was written. */
export function checkStreamRow(key: Buffer, value: Buffer): void {
  const isRow = key.length === 32 ? readRow(key, value, 32, 4) : readRow(key, value, 4, 32);
  if (isRow === undefined) throw new CorruptRecordError('a row of the stream numbers does not match its checksum');
}

type Streams = {
  readonly byFeedId: ReadonlyMap<FeedId, number>;
  readonly byNumber: ReadonlyMap<number, FeedId>;
  /** Are both tables complete and the same? */
  readonly isWhole: boolean;
  /** Rows that match their checksums and are in one table only, where no row is damaged that could be the other half. */
  readonly single: readonly Row[];
};

/** Reads both tables. A row that is damaged is noted; one that is in one table only counts. */
export function loadStreams({ numbers, feedIds }: ReportTables, damage: DamageLog): Streams {
  const pairs = new Map<string, { readonly row: Row; times: number }>();
  let isWhole = true;
  let isReadable = true;
  for (const [table, name, keyBytes, valueBytes] of [
    [numbers, 'numbers', 32, 4],
    [feedIds, 'feedIds', 4, 32],
  ] as const) {
    for (const { key, value } of table.getRange()) {
      const row = readRow(key, value, keyBytes, valueBytes);
      if (row === undefined) {
        damage.note({ table: name, key: key.toString('hex'), reason: `a row of ${name} does not match its checksum` });
        isWhole = false;
        isReadable = false;
        continue;
      }
      const pair = `${row.feedId} ${row.stream}`;
      pairs.set(pair, { row, times: (pairs.get(pair)?.times ?? 0) + 1 });
    }
  }
  const byFeedId = new Map<FeedId, number>();
  const byNumber = new Map<number, FeedId>();
  for (const { row, times } of pairs.values()) {
    if (times !== 2) isWhole = false;
    byFeedId.set(row.feedId, row.stream);
    byNumber.set(row.stream, row.feedId);
  }
  const single = [...pairs.values()].flatMap(({ row, times }) => (isReadable && times === 1 ? [row] : []));
  return { byFeedId, byNumber, isWhole, single };
}

/** Rewrites both tables if one is corrupt. Inside a transaction. */
export function repairStreams(tables: ReportTables, damage: DamageLog): void {
  const { byFeedId, isWhole } = loadStreams(tables, damage);
  if (isWhole) return;
  tables.numbers.clearSync();
  tables.feedIds.clearSync();
  for (const [feedId, stream] of byFeedId) putStream(tables, feedId, stream);
}

/** A directory that is read again when a stream was added. The caller begins snapshots. */
export function createDirectory(tables: ReportTables, damage: DamageLog): Directory {
  let known: Streams | undefined;
  let rows = -1;
  const rowCount = (): number =>
    (tables.feedIds.getStats() as { entryCount: number }).entryCount + // lmdb types it as {}
    (tables.numbers.getStats() as { entryCount: number }).entryCount; // as lmdb documents
  const current = (): Streams => {
    known ??= loadStreams(tables, damage);
    return known;
  };
  const refresh = (): Streams => {
    const now = rowCount();
    if (now !== rows) known = undefined;
    rows = now;
    return current();
  };
  return {
    numberOf: (feedId) => known?.byFeedId.get(feedId) ?? refresh().byFeedId.get(feedId),
    feedIdOf: (stream) => known?.byNumber.get(stream) ?? refresh().byNumber.get(stream),
    numbers: () => refresh().byNumber.keys(),
  };
}
