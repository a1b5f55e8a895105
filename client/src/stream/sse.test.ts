import { expect, test, vi } from 'vitest';
import { createEventReader, type ServerEvent, serverSentEvents } from './sse.ts';

/** Reads pieces of a body as a stream does: bytes may be cut within a character. */
const readPieces = (pieces: readonly Uint8Array[]): readonly ServerEvent[] => {
  const decoder = new TextDecoder();
  const read = createEventReader();
  return pieces.flatMap((piece) => read(decoder.decode(piece, { stream: true })));
};
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const readText = (text: string) => readPieces([bytesOf(text)]);

const body = [
  ':\n\n',
  'id: 7\ndata: {"a":"é€😀"}\n\n',
  'event: missed\r\nid: 8\r\ndata: one\r\ndata:two\r\n\r\n',
  ': a comment\rdata: three\r\r',
  'data\n\nretry: 5\n\n',
].join('');
const events: readonly ServerEvent[] = [
  { type: 'message', id: '7', data: '{"a":"é€😀"}' },
  { type: 'missed', id: '8', data: 'one\ntwo' },
  { type: 'message', id: '8', data: 'three' },
  { type: 'message', id: '8', data: '' },
];

test('events: comments, every line ending, several data lines and a lasting ID are parsed as specified', () => {
  expect(readText(body)).toEqual(events);
});

test('events: wherever the bytes are cut in two, and byte by byte, the events are the same', () => {
  const bytes = bytesOf(body);
  for (let at = 0; at <= bytes.length; at += 1)
    expect(readPieces([bytes.subarray(0, at), bytes.subarray(at)]), `cut at ${at}`).toEqual(events);
  expect(readPieces([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(events);
});

test('events: an empty chunk between CR and LF does not make two lines', () => {
  const read = createEventReader();
  expect(['data: a\r', '', '\n', '\r\n'].flatMap(read)).toEqual([{ type: 'message', id: undefined, data: 'a' }]);
});

/** Runs the transport on one response; none of its handlers but `report` is observed. */
const receive = (
  response: Response | ((signal: AbortSignal) => Response),
  report: (report: unknown) => void = () => {},
) => {
  const request = {
    baseUrl: 'http://a.test',
    feedIds: ['0x'],
    sign: async () => ({}),
    fetch: async (_: string, { signal }: { readonly signal: AbortSignal }) =>
      response instanceof Response ? response : response(signal),
    nowMs: () => 0,
    backpressure: { drained: async () => {} },
    silenceMs: 60_000,
    signal: new AbortController().signal,
  } as unknown as Parameters<typeof serverSentEvents>[0]; // what this transport uses of it
  return serverSentEvents(request, { opened: () => {}, received: () => {}, missed: () => {}, report });
};

/** A rejection whose body starts with a text and continues as `next` says. */
const rejection = (text: string, next: (controller: ReadableStreamDefaultController<Uint8Array>) => void) =>
  new Response(
    new ReadableStream<Uint8Array>(
      { start: (controller) => controller.enqueue(bytesOf(text)), pull: next },
      { highWaterMark: 0 },
    ),
    { status: 503, headers: { 'Retry-After': '7' } },
  );
const overloaded = '{"code":"overloaded","message":"Later."}';
const asOverloaded = { code: 'overloaded', message: 'Later.', status: 503, details: { retryAfterSeconds: 7 } };

test('events: of the body of a rejection, 64 KB are read, and no more', async () => {
  let chunks = 0;
  const response = rejection(' ', (controller) => {
    chunks += 1;
    if (chunks === 1_000) controller.close();
    else controller.enqueue(new Uint8Array(16_384));
  });
  await expect(receive(response)).rejects.toMatchObject({ code: 'http_503', details: { retryAfterSeconds: 7 } });
  expect(chunks).toBe(4);
});

test('events: a rejection whose body breaks off is still reported', async () => {
  const response = rejection(overloaded, (controller) => controller.error(new TypeError('terminated')));
  await expect(receive(response)).rejects.toMatchObject(asOverloaded);
});

test('events: a rejection whose body does not end is reported after 10 s, with what has arrived', async ({
  onTestFinished,
}) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const stalled = (signal: AbortSignal) =>
    rejection(overloaded, (controller) => {
      // An abort of fetch breaks the body off.
      signal.addEventListener('abort', () => controller.error(signal.reason));
    });
  const rejected = expect(receive(stalled)).rejects.toMatchObject(asOverloaded);
  await vi.advanceTimersByTimeAsync(10_000);
  await rejected;
});

test('events: something that is not a report ends the connection, with a reason that does not repeat it', async () => {
  const reports: unknown[] = [];
  const response = new Response('data: \u001b[2J\n\n', { headers: { 'Content-Type': 'text/event-stream' } });
  const reason = await receive(response, (report) => reports.push(report));
  expect([reason, reports]).toEqual(['the server sent something that is not a report', []]);
});

test('events: an incomplete event is not delivered', () => {
  expect(readText('data: whole\n\ndata: half\n')).toEqual([{ type: 'message', id: undefined, data: 'whole' }]);
});

test('events: one space after the colon is removed, no more; colons in the value stay', () => {
  expect(readText('data:  a: b\n\n')).toEqual([{ type: 'message', id: undefined, data: ' a: b' }]);
});

test('events: an event without data is dropped, but its ID counts; an ID with a NUL does not', () => {
  expect(readText('event: x\nid: 1\n\nid: 2\0\ndata: d\n\n')).toEqual([{ type: 'message', id: '1', data: 'd' }]);
  expect(readText('id: 1\ndata: a\n\nid\ndata: b\n\n').map(({ id }) => id)).toEqual(['1', '']);
});

test('events: one that is longer than 1 MB is rejected, in one line or in many, and a comment too', () => {
  const megabyte = 'x'.repeat(1_048_576);
  for (const text of [`data: ${megabyte}`, `: ${megabyte}`])
    expect(() => createEventReader()(text), text.slice(0, 8)).toThrow('longer than 1 MB');
  const read = createEventReader();
  const line = `data: ${'x'.repeat(65_536)}\n`;
  for (let i = 0; i < 15; i += 1) expect(read(line)).toEqual([]);
  expect(() => read(line)).toThrow('longer than 1 MB');
});

test('events: any number of events and comments is read; only the size of one event is limited', () => {
  const read = createEventReader();
  const text = `: ${'c'.repeat(1_000)}\ndata: ${'x'.repeat(1_000)}\n\n`;
  let count = 0;
  for (let i = 0; i < 2_000; i += 1) count += read(text).length;
  expect(count).toBe(2_000);
});
