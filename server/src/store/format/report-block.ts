// The stored form of a run of reports of one stream: an index of windows, then each report packed against the first.
// One block per 64 reports or so instead of one key each: less than half the disk, and a page reads two records instead of 100 (D50).
import { crc32 } from 'node:zlib';
import type { CopyBytes } from '../../runtime/reading.ts';
import { CorruptRecordError, type Window } from '../store.ts';
import { keepUnpacked, packReport, type Unpacked, unpackedBytes, unpackShared } from './packed-report.ts';
import type { RecordBytes } from './record-bytes.ts';

/** A report within its stream, so without the feed ID. */
export type BlockReport = Window & { readonly fullReport: Uint8Array };

/** Reports in a run, where its length is not chosen by what it takes on disk. */
export const blockReports = 64;

/** Reports in a run whose length is. */
export const fittedReports = { min: 48, max: 96 } as const;

const headBytes = 6; // checksum of the rest of the index, then the count
const entryBytes = 18; // validFromMs 6, observationsMs 6, checksum 4, packed length 2

/**
 * Checksum of a report under its key, so that bytes that stand under a wrong key are found out as well: the key seeds the CRC,
 * which for the same bytes differs whenever its seed does.
 */
export const reportChecksum = (
  stream: number,
  { validFromMs, observationsMs }: Window,
  fullReport: Uint8Array,
): number => crc32(fullReport, mix(mix(mix(stream, validFromMs), observationsMs), observationsMs / 2 ** 32));

const mix = (seed: number, value: number): number =>
  (Math.imul(seed ^ (value >>> 0), 0x9e3779b1) + value / 2 ** 32) >>> 0;

/** Encodes reports, which must ascend; at least one. */
export const encodeBlock = (stream: number, reports: readonly BlockReport[]): Buffer => {
  const base = reports[0]?.fullReport;
  const packed = reports.map(({ fullReport }, i) => packReport(fullReport, i === 0 ? undefined : base));
  return assemble(stream, reports, packed);
};

/**
 * Encodes the first of ascending reports: of the lengths in `fittedReports` the one that takes the least disk per report, where `diskBytes` says what a
 * record of so many bytes takes. There must be as many reports as the shortest has.
 */
export const encodeFittingBlock = (
  stream: number,
  reports: readonly BlockReport[],
  diskBytes: (bytes: number) => number,
): { readonly count: number; readonly bytes: Buffer } => {
  const base = reports[0]?.fullReport;
  const packed: Buffer[] = [];
  let bytes = headBytes;
  let best = { count: 0, bytesEach: Number.POSITIVE_INFINITY };
  for (const { fullReport } of reports.slice(0, fittedReports.max)) {
    const one = packReport(fullReport, packed.length === 0 ? undefined : base);
    packed.push(one);
    bytes += entryBytes + one.length;
    const count = packed.length;
    if (count < fittedReports.min) continue;
    const bytesEach = diskBytes(bytes) / count;
    if (bytesEach < best.bytesEach) best = { count, bytesEach };
    // One more of this size would not fit: the next such length is a page away.
    else if (best.count >= blockReports) break;
  }
  const chosen = reports.slice(0, best.count);
  return { count: best.count, bytes: assemble(stream, chosen, packed.slice(0, best.count)) };
};

const assemble = (stream: number, reports: readonly BlockReport[], packed: readonly Buffer[]): Buffer => {
  const index = Buffer.allocUnsafe(headBytes + reports.length * entryBytes);
  index.writeUInt16BE(reports.length, 4);
  for (const [i, { validFromMs, observationsMs, fullReport }] of reports.entries()) {
    const at = headBytes + i * entryBytes;
    index.writeUIntBE(validFromMs, at, 6);
    index.writeUIntBE(observationsMs, at + 6, 6);
    index.writeUInt32BE(reportChecksum(stream, { validFromMs, observationsMs }, fullReport), at + 12);
    index.writeUInt16BE((packed[i] as Buffer).length, at + 16); // one each
  }
  index.writeUInt32BE(crc32(index.subarray(4), stream), 0);
  return Buffer.concat([index, ...packed]);
};

/** What a block's index tells. */
export type BlockIndex = {
  readonly count: number;
  readonly window: (i: number) => Window;
  /** From the end of the report before to the beginning of this one, which is not the first. */
  readonly gapMs: (i: number) => number;
  /** The first index observed at or after a moment; `count` when there is none. */
  readonly firstAtOrAfter: (observationsMs: number) => number;
};

/** A block opened for reading. The index is checked at once, a report when it is read. */
export type Block = BlockIndex & {
  readonly report: (i: number, copy?: CopyBytes) => BlockReport;
  /** The length of a full report, without unpacking it. */
  readonly fullReportBytes: (i: number) => number;
  /** A full report as `report` gives it, of that window, in memory that is used again by the next call for any block. */
  readonly readShared: (i: number, window: Window) => Unpacked;
  /** Sum of the lengths of all full reports, without unpacking them. */
  readonly reportBytes: () => number;
};

/** A copy of an intact block's index, without its reports. */
export const copyBlockIndex = (bytes: RecordBytes): BlockIndex =>
  openIndex(Buffer.from(bytes.subarray(0, blockIndexBytes(bytes))));

