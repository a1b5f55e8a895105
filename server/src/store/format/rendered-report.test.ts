import { type FeedId, toReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { secondStream } from '../../../../tests/support/signed-reports.ts';
import { createReportRenderer, renderedLength } from './rendered-report.ts';

const feedId: FeedId = secondStream(1);

test('rendered report: it is the protocol’s JSON and has the computed length', () => {
  const writeReport = createReportRenderer(feedId);
  const seconds = [
    0,
    7,
    999_999_999,
    1_000_000_000,
    1_763_200_000,
    2 ** 32 - 1,
    2 ** 32,
    9_999_999_999,
    10_000_000_000,
  ];
  for (const [validFrom, observations] of seconds.flatMap((a) => seconds.map((b) => [a, b] as const))) {
    const window = { validFromMs: validFrom * 1_000, observationsMs: observations * 1_000 + 999 };
    const text = Buffer.alloc(renderedLength(feedId, window, 3) + 2, '#');
    const end = writeReport(text, 1, window, Buffer.from('00ff7a'));
    expect(text.toString()).toBe(`#${JSON.stringify(toReportJson(feedId, window, '0x00ff7a'))}#`);
    expect(end).toBe(text.length - 1);
  }
});
