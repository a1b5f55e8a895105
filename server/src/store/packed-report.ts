// Owns the stored form of a full report: its 32-byte words without their padding, and nothing at all for a word that
// equals the same word of a base report (feed id, digest, offsets: most of a report repeats within its stream).
// Lossless for any bytes; 736 bytes of a two-signature report take about 210 with a base, 330 without (D50).
import { CorruptRecordError } from './store.ts';

const wordBytes = 32;
const wordsMax = 255;
/** First byte of a record that is stored as it came: no whole number of words, or too many of them. */
const rawMarker = 0;
/** Word headers up to 32 count bytes of a right-aligned word, those above count bytes of a left-aligned one. */
const leftAligned = 32;

/** Packs a full report; with a base, the same base is needed to unpack. */
export const packReport = (report: Uint8Array, base?: Uint8Array): Buffer => {
  const words = report.length / wordBytes;
  if (!Number.isInteger(words) || words === 0 || words > wordsMax)
    return Buffer.concat([Uint8Array.of(rawMarker), report]);
  const maskBytes = Math.ceil(words / 8);
  const packed = Buffer.allocUnsafe(1 + maskBytes + report.length + words);
  packed[0] = words;
  packed.fill(0, 1, 1 + maskBytes);
  let end = 1 + maskBytes;
  for (let word = 0; word < words; word++) {
    const start = word * wordBytes;
    if (base !== undefined && equalWord(report, base, start)) {
      const at = 1 + (word >> 3);
      packed[at] = (packed[at] as number) | (1 << (word & 7)); // the mask was just filled
    } else {
      end = packWord(report, start, packed, end);
    }
  }
  return packed.subarray(0, end);
};

const equalWord = (a: Uint8Array, b: Uint8Array, start: number): boolean => {
  if (start + wordBytes > b.length) return false;
  for (let i = start; i < start + wordBytes; i++) if (a[i] !== b[i]) return false;
  return true;
};

const packWord = (report: Uint8Array, start: number, packed: Buffer, at: number): number => {
  let first = start;
  let last = start + wordBytes;
  while (first < last && report[first] === 0) first++;
  while (last > first && report[last - 1] === 0) last--;
  const leading = first - start;
  const trailing = start + wordBytes - last;
  const left = trailing > leading;
  const from = left ? start : first;
  const length = left ? last - start : start + wordBytes - first;
  packed[at] = left ? leftAligned + length : length;
  for (let i = 0; i < length; i++) packed[at + 1 + i] = report[from + i] as number; // inside the word
  return at + 1 + length;
};

/** Undoes `packReport`. Bytes that cannot be a packed report are a `CorruptRecordError`. */
export const unpackReport = (packed: Uint8Array, base?: Uint8Array): Buffer => {
  const report = Buffer.allocUnsafe(unpackedBytes(packed, 0, packed.length));
  unpackInto(report, packed, 0, packed.length, base);
  return report;
};

/** As `unpackReport`, of a part of some bytes, into a buffer that has room for `unpackedBytes`. */
export const unpackInto = (
  report: Uint8Array,
  bytes: Uint8Array,
  from: number,
  end: number,
  base?: Uint8Array,
): void => {
  if (from >= end) throw new CorruptRecordError('a packed report is empty');
  const words = bytes[from] as number; // before the end
  if (words === rawMarker) {
    report.set(bytes.subarray(from + 1, end));
    return;
  }
  const length = words * wordBytes;
  // Most words are the base's: all of them are copied at once, and the others written over.
  if (base !== undefined) report.set(base.length > length ? base.subarray(0, length) : base);
  let at = from + 1 + ((words + 7) >> 3);
  for (let word = 0; word < words; word++) {
    const start = word * wordBytes;
    const same = (bytes[from + 1 + (word >> 3)] as number) & (1 << (word & 7)); // a short mask fails below, by its words
    if (same === 0) at = unpackWord(bytes, at, end, report, start);
    else if (base === undefined || start + wordBytes > base.length) {
      throw new CorruptRecordError('a packed report leans on a word that its base lacks');
    }
  }
  if (at !== end) throw new CorruptRecordError('a packed report has bytes left over');
};

const unpackWord = (bytes: Uint8Array, at: number, limit: number, report: Uint8Array, start: number): number => {
  const header = at < limit ? (bytes[at] as number) : 255; // inside the record
  if (header > leftAligned + wordBytes) throw new CorruptRecordError('a packed report is cut short');
  const left = header > leftAligned;
  const length = left ? header - leftAligned : header;
  const from = at + 1;
  const end = start + wordBytes;
  if (from + length > limit) throw new CorruptRecordError('a packed report is cut short');
  const to = left ? start : end - length;
  for (let i = start; i < to; i++) report[i] = 0;
  for (let i = 0; i < length; i++) report[to + i] = bytes[from + i] as number; // inside the record
  for (let i = to + length; i < end; i++) report[i] = 0;
  return from + length;
};

/** Length of the full report behind a packed one, without unpacking it. */
export const unpackedBytes = (bytes: Uint8Array, from: number, end: number): number => {
  const words = from < end ? (bytes[from] as number) : rawMarker; // before the end
  return words === rawMarker ? Math.max(0, end - from - 1) : words * wordBytes;
};
