import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { CorruptRecordError } from '../store.ts';
import {
  type BlockReport,
  blockIndexBytes,
  blockReports,
  claimedContents,
  copyBlockIndex,
  encodeBlock,
  encodeFittingBlock,
  fittedReports,
  lengthPlaces,
  openBlock,
  reportByteRange,
  reportChecksum,
} from './report-block.ts';

const { report } = await createSignedReports();
const t0 = 1_763_200_000;
const reports: BlockReport[] = Array.from({ length: 64 }, (_, i) =>
  report(secondStream(1), t0 + i * 2, t0 + i * 2, BigInt(i) * 10n ** 15n),
);
const block = encodeBlock(7, reports);

test('block: every report comes back with its window', () => {
  const opened = openBlock(7, block);
  expect(opened.count).toBe(64);
  for (const [i, { validFromMs, observationsMs, fullReport }] of reports.entries()) {
    expect(opened.report(i)).toEqual({ validFromMs, observationsMs, fullReport: Buffer.from(fullReport) });
  }
  expect(opened.reportBytes()).toBe(64 * 736);
  expect(block.length).toBeLessThan(64 * 736 * 0.4);
});

test('block: a report that is read first is packed against the first one, which it is read with', () => {
  const encoded = encodeBlock(7, reports);
  expect(encoded.length).toBeLessThan(64 * 736 * 0.4);
  const fitted = encodeFittingBlock(7, reports, (bytes) => bytes);
  expect(fitted.bytes).toEqual(encodeBlock(7, reports.slice(0, fitted.count)));
  expect(fitted.bytes.length).toBeLessThan(fitted.count * 736 * 0.4);
  const { fullReport } = openBlock(7, encoded).report(5);
  expect(fullReport).toEqual(Buffer.from((reports[5] as BlockReport).fullReport)); // there are 64
});

test('block: the first report at or after a moment', () => {
  const { firstAtOrAfter } = openBlock(7, block);
  expect([0, t0 * 1_000, t0 * 1_000 + 1, (t0 + 126) * 1_000, (t0 + 126) * 1_000 + 1].map(firstAtOrAfter)).toEqual([
    0, 0, 1, 63, 64,
  ]);
});

test('block: the time between a report and the one before it', () => {
  const { gapMs } = openBlock(
    7,
    encodeBlock(
      7,
      [0, 1, 5].map((i) => reports[i] as BlockReport),
    ),
  ); // there are 64
  expect([gapMs(1), gapMs(2)]).toEqual([2_000, 8_000]);
});

test('block: read under another stream’s number it is corrupt', () => {
  expect(() => openBlock(8, block)).toThrow(CorruptRecordError);
});

test('block: a flipped bit never yields other bytes', () => {
  for (let bit = 0; bit < block.length * 8; bit += 7) {
    const flipped = Buffer.from(block);
    flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
    for (const i of [0, 1, 63]) {
      const read = readOrCorrupt(flipped, i);
      if (read !== undefined && Buffer.compare(read, (reports[i] as BlockReport).fullReport) !== 0)
        expect.unreachable(`bit ${bit}`);
    }
  }
});

/** The bytes of a report, or nothing when the block is found to be corrupt; any other error fails the test. */
const readOrCorrupt = (bytes: Buffer, i: number): Uint8Array | undefined => {
  try {
    return openBlock(7, bytes).report(i).fullReport;
  } catch (error) {
    if (error instanceof CorruptRecordError) return undefined;
    throw error;
  }
};

test('block: cut anywhere, its last report is never read', () => {
  for (let length = 0; length < block.length; length++)
    expect(readOrCorrupt(block.subarray(0, length), 63)).toBeUndefined();
});

