import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { CorruptRecordError } from '../store.ts';
import { keepUnpacked, packReport, unpackedBytes, unpackReport, unpackShared } from './packed-report.ts';

const { report } = await createSignedReports();
const bytesAt = (second: number) =>
  Buffer.from(report(secondStream(1), second, second, 4_204_150_104_000_000_000_000n).fullReport);

test('packed report: a real report takes less than half of its bytes alone, less than a third beside one of its stream', () => {
  const [base, next] = [bytesAt(1_763_200_000), bytesAt(1_763_200_001)];
  expect(packReport(base).length).toBeLessThan(base.length / 2);
  expect(packReport(next, base).length).toBeLessThan(base.length / 3);
  expect(unpackReport(packReport(next, base), base)).toEqual(next);
});

/** A word of 32 bytes, with these bytes from `at` on and zeros elsewhere. */
const word = (at: number, ...bytes: readonly number[]): Buffer => {
  const padded = Buffer.alloc(32);
  padded.set(bytes, at);
  return padded;
};
const whole = Buffer.alloc(32, 7);

test.each([
  ['zeros', word(0), [1, 0, 0]],
  ['a number', word(30, 1, 2), [1, 0, 2, 1, 2]],
  ['a text', word(0, 1, 2), [1, 0, 34, 1, 2]],
  ['a text with a zero inside', word(0, 1, 0, 2), [1, 0, 35, 1, 0, 2]],
  ['as many zeros before as after', word(15, 1, 2), [1, 0, 17, 1, 2, ...Buffer.alloc(15)]],
  ['no zeros', whole, [1, 0, 32, ...whole]],
  ['two words', Buffer.concat([word(31, 1), word(0, 2)]), [2, 0, 1, 1, 33, 2]],
  ['nothing', Buffer.alloc(0), [0]],
  ['no whole word', Buffer.from([0, 5]), [0, 0, 5]],
])('packed report: the stored bytes of %s', (_, report, stored) => {
  expect([...packReport(report)]).toEqual(stored);
  expect(unpackReport(Buffer.from(stored))).toEqual(report);
});

test('packed report: a whole word may be stored as a text', () => {
  expect(unpackReport(Buffer.from([1, 0, 64, ...whole]))).toEqual(whole);
});

test('packed report: words of the base are bits of a mask, the lowest first, and a shorter base has fewer', () => {
  const base = Buffer.concat(Array.from({ length: 10 }, (_, i) => word(31, i + 1)));
  const changed = Buffer.concat([base.subarray(0, 32), word(31, 99), base.subarray(64)]);
  expect([...packReport(changed, base)]).toEqual([10, 0b1111_1101, 0b11, 1, 99]);
  expect([...packReport(changed, base.subarray(0, 288))]).toEqual([10, 0b1111_1101, 0b1, 1, 99, 1, 10]);
  expect([...packReport(base.subarray(0, 64), base)]).toEqual([2, 0b11]);
  for (const used of [base, base.subarray(0, 288)])
    expect(unpackReport(packReport(changed, used), used)).toEqual(changed);
});

test('packed report: up to 255 words are packed, more are stored as they came', () => {
  const words = Buffer.concat(Array.from({ length: 255 }, (_, i) => word(31, i)));
  const packed = packReport(words);
  expect([packed[0], packed.length]).toEqual([255, 1 + 32 + 1 + 254 * 2]);
  expect(unpackReport(packed)).toEqual(words);
  const more = Buffer.concat([words, word(31, 1)]);
  expect(packReport(more)).toEqual(Buffer.concat([Buffer.alloc(1), more]));
  expect(unpackReport(packReport(more))).toEqual(more);
  expect(unpackReport(packReport(words, more), more)).toEqual(words);
});

test.each([
  ['is empty', [], undefined],
  ['is cut short', [1, 0], undefined],
  ['is cut short', [1, 0, 2, 1], undefined],
  ['is cut short', [1, 0, 34, 1], undefined],
  ['is cut short', [1, 0, 65, ...Buffer.alloc(64)], undefined],
  ['leans on a word that its base lacks', [1, 1], undefined],
  ['leans on a word that its base lacks', [2, 2, 0], whole],
  ['leans on a word that its base lacks', [2, 2, 0], Buffer.alloc(63)],
  ['has bytes left over', [1, 0, 0, 0], undefined],
])('packed report: one that %s is corrupt', (problem, bytes, base) => {
  expect(() => unpackReport(Buffer.from(bytes), base)).toThrow(new CorruptRecordError(`a packed report ${problem}`));
});