/** Opens a block; one whose index is not what was written is a `CorruptRecordError`. */
export const openBlock = (stream: number, bytes: RecordBytes): Block => {
  const count = bytes.length < headBytes ? 0 : bytes.readUInt16BE(4);
  const indexEnd = headBytes + count * entryBytes;
  if (count === 0 || indexEnd > bytes.length || crc32(bytes.subarray(4, indexEnd), stream) !== bytes.readUInt32BE(0)) {
    throw new CorruptRecordError(`the index of a block of stream ${stream} does not match its checksum`);
  }
  const index = openIndex(bytes);
  const { window } = index;
  const startOf = createStarts(bytes, count, indexEnd);
  const fullReportBytes = (i: number) => unpackedBytes(bytes, startOf(i), startOf(i + 1));
  let base: Unpacked | undefined;
  const baseOf = (i: number): Unpacked | undefined => {
    if (i === 0) return undefined;
    base ??= keepUnpacked(unpackShared(bytes, startOf(0), startOf(1)));
    return base;
  };
  const readShared = (i: number, range: Window): Unpacked => {
    const unpacked = unpackShared(bytes, startOf(i), startOf(i + 1), baseOf(i));
    checkReport(stream, range, unpacked.bytes, bytes.readUInt32BE(headBytes + i * entryBytes + 12));
    return unpacked;
  };
  const report = (i: number, copy: CopyBytes = Buffer.from): BlockReport => {
    const range = window(i);
    const { validFromMs, observationsMs } = range;
    return { validFromMs, observationsMs, fullReport: copy(readShared(i, range).bytes) };
  };
  const reportBytes = () =>
    Array.from({ length: count }, (_, i) => fullReportBytes(i)).reduce((sum, length) => sum + length, 0);
  // Not spread: Node 20 keeps such objects until the whole heap is collected (D234).
  const { gapMs, firstAtOrAfter } = index;
  return { count, window, gapMs, firstAtOrAfter, report, readShared, fullReportBytes, reportBytes };
};

const openIndex = (bytes: RecordBytes): BlockIndex => {
  const count = bytes.readUInt16BE(4);
  const observationsAt = (i: number) => readMs(bytes, headBytes + i * entryBytes + 6);
  const validFromAt = (i: number) => readMs(bytes, headBytes + i * entryBytes);
  return {
    count,
    window: (i) => ({ validFromMs: validFromAt(i), observationsMs: observationsAt(i) }),
    gapMs: (i) => validFromAt(i) - observationsAt(i - 1),
    firstAtOrAfter: (ms) => searchFirst(count, (i) => observationsAt(i) >= ms),
  };
};

/** Six bytes; without the checks of `readUIntBE` it takes half of its time. */
const readMs = (bytes: RecordBytes, at: number): number => {
  const high = ((bytes[at] as number) << 8) | (bytes[at + 1] as number); // inside the index
  const middle = ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number); // inside the index
  const low = ((bytes[at + 4] as number) << 8) | (bytes[at + 5] as number); // inside the index
  return high * 2 ** 32 + middle * 2 ** 16 + low;
};

/** Bytes of a block's index, as its count says. */
export const blockIndexBytes = (bytes: RecordBytes): number =>
  bytes.length < headBytes ? 0 : headBytes + bytes.readUInt16BE(4) * entryBytes;

/** Where a report of a block with an intact index lies. */
export const reportByteRange = (bytes: RecordBytes, i: number): readonly [from: number, to: number] => {
  const startOf = createStarts(bytes, bytes.readUInt16BE(4), blockIndexBytes(bytes));
  return [startOf(i), startOf(i + 1)];
};

/** Where an index has the number of its reports and their lengths, in two bytes each. */
export const lengthPlaces = (bytes: RecordBytes): readonly number[] => {
  const entries = Math.floor((Math.min(bytes.length, blockIndexBytes(bytes)) - headBytes) / entryBytes);
  return [4, ...Array.from({ length: Math.max(0, entries) }, (_, i) => headBytes + i * entryBytes + 16)];
};

/** What a block seems to hold whose index does not match its checksum: nothing unless its lengths add up to its own. */
export const claimedContents = (bytes: Buffer): { readonly reports: number; readonly reportBytes: number } => {
  const count = bytes.length < headBytes ? 0 : bytes.readUInt16BE(4);
  const indexEnd = headBytes + count * entryBytes;
  if (indexEnd > bytes.length) return { reports: 0, reportBytes: 0 };
  const startOf = createStarts(bytes, count, indexEnd);
  const lengths = Array.from({ length: count }, (_, i) => bytes.readUInt16BE(headBytes + i * entryBytes + 16));
  if (indexEnd + lengths.reduce((sum, length) => sum + length, 0) !== bytes.length)
    return { reports: 0, reportBytes: 0 };
  const reportBytes = lengths.reduce((sum, _, i) => sum + unpackedBytes(bytes, startOf(i), startOf(i + 1)), 0);
  return { reports: count, reportBytes };
};

// Lengths are summed once per block, on the first report that is read. The last is cut at the end of the bytes, which its words then miss.
const createStarts = (bytes: RecordBytes, count: number, indexEnd: number): ((i: number) => number) => {
  let starts: number[] | undefined;
  const sum = (): number[] => {
    const ends = [indexEnd];
    for (let i = 0; i < count; i++)
      ends.push(
        Math.min(bytes.length, (ends[i] as number) + bytes.readUInt16BE(headBytes + i * entryBytes + 16)), // one each
      );
    return ends;
  };
  return (i) => {
    starts ??= sum();
    return starts[i] as number; // one more than reports
  };
};

/** Throws unless the bytes are those that were written under this key. */
const checkReport = (stream: number, window: Window, fullReport: Uint8Array, checksum: number): void => {
  if (reportChecksum(stream, window, fullReport) === checksum) return;
  throw new CorruptRecordError(
    `the report of stream ${stream} observed at ${window.observationsMs} ms does not match its checksum`,
  );
};

const searchFirst = (count: number, holds: (i: number) => boolean): number => {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
};