test('block: the checksum of a report is the CRC seeded with its key, as stored by every release', () => {
  const [from, to] = [1_763_200_000_000, 1_763_200_001_000];
  const sum = (stream: number, validFromMs: number, observationsMs: number, text: string): number =>
    reportChecksum(stream, { validFromMs, observationsMs }, Buffer.from(text));
  expect(sum(0, 0, 0, 'abc')).toBe(crc32('abc'));
  expect([sum(7, from, to, 'abc'), sum(70_000, 2 ** 48 - 2, 2 ** 48 - 1, '')]).toEqual([1_348_922_588, 65_034_782]);
  const others = [sum(8, from, to, 'abc'), sum(7, from + 2 ** 32, to, 'abc'), sum(7, from, to + 2 ** 32, 'abc')];
  expect(new Set([sum(7, from, to, 'abc'), ...others]).size).toBe(4);
});

/** Two reports of one word each. */
const [validFromMs, observationsMs] = [0x0102_0304_0506, 0x0708_090a_0b0c];
const small = ['aa', 'bb'].map((byte, i) => ({
  validFromMs: validFromMs + i,
  observationsMs: observationsMs + i,
  fullReport: Buffer.from(`${'00'.repeat(31)}${byte}`, 'hex'),
}));

test('block: its bytes are checksum, count, an entry for each report, and the packed reports', () => {
  const encoded = encodeBlock(7, small);
  const entry = (i: number): string => {
    const { fullReport, ...window } = small[i] as BlockReport; // there are two
    const sum = reportChecksum(7, window, fullReport).toString(16).padStart(8, '0');
    return `01020304050${6 + i}0708090a0b0${['c', 'd'][i]}${sum}0004`;
  };
  const rest = `0002${entry(0)}${entry(1)}`;
  const sum = crc32(Buffer.from(rest, 'hex'), 7).toString(16).padStart(8, '0');
  expect(encoded.toString('hex')).toBe(`${sum}${rest}010001aa010001bb`);
  const opened = openBlock(7, encoded);
  expect([opened.window(0), opened.window(1)]).toEqual(small.map(({ fullReport: _, ...window }) => window));
  expect([opened.fullReportBytes(1), opened.reportBytes()]).toEqual([32, 64]);
});

test('block: times of 48 bits come back', () => {
  const late = { validFromMs: 2 ** 48 - 2, observationsMs: 2 ** 48 - 1, fullReport: Buffer.alloc(32, 1) };
  expect(openBlock(7, encodeBlock(7, [late])).report(0)).toEqual(late);
});

test('block: its index and the place of each report are known without reading reports', () => {
  const encoded = encodeBlock(7, small);
  expect([blockIndexBytes(encoded), blockIndexBytes(encoded.subarray(0, 5))]).toEqual([42, 0]);
  expect([reportByteRange(encoded, 0), reportByteRange(encoded, 1)]).toEqual([
    [42, 46],
    [46, 50],
  ]);
  const index = copyBlockIndex(encoded);
  encoded.fill(0);
  expect([index.count, index.window(1)]).toEqual([
    2,
    { validFromMs: validFromMs + 1, observationsMs: observationsMs + 1 },
  ]);
  expect(index.firstAtOrAfter(observationsMs + 1)).toBe(1);
});

test('block: an index has its lengths behind its count and at the end of each entry that is there', () => {
  const encoded = encodeBlock(7, small);
  const placesIn = (bytes: number) => lengthPlaces(encoded.subarray(0, bytes));
  expect([50, 42, 41, 24, 23, 6, 5].map(placesIn)).toEqual([[4, 22, 40], [4, 22, 40], [4, 22], [4, 22], [4], [4], [4]]);
  expect([22, 40].map((at) => encoded.readUInt16BE(at))).toEqual([4, 4]);
});

test('block: the error names the stream, and the report by its time', () => {
  const encoded = encodeBlock(7, small);
  for (const bytes of [encoded.subarray(0, 5), encoded.subarray(0, 41), Buffer.alloc(6)])
    expect(() => openBlock(7, bytes)).toThrow(
      new CorruptRecordError('the index of a block of stream 7 does not match its checksum'),
    );
  encoded[49] = 0xbc;
  expect(() => openBlock(7, encoded).report(1)).toThrow(
    new CorruptRecordError(`the report of stream 7 observed at ${observationsMs + 1} ms does not match its checksum`),
  );
});

