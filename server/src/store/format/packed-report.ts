// The stored form of a full report: its 32-byte words without their padding, and nothing at all for a word that
// equals the same word of a base report (feed id, digest, offsets: most of a report repeats within its stream).
// Lossless for any bytes; 736 bytes of a two-signature report take about 210 with a base, 330.
import { CorruptRecordError } from '../store.ts';

/** Bytes that hold a packed report among others. */
type PackedBytes = { readonly [index: number]: number; readonly subarray: (start: number, end: number) => Uint8Array };

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

/** A full report as its bytes, and as the hex digits of them that it is sent in. */
export type Unpacked = { readonly bytes: Buffer; readonly digits: Buffer };

/** Undoes `packReport`. Bytes that cannot be a packed report are a `CorruptRecordError`. */
export const unpackReport = (packed: Uint8Array, base?: Uint8Array): Buffer =>
  Buffer.from(unpackShared(packed, 0, packed.length, base && withDigits(base)).bytes);

const withDigits = (bytes: Uint8Array): Unpacked => {
  const report = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return { bytes: report, digits: Buffer.from(report.toString('hex'), 'latin1') };
};

/** A view of the room, as bytes of its own. */
export const keepUnpacked = ({ bytes, digits }: Unpacked): Unpacked => ({
  bytes: Buffer.from(bytes),
  digits: Buffer.from(digits),
});

const latin1 = (text: string): ArrayBuffer => Uint8Array.from(Buffer.from(text, 'latin1')).buffer;

/** Copies bytes and writes the digits of each. V8 accesses arrays that are arguments twice as fast as others. */
const copyBytes = (
  source: PackedBytes,
  from: number,
  length: number,
  target: Uint8Array,
  pairs: Uint16Array,
  to: number,
  pairOf: Uint16Array,
): void => {
  for (let i = 0; i < length; i++) {
    const byte = source[from + i] as number; // inside the record
    target[to + i] = byte;
    pairs[to + i] = pairOf[byte] as number; // one for each byte
  }
};

const fillEights = (eights: Float64Array, from: number, count: number, value: number): void => {
  for (let i = 0; i < count; i++) eights[from + i] = value;
};

/** Gives so much of a room; most reports of a stream have the same length, and a new view costs as much as a checksum. */
const createViews = (room: Buffer, roomDigits: Buffer) => {
  let view: Unpacked = { bytes: room, digits: roomDigits };
  return (length: number): Unpacked => {
    if (view.bytes.length !== length)
      view = { bytes: room.subarray(0, length), digits: roomDigits.subarray(0, 2 * length) };
    return view;
  };
};

/** What stands in a word of the room: the base's word, or one that was written under a header. */
const fromBase = 255;

/**
 * Makes room that reports are unpacked into, one after the other. Bytes and digits are written at once, and only where a word is neither the
 * base's nor padding that the report before left there: of 736 bytes that is 184.
 */
const createUnpacker = () => {
  const room = Buffer.from(new ArrayBuffer(wordsMax * wordBytes));
  const roomDigits = Buffer.from(new ArrayBuffer(2 * room.length));
  const pairs = new Uint16Array(roomDigits.buffer);
  const eights = new Float64Array(room.buffer);
  const digitEights = new Float64Array(roomDigits.buffer);
  /** The two digits of each byte, and eight of nothing, as they lie in memory. */
  const pairOf = new Uint16Array(latin1(Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('hex')));
  const zeroDigits = new Float64Array(latin1('00000000'))[0] as number; // made with one
  const viewOf = createViews(room, roomDigits);
  /** The base whose words stand in the room, and the header of each word that does not. Without a base none does, and headers of one report hold for the next. */
  let standing: Unpacked | undefined;
  const headers = new Uint8Array(wordsMax).fill(fromBase);

  const unpackWord = (bytes: PackedBytes, at: number, limit: number, word: number): number => {
    const header = at < limit ? (bytes[at] as number) : 255; // inside the record
    if (header > leftAligned + wordBytes) throw new CorruptRecordError('a packed report is cut short');
    const left = header > leftAligned;
    const length = left ? header - leftAligned : header;
    const from = at + 1;
    if (from + length > limit) throw new CorruptRecordError('a packed report is cut short');
    const start = word * wordBytes;
    if (length < wordBytes && headers[word] !== header) {
      fillEights(eights, start >> 3, wordBytes >> 3, 0);
      fillEights(digitEights, start >> 2, wordBytes >> 2, zeroDigits);
    }
    headers[word] = header;
    const to = left ? start : start + wordBytes - length;
    copyBytes(bytes, from, length, room, pairs, to, pairOf);
    return from + length;
  };

  const restoreWord = (base: Unpacked, word: number): void => {
    const start = word * wordBytes;
    base.bytes.copy(room, start, start, start + wordBytes);
    base.digits.copy(roomDigits, 2 * start, 2 * start, 2 * (start + wordBytes));
    headers[word] = fromBase;
  };

  const restoreAll = (base: Unpacked | undefined): void => {
    headers.fill(fromBase);
    standing = base;
    if (base === undefined) return;
    room.set(base.bytes.length > room.length ? base.bytes.subarray(0, room.length) : base.bytes);
    roomDigits.set(base.digits.length > roomDigits.length ? base.digits.subarray(0, roomDigits.length) : base.digits);
  };

  return (bytes: PackedBytes, from: number, end: number, base?: Unpacked): Unpacked => {
    if (from >= end) throw new CorruptRecordError('a packed report is empty');
    const words = bytes[from] as number; // before the end
    if (words === rawMarker) return withDigits(bytes.subarray(from + 1, end));
    if (base !== standing) restoreAll(base);
    let at = from + 1 + ((words + 7) >> 3);
    for (let word = 0; word < words; word++) {
      const same = (bytes[from + 1 + (word >> 3)] as number) & (1 << (word & 7)); // a short mask fails below, by its words
      if (same === 0) at = unpackWord(bytes, at, end, word);
      else if (base === undefined || (word + 1) * wordBytes > base.bytes.length) {
        throw new CorruptRecordError('a packed report leans on a word that its base lacks');
      } else if (headers[word] !== fromBase) restoreWord(base, word);
    }
    if (at !== end) throw new CorruptRecordError('a packed report has bytes left over');
    return viewOf(words * wordBytes);
  };
};

/** As `unpackReport`, of a part of some bytes, in memory that is used again by the next call. */
export const unpackShared = createUnpacker();

/** Length of the full report behind a packed one, without unpacking it. */
export const unpackedBytes = (bytes: PackedBytes, from: number, end: number): number => {
  const words = from < end ? (bytes[from] as number) : rawMarker; // before the end
  return words === rawMarker ? Math.max(0, end - from - 1) : words * wordBytes;
};
