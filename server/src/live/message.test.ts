import { expect, test } from 'vitest';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import { renderMessage, toFrame } from './message.ts';

const report = {
  feedId: secondStream(7),
  validFromMs: 1_763_199_999_250,
  observationsMs: 1_763_200_000_750,
  fullReport: Uint8Array.of(0, 1, 0xfe, 0xff),
};

test('message: a frame is the JSON of the report behind a head for its length', () => {
  const json = `{"report":{"feedID":"${report.feedId}","validFromTimestamp":1763199999,"observationsTimestamp":1763200000,"fullReport":"0x0001feff"}}`;
  const frame = renderMessage('seconds', report, 'five');
  expect([...frame.subarray(0, 4)]).toEqual([0x82, 126, 0, json.length]);
  expect(frame.subarray(4).toString()).toBe(json);
});

test('message: the other socket sends milliseconds', () => {
  const frame = renderMessage('milliseconds', report, 'five');
  expect(frame.subarray(4).toString()).toBe(
    `{"report":{"feedID":"${report.feedId}","validFromTimestampMs":1763199999250,"observationsTimestampMs":1763200000750,"fullReport":"0x0001feff"}}`,
  );
});

test('message: an event has its id', () => {
  expect(renderMessage('event', report, 'five').toString()).toBe(
    `id: five\ndata: {"feedID":"${report.feedId}","validFromTimestamp":1763199999,"observationsTimestamp":1763200000,"fullReport":"0x0001feff"}\n\n`,
  );
});

test.each([
  [0, [0x82, 0]],
  [125, [0x82, 125]],
  [126, [0x82, 126, 0, 126]],
  [65_535, [0x82, 126, 0xff, 0xff]],
  [65_536, [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]],
])('message: a length of %i uses as few bytes as the protocol requires', (length, head) => {
  const frame = toFrame('x'.repeat(length));
  expect([...frame.subarray(0, head.length)]).toEqual(head);
  expect(frame.length).toBe(head.length + length);
});