test('packed report: it is read from within other bytes, its length without being unpacked', () => {
  const packed = packReport(word(30, 1, 2));
  const around = Buffer.concat([whole, packed, whole]);
  const end = 32 + packed.length;
  expect(Buffer.from(unpackShared(around, 32, end).bytes)).toEqual(word(30, 1, 2));
  expect([unpackedBytes(around, 32, end), unpackedBytes(around, 32, 32)]).toEqual([32, 0]);
  expect(unpackedBytes(Buffer.from([9, 0, 1, 2, 3]), 1, 5)).toBe(3);
});

test('packed report: what is kept stays as it is when the next one is unpacked', () => {
  const [one, other] = [packReport(word(30, 1, 2)), packReport(whole)];
  const kept = keepUnpacked(unpackShared(one, 0, one.length));
  unpackShared(other, 0, other.length);
  expect(kept).toEqual({ bytes: word(30, 1, 2), digits: Buffer.from(`${'0'.repeat(60)}0102`) });
});

test('packed report: any bytes come back, and their digits, with any base or none', () => {
  const words = fc.array(
    fc.oneof(
      fc.constant(Buffer.alloc(32)),
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uint8Array({ minLength: 4, maxLength: 4 }).map((tail) => Buffer.concat([Buffer.alloc(28), tail])),
      fc.uint8Array({ minLength: 4, maxLength: 4 }).map((head) => Buffer.concat([head, Buffer.alloc(28)])),
    ),
    { maxLength: 40, size: 'max' },
  );
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200, size: 'max' }).map((some) => Buffer.from(some)),
    words.map((list) => Buffer.concat(list)),
  );
  fc.assert(
    fc.property(bytes, fc.option(bytes, { nil: undefined }), (report, base) => {
      const packed = packReport(report, base);
      expect(unpackReport(packed, base)).toEqual(report);
      const lentBase = base && { bytes: base, digits: Buffer.from(base.toString('hex')) };
      expect(unpackShared(packed, 0, packed.length, lentBase).digits.toString()).toBe(report.toString('hex'));
      expect(unpackedBytes(packed, 0, packed.length)).toBe(report.length);
    }),
    { numRuns: 500 },
  );
});

test('packed report: any bytes unpack to something or are a corrupt record, never anything else', () => {
  const base = bytesAt(1_763_200_000);
  const packed = packReport(bytesAt(1_763_200_001), base);
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 80, size: 'max' }),
        fc.nat(packed.length).map((end) => packed.subarray(0, end)),
      ),
      fc.boolean(),
      (bytes, withBase) => {
        try {
          unpackReport(bytes, withBase ? base : undefined);
        } catch (error) {
          expect(error).toBeInstanceOf(CorruptRecordError);
        }
      },
    ),
    { numRuns: 500 },
  );
});

test('packed report: reports that follow each other on one base leave nothing of themselves behind', () => {
  const anyWord = fc.constantFrom(0, 1, 32, 33, 64).map((header) => {
    const bytes = Buffer.alloc(32);
    const length = header > 32 ? header - 32 : header;
    return bytes.fill(0xab, header > 32 ? 0 : 32 - length, header > 32 ? length : 32);
  });
  const words = fc.array(anyWord, { minLength: 1, maxLength: 6 }).map((list) => Buffer.concat(list));
  fc.assert(
    fc.property(words, fc.array(words, { maxLength: 6 }), (base, reports) => {
      const kept = { bytes: base, digits: Buffer.from(base.toString('hex')) };
      for (const report of reports) {
        const packed = packReport(report, base);
        const { bytes, digits } = unpackShared(packed, 0, packed.length, kept);
        expect([bytes.toString('hex'), digits.toString()]).toEqual([report.toString('hex'), report.toString('hex')]);
      }
    }),
  );
});
