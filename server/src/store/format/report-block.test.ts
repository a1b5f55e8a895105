import { expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { CorruptRecordError } from '../store.ts';
import { type BlockReport, encodeBlock, openBlock } from './report-block.ts';

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

test('block: the first report at or after a moment', () => {
  const { firstAtOrAfter } = openBlock(7, block);
  expect([0, t0 * 1_000, t0 * 1_000 + 1, (t0 + 126) * 1_000, (t0 + 126) * 1_000 + 1].map(firstAtOrAfter)).toEqual([
    0, 0, 1, 63, 64,
  ]);
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
