// The stored form of a run, consecutive reports of one stream: an index, then the reports one after the other, as they came. The engine compresses it (D281).
// The checksum of the index covers the key, so that a run under another key does not open; the index has the checksum of each report.
import { crc32 } from 'node:zlib';
import { CorruptRecordError, type Window } from '../store.ts';

/** A report within its stream, so without the feed ID. */
export type ReportInRun = Window & {
  readonly fullReport: Uint8Array;
  /** As stored, where the report is moved from another run: what is damaged stays so. */
  readonly checksum?: number;
};

/** Reports in a full run: by measurement (D281). */
export const runReports = 32;

const headBytes = 6; // checksum of the rest of the index, then the count
const entryBytes = 20; // validFromMs 6, observationsMs 6, checksum 4, end 4: where the report ends among the reports
const countMax = 0xffff;

/** Encodes reports, which must ascend; at least one. */
export function encodeRun(key: Uint8Array, reports: readonly ReportInRun[]): Buffer {
  if (reports.length === 0 || reports.length > countMax) throw new Error(`A run of ${reports.length} reports`);
  const indexBytes = headBytes + reports.length * entryBytes;
  const value = Buffer.allocUnsafe(reports.reduce((sum, { fullReport }) => sum + fullReport.length, indexBytes));
  value.writeUInt16BE(reports.length, 4);
  let end = 0;
  for (const [i, { validFromMs, observationsMs, fullReport, checksum }] of reports.entries()) {
    const at = headBytes + i * entryBytes;
    value.set(fullReport, indexBytes + end);
    end += fullReport.length;
    value.writeUIntBE(validFromMs, at, 6);
    value.writeUIntBE(observationsMs, at + 6, 6);
    value.writeUInt32BE(checksum ?? crc32(fullReport), at + 12);
    value.writeUInt32BE(end, at + 16);
  }
  value.writeUInt32BE(crc32(value.subarray(4, indexBytes), crc32(key)), 0);
  return value;
}

/** A run opened for reading. The index is checked at once, a report when it is read. */
export type StoredRun = {
  readonly count: number;
  readonly window: (i: number) => Window;
  /** The first index observed at or after a moment; `count` when there is none. */
  readonly firstAtOrAfter: (observationsMs: number) => number;
  /** A full report, as a part of the run's bytes; one that is not what was written is a `CorruptRecordError`. */
  readonly fullReport: (i: number) => Buffer;
  /** All reports as they are stored, unchecked, for another run. */
  readonly stored: () => readonly ReportInRun[];
  /** Sum of the lengths of all full reports. */
  readonly reportBytes: number;
};

/** Opens a run; one whose index is not what was written under this key is a `CorruptRecordError`. */
export function openRun(key: Uint8Array, value: Buffer): StoredRun {
  const count = value.length < headBytes ? 0 : value.readUInt16BE(4);
  const indexBytes = headBytes + count * entryBytes;
  if (count === 0 || indexBytes > value.length) throw new CorruptRecordError('the index of a run is cut short');
  if (crc32(value.subarray(4, indexBytes), crc32(key)) !== value.readUInt32BE(0))
    throw new CorruptRecordError('the index of a run does not match its checksum');
  const observationsAt = (i: number): number => value.readUIntBE(headBytes + i * entryBytes + 6, 6);
  const window = (i: number): Window => ({
    validFromMs: value.readUIntBE(headBytes + i * entryBytes, 6),
    observationsMs: observationsAt(i),
  });
  const endOf = (i: number): number => (i < 0 ? 0 : value.readUInt32BE(headBytes + i * entryBytes + 16));
  const checksumOf = (i: number): number => value.readUInt32BE(headBytes + i * entryBytes + 12);
  if (value.length !== indexBytes + endOf(count - 1)) throw new CorruptRecordError('a run has a damaged length');
  const bytesOf = (i: number): Buffer => value.subarray(indexBytes + endOf(i - 1), indexBytes + endOf(i));
  return {
    count,
    window,
    firstAtOrAfter: (ms) => searchFirst(count, (i) => observationsAt(i) >= ms),
    fullReport: (i) => {
      const bytes = bytesOf(i);
      if (crc32(bytes) !== checksumOf(i))
        throw new CorruptRecordError(`the report observed at ${observationsAt(i)} ms does not match its checksum`);
      return bytes;
    },
    stored: () =>
      Array.from({ length: count }, (_, i) => ({ ...window(i), fullReport: bytesOf(i), checksum: checksumOf(i) })),
    reportBytes: endOf(count - 1),
  };
}

/** The first of ascending items that holds; their number when none does. */
export function searchFirst(count: number, holds: (i: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
