import { type FeedId, toReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { secondStream } from '../../../../tests/support/signed-reports.ts';
import { renderedLengthMax, renderReports, writeDigits } from './rendered-report.ts';

const feedId: FeedId = secondStream(1);

test('rendered report: it is the protocol’s JSON, from bytes and from hex digits, and no longer than the computed length', () => {
  const seconds = [0, 7, 999_999_999, 1_763_200_000, 2 ** 32, 281_474_976_709];
  for (const [validFrom, observations] of seconds.flatMap((a) => seconds.map((b) => [a, b] as const))) {
    const window = { validFromMs: validFrom * 1_000, observationsMs: observations * 1_000 + 999 };
    const expected = JSON.stringify(toReportJson(feedId, window, '0x00ff7a'));
    const report = { feedId, ...window, fullReport: Uint8Array.of(0, 0xff, 0x7a) };
    expect(renderReports([report, report]).toString()).toBe(`${expected},${expected}`);
    const text = Buffer.alloc(renderedLengthMax(feedId, 3) + 1, '#');
    const end = writeDigits(text, 1, feedId, window, Buffer.from('00ff7a'));
    expect(text.toString('latin1', 0, end)).toBe(`#${expected}`);
  }
});
