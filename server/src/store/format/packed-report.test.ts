import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { CorruptRecordError } from '../store.ts';
import { packReport, unpackedBytes, unpackReport, unpackShared } from './packed-report.ts';

const { report } = await createSignedReports();
const bytesAt = (second: number) =>
  Buffer.from(report(secondStream(1), second, second, 4_204_150_104_000_000_000_000n).fullReport);

test('packed report: a real report takes less than half of its bytes alone, less than a third beside one of its stream', () => {
  const [base, next] = [bytesAt(1_763_200_000), bytesAt(1_763_200_001)];
  expect(packReport(base).length).toBeLessThan(base.length / 2);
  expect(packReport(next, base).length).toBeLessThan(base.length / 3);
  expect(unpackReport(packReport(next, base), base)).toEqual(next);
});

test('packed report: any bytes come back, and their digits, with any base or none', () => {
  const words = fc.array(
    fc.oneof(
      fc.constant(Buffer.alloc(32)),
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uint8Array({ minLength: 4, maxLength: 4 }).map((tail) => Buffer.concat([Buffer.alloc(28), tail])),
      fc.uint8Array({ minLength: 4, maxLength: 4 }).map((head) => Buffer.concat([head, Buffer.alloc(28)])),
    ),
    { maxLength: 40 },
  );
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((some) => Buffer.from(some)),
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
    { numRuns: 2_000 },
  );
});

test('packed report: any bytes unpack to something or are a corrupt record, never anything else', () => {
  const base = bytesAt(1_763_200_000);
  const packed = packReport(bytesAt(1_763_200_001), base);
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 80 }),
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
    { numRuns: 2_000 },
  );
});

test('packed report: reports that follow each other on one base leave nothing of themselves behind', () => {
  const word = fc.constantFrom(0, 1, 32, 33, 64).map((header) => {
    const bytes = Buffer.alloc(32);
    const length = header > 32 ? header - 32 : header;
    return bytes.fill(0xab, header > 32 ? 0 : 32 - length, header > 32 ? length : 32);
  });
  const words = fc.array(word, { minLength: 1, maxLength: 6 }).map((list) => Buffer.concat(list));
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
