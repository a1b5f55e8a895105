import { expect, test } from 'vitest';
import { createSignedReports, millisecondStream, secondStream } from '../../../tests/support/signed-reports.ts';
import { parseMessage, parseReceived, stepMsOf } from './received-report.ts';

const { report: sign } = await createSignedReports();
const [seconds, milliseconds] = [secondStream(1), millisecondStream(1)];
const fullReportOf = (feedId: typeof seconds, from: number, to: number): string =>
  `0x${Buffer.from(sign(feedId, from, to).fullReport).toString('hex')}`;
const at = 1_763_200_001;
const plain = {
  feedID: seconds as string, // ReportJson has no brand
  validFromTimestamp: at - 1,
  observationsTimestamp: at,
  fullReport: fullReportOf(seconds, at - 1, at),
};
const exact = {
  feedID: milliseconds as string, // ReportJson has no brand
  validFromTimestamp: at - 1,
  observationsTimestamp: at,
  fullReport: fullReportOf(milliseconds, at * 1_000 - 99, at * 1_000 + 7),
};

test('received: a stream in seconds has a window of whole seconds', () => {
  expect(stepMsOf(seconds)).toBe(1_000);
  expect(parseReceived(plain)).toEqual({ report: plain, validFromMs: (at - 1) * 1_000, observationsMs: at * 1_000 });
});

test('received: a stream in milliseconds has the window of its bytes', () => {
  expect(stepMsOf(milliseconds)).toBe(1);
  expect(parseReceived(exact)).toEqual({
    report: exact,
    validFromMs: at * 1_000 - 99,
    observationsMs: at * 1_000 + 7,
  });
});

test('received: version 1 has one timestamp, where others have the start of the window', () => {
  const word = (value: bigint | number) => value.toString(16).padStart(64, '0');
  const feedID = `0x1001${'c'.repeat(60)}`;
  const fullReport = `0x${word(0).repeat(8)}${feedID.slice(2)}${word(at * 1_000 + 250)}${word(5)}`;
  const moment = { feedID, validFromTimestamp: at, observationsTimestamp: at, fullReport };
  expect(parseReceived(moment)).toMatchObject({ validFromMs: at * 1_000 + 250, observationsMs: at * 1_000 + 250 });
});

test('received: if the bytes have another second than the response, or none, whole seconds are used', () => {
  for (const fullReport of ['0x', '0x1234', fullReportOf(milliseconds, 5_000, 6_000)])
    expect(parseReceived({ ...exact, fullReport })).toMatchObject({
      validFromMs: (at - 1) * 1_000,
      observationsMs: at * 1_000,
    });
});

test('received: a window in milliseconds is kept, and rounded down to seconds', () => {
  const { feedID, fullReport } = exact;
  const window = { validFromTimestampMs: at * 1_000 - 99, observationsTimestampMs: at * 1_000 + 7 };
  expect(parseReceived({ feedID, fullReport, ...window })).toEqual(parseReceived(exact));
});

test('received: the feed ID is compared in lower case, and unknown fields are dropped', () => {
  const feedID = `0x0003${'AB'.repeat(30)}`;
  const { report } = parseReceived({ ...plain, feedID, more: 'not kept' });
  expect(report).toEqual({ ...plain, feedID: feedID.toLowerCase() });
});

test('received: a live message is a report, or has one', () => {
  expect(parseMessage(JSON.stringify({ report: plain }))).toEqual(parseReceived(plain));
  expect(parseMessage(JSON.stringify(plain))).toEqual(parseReceived(plain));
  expect(() => parseMessage('{"report":')).toThrow(SyntaxError);
});

test('received: the last second that 32 bits hold is one', () => {
  const last = 2 ** 32 - 1;
  const late = { ...plain, validFromTimestamp: last, observationsTimestamp: last };
  expect(parseReceived(late)).toMatchObject({ observationsMs: last * 1_000 });
  const window = { validFromTimestampMs: last * 1_000, observationsTimestampMs: last * 1_000 + 999 };
  const { report } = parseReceived({ feedID: milliseconds, fullReport: '0x', ...window });
  expect(report.observationsTimestamp).toBe(last);
});

test.each([
  ['nothing', undefined],
  ['null', null],
  ['a text', 'report'],
  ['a list', [plain]],
  ['no feed ID', { ...plain, feedID: undefined }],
  ['a feed ID that is a number', { ...plain, feedID: 3 }],
  ['no bytes', { ...plain, fullReport: undefined }],
  ['no beginning', { ...plain, validFromTimestamp: undefined }],
  ['a moment in text', { ...plain, observationsTimestamp: String(at) }],
  ['a moment that is no whole number', { ...plain, observationsTimestamp: at + 0.5 }],
  ['a moment before all time', { ...plain, observationsTimestamp: -1 }],
  ['a moment that no number holds', { ...plain, observationsTimestamp: 2 ** 53 }],
  ['milliseconds in a field of seconds', { ...plain, observationsTimestamp: at * 1_000 }],
  ['a beginning after what 32 bits hold', { ...plain, validFromTimestamp: 2 ** 32 }],
  [
    'a window in milliseconds after that',
    { feedID: milliseconds, fullReport: '0x', validFromTimestampMs: 1, observationsTimestampMs: 2 ** 32 * 1_000 },
  ],
  [
    'one moment in milliseconds',
    { feedID: seconds, fullReport: '0x', validFromTimestampMs: 1, observationsTimestamp: 1 },
  ],
])('received: %s is not a report', (_, raw) => {
  expect(() => parseReceived(raw)).toThrow('The server sent something that is not a report.');
});
