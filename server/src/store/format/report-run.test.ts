import { expect, test } from 'vitest';
import { CorruptRecordError } from '../store.ts';
import { encodeRun, openRun, type ReportInRun } from './report-run.ts';

const key = Buffer.from('00000001000000000007', 'hex');
const reports: readonly ReportInRun[] = [3, 0, 50, 32].map((length, i) => ({
  validFromMs: 1_000 * i + 1,
  observationsMs: 1_000 * i + 1_000,
  fullReport: Buffer.alloc(length, i + 1),
}));
const value = encodeRun(key, reports);

test('run: it has its reports byte for byte, with their windows', () => {
  const run = openRun(key, value);
  expect([run.count, run.reportBytes]).toEqual([4, 85]);
  for (const [i, { fullReport, ...window }] of reports.entries()) {
    expect(run.fullReport(i).equals(fullReport)).toBe(true);
    expect(run.window(i)).toEqual(window);
  }
  expect([0, 1_000, 1_001, 4_000, 4_001].map(run.firstAtOrAfter)).toEqual([0, 0, 1, 3, 4]);
});

test('run: under another key it does not open', () => {
  expect(() => openRun(Buffer.from('00000002000000000007', 'hex'), value)).toThrow(CorruptRecordError);
});

/** Which reports a run gives, and whether each is what was written. */
const given = (bytes: Buffer): readonly boolean[] => {
  try {
    const run = openRun(key, bytes);
    return reports.flatMap(({ fullReport }, i) => {
      try {
        return [run.fullReport(i).equals(fullReport)];
      } catch (error) {
        if (error instanceof CorruptRecordError) return [];
        throw error;
      }
    });
  } catch (error) {
    if (error instanceof CorruptRecordError) return [];
    throw error;
  }
};

test('run: whichever bit is flipped, it does not open, or one report fails and the others are what was written', () => {
  const reportsAt = value.length - 85;
  for (let bit = 0; bit < value.length * 8; bit++) {
    const damaged = Buffer.from(value);
    damaged[bit >> 3] = (damaged[bit >> 3] as number) ^ (1 << (bit & 7)); // within bounds
    expect(given(damaged), `bit ${bit}`).toEqual(bit >> 3 < reportsAt ? [] : [true, true, true]);
  }
});

test('run: cut anywhere, it gives no report that was not written', () => {
  for (let length = 0; length < value.length; length++) expect(given(value.subarray(0, length))).not.toContain(false);
});

test('run: a damaged report that is moved to another run stays damaged', () => {
  const damaged = Buffer.from(value);
  damaged[value.length - 40] = 9; // in the third report
  const moved = openRun(key, encodeRun(key, openRun(key, damaged).stored()));
  expect(() => moved.fullReport(2)).toThrow(CorruptRecordError);
  expect(moved.fullReport(3).equals(reports[3]?.fullReport as Uint8Array)).toBe(true);
});