/** A block whose index has a right checksum, whatever else is wrong with it. */
const sealed = (count: number, rest: Buffer): Buffer => {
  const bytes = Buffer.concat([Buffer.alloc(6), rest]);
  bytes.writeUInt16BE(count, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(4), 7), 0);
  return bytes;
};

test('block: one without reports, or with fewer entries than it counts, is corrupt whatever its checksum', () => {
  for (const bytes of [Buffer.alloc(0), sealed(0, Buffer.alloc(0)), sealed(2, Buffer.alloc(18))])
    expect(() => openBlock(7, bytes)).toThrow(CorruptRecordError);
});

test('block: one whose only report has no bytes can be opened, and not read', () => {
  const empty = sealed(1, Buffer.alloc(18));
  expect(openBlock(7, empty).count).toBe(1);
  expect(() => openBlock(7, empty).report(0)).toThrow(new CorruptRecordError('a packed report is empty'));
  expect(claimedContents(empty)).toEqual({ reports: 1, reportBytes: 0 });
  expect(blockIndexBytes(empty.subarray(0, 6))).toBe(24);
});

test('block: what one with a damaged index claims to hold counts only if its lengths add up', () => {
  const encoded = encodeBlock(7, small);
  encoded[0] = 0;
  const nothing = { reports: 0, reportBytes: 0 };
  expect(claimedContents(encoded)).toEqual({ reports: 2, reportBytes: 64 });
  for (const bytes of [
    encoded.subarray(0, 49),
    Buffer.concat([encoded, Buffer.alloc(1)]),
    encoded.subarray(0, 41),
    encoded.subarray(0, 5),
    Buffer.alloc(6),
  ])
    expect(claimedContents(bytes)).toEqual(nothing);
});

/** Reports that take 4 bytes each when packed, so 22 with their entries. */
const alike = (count: number): BlockReport[] =>
  Array.from({ length: count }, (_, i) => ({
    validFromMs: i,
    observationsMs: i,
    fullReport: Buffer.from((i + 1).toString(16).padStart(64, '0'), 'hex'),
  }));

test.each([
  ['the most if each byte counts: the head is shared', 200, (bytes: number) => bytes, 96],
  ['no more than there are', 70, (bytes: number) => bytes, 70],
  ['the most that fit into one page', 200, (bytes: number) => Math.ceil(bytes / 1_800) * 1_800, 81],
  ['the fewest if more take more each', 200, (bytes: number) => bytes ** 2, 48],
])('block: of the lengths that fit best: %s', (_, count, diskBytes, expected) => {
  const given = alike(count);
  const fitted = encodeFittingBlock(7, given, diskBytes);
  expect(fitted.count).toBe(expected);
  expect(fitted.bytes).toEqual(encodeBlock(7, given.slice(0, expected)));
});

/** Chooses by what each report takes at each length, from the shortest on. */
const chosenBy = (each: (count: number) => number): number => {
  let count = fittedReports.min - 1;
  return encodeFittingBlock(7, alike(200), () => {
    count += 1;
    return each(count) * count;
  }).count;
};

test('block: of lengths that take the same the shortest, and past 64 reports the first after which they take more', () => {
  expect(chosenBy(() => 1)).toBe(48);
  expect(chosenBy((count) => (count === 60 ? 1 : 2))).toBe(60);
  expect(chosenBy((count) => ({ 64: 2, 70: 1 })[count] ?? 3)).toBe(64);
  expect(chosenBy((count) => ({ 63: 2, 70: 1 })[count] ?? 3)).toBe(70);
});

test('block: a run has 64 reports, or 48 to 96 where its length is fitted', () => {
  expect([blockReports, fittedReports]).toEqual([64, { min: 48, max: 96 }]);
});
