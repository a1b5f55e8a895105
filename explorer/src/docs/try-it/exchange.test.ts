import { expect, test } from 'vitest';
import reportVectors from '../../../../protocol/src/vectors/reports.json' with { type: 'json' };
import type { PlainRequest } from '../../state/send.ts';
import { bodyCharactersMax, createSender, exchangeOnce, formatBody } from './exchange.ts';
import { readEventTexts, shortenHex, socketMessage } from './live-messages.ts';

const request = { method: 'GET', target: '/time', headers: {}, isSigned: true } as const;
const { signal } = new AbortController();

test('try it: an answer has its status, the headers that matter, and its body', async () => {
  const headers = { 'X-Request-Id': 'r-1', 'RateLimit-Remaining': '9', 'Content-Type': 'application/json', Other: 'x' };
  const send = createSender({
    send: async () => ({ headers: { a: 'b' }, response: new Response('{"a":1}', { status: 206, headers }) }),
  });
  expect(await exchangeOnce(send, request, signal)).toMatchObject({
    sentHeaders: { a: 'b' },
    status: 206,
    headers: [
      ['X-Request-Id', 'r-1'],
      ['RateLimit-Remaining', '9'],
      ['Content-Type', 'application/json'],
    ],
    text: '{"a":1}',
    isCut: false,
  });
});

test('try it: a clock that the server rejects is corrected once, from its answer', async () => {
  const serverTimeMs = Date.now() + 3_600_000;
  const signedMs: (number | undefined)[] = [];
  const send = createSender({
    send: async ({ timestampMs }: PlainRequest) => {
      signedMs.push(timestampMs);
      const isRight = Math.abs((timestampMs ?? 0) - serverTimeMs) < 60_000;
      const body = isRight ? '{}' : JSON.stringify({ code: 'clock_skew', serverTimeMs });
      return { headers: {}, response: new Response(body, { status: isRight ? 200 : 400 }) };
    },
  });
  expect((await exchangeOnce(send, request, signal)).status).toBe(200);
  expect((await exchangeOnce(send, request, signal)).status).toBe(200);
  expect(signedMs.length).toBe(3);
});

test('try it: JSON is indented, other text is not, and what is long is cut', () => {
  expect(formatBody('{"a":[1]}')).toEqual({ text: '{\n  "a": [\n    1\n  ]\n}', isCut: false });
  expect(formatBody('<html>')).toEqual({ text: '<html>', isCut: false });
  const { text, isCut } = formatBody('x'.repeat(bodyCharactersMax + 1));
  expect([text.length, isCut]).toEqual([bodyCharactersMax, true]);
});

test('try it: events are read whole, however the bytes arrive', async () => {
  const bytes = new TextEncoder().encode(': hello\n\nid: 1\ndata: {"feedID":"ä"}\n\nid: 2\nda');
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const events: string[] = [];
  await readEventTexts(stream, (text) => events.push(text));
  expect(events).toEqual([': hello', 'id: 1\ndata: {"feedID":"ä"}']);
});

test('try it: an event is shown as the message of either WebSocket', () => {
  const { decoded, fullReport } = reportVectors.reports.find(({ version }) => version === 3) ?? expect.unreachable();
  const feedID = decoded.feedId;
  const event = `id: 1\ndata: ${JSON.stringify({ feedID, validFromTimestamp: 1, observationsTimestamp: 2, fullReport })}`;
  expect(JSON.parse(socketMessage(event, false) ?? '')).toEqual({
    report: { feedID, validFromTimestamp: 1, observationsTimestamp: 2, fullReport },
  });
  expect(Object.keys(JSON.parse(socketMessage(event, true) ?? '').report)).toEqual([
    'feedID',
    'validFromTimestampMs',
    'observationsTimestampMs',
    'fullReport',
  ]);
  const unknown = fullReport.replace(feedID.slice(2), `0fff${feedID.slice(6)}`);
  expect(JSON.parse(socketMessage(event.replace(fullReport, unknown), true) ?? '').report.fullReport).toBe(unknown);
  expect(socketMessage(': comment', false)).toBe(undefined);
  expect(shortenHex(`"0x${'ab'.repeat(32)}" "0x${'ab'.repeat(100)}"`)).toBe(
    `"0x${'ab'.repeat(32)}" "0x${'ab'.repeat(32)}…"`,
  );
});
