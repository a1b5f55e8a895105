// Event streams as the SDK reads them from a server that may send anything. The reference is a parser by the letter of the format.
import assert from 'node:assert/strict';
import { SealpostError } from '@sealpost/client';
import { oneLine } from '@sealpost/protocol';
import type { ReceivedReport } from '../../../client/src/stream/received-report.ts';
import { createEventReader, type ServerEvent, serverSentEvents } from '../../../client/src/stream/sse.ts';
import { createRandom } from '../../support/random.ts';
import { createMaterial, reportJsonOf } from '../material.ts';
import { nameOf, requireSame, shapeOf, type Target } from '../target.ts';

/** The whole text at once, line by line, as the standard says. */
const readByStandard = (text: string): readonly ServerEvent[] => {
  const events: ServerEvent[] = [];
  let [type, data, id]: [string, string | undefined, string | undefined] = ['', undefined, undefined];
  for (const line of text.split(/\r\n|\r|\n/).slice(0, -1)) {
    if (line === '') {
      if (data !== undefined) events.push({ type: type === '' ? 'message' : type, id, data });
      [type, data] = ['', undefined];
      continue;
    }
    const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'event') type = value ?? '';
    if (field === 'data') data = data === undefined ? (value ?? '') : `${data}\n${value ?? ''}`;
    if (field === 'id' && !(value ?? '').includes('\0')) id = value ?? '';
  }
  return events;
};

const pieces = (input: Buffer): readonly Buffer[] => {
  const random = createRandom(Number.parseInt(nameOf(input).slice(0, 8), 16));
  const cut: Buffer[] = [];
  for (let at = 0; at < input.length; ) {
    const end = Math.min(input.length, at + 1 + random(random(2) === 0 ? 3 : 300));
    cut.push(input.subarray(at, end));
    at = end;
  }
  return cut;
};

const neverFull = { isFull: () => false, drained: async () => {}, onChange: () => () => {} };

/** Every report that the transport passes on has the form that the types promise. */
export const checkReceived = ({ report, validFromMs, observationsMs }: ReceivedReport): void => {
  assert.ok(
    Object.keys(report).join() === 'feedID,validFromTimestamp,observationsTimestamp,fullReport',
    'a report has other fields',
  );
  assert.ok(
    typeof report.feedID === 'string' &&
      report.feedID === report.feedID.toLowerCase() &&
      typeof report.fullReport === 'string',
    'a field is not text',
  );
  for (const time of [report.validFromTimestamp, report.observationsTimestamp])
    assert.ok(Number.isSafeInteger(time) && time >= 0, 'a timestamp is not a whole number');
  for (const time of [validFromMs, observationsMs])
    assert.ok(Number.isFinite(time) && time >= 0, 'a time is not a number');
};

const runTransport = async (input: Buffer): Promise<string> => {
  let received = 0;
  const body = new ReadableStream({
    start: (controller) => {
      for (const piece of pieces(input)) controller.enqueue(Uint8Array.from(piece));
      controller.close();
    },
  });
  try {
    return await serverSentEvents(
      {
        baseUrl: 'http://a.test',
        wsUrl: 'http://a.test',
        feedIds: ['0x'],
        origin: undefined,
        position: undefined,
        silenceMs: 60_000,
        sign: async () => ({}),
        get: () => Promise.reject(new Error('unused')),
        nowMs: () => 0,
        backpressure: neverFull,
        signal: new AbortController().signal,
        fetch: async () => new Response(body, { headers: { 'Content-Type': 'text/event-stream' } }),
      } as never,
      {
        opened: () => {},
        received: () => {},
        missed: () => {},
        report: (report) => {
          received += 1;
          checkReceived(report);
        },
      },
    ).then((reason) => {
      assert.equal(oneLine(reason), reason, 'a reason has control characters');
      return `${received > 0 ? 'reports, ' : ''}${shapeOf(reason)}`;
    });
  } catch (error) {
    if (error instanceof SealpostError) return error.code;
    throw error;
  }
};

export const openEvents = async (): Promise<Target> => {
  const { reports } = await createMaterial();
  const events = reports.slice(0, 6).map((report, i) => `id: ${i}\ndata: ${JSON.stringify(reportJsonOf(report))}\n\n`);
  const seeds = [
    events.join(''),
    ...events,
    ': comment\n\nevent: missed\nid: 7\ndata:\n\n',
    'data: a\r\ndata: b\r\r\nid\n\n',
    `retry: 5\nevent: report\r${events[0]}`,
  ];
  return {
    seeds: seeds.map((text) => Buffer.from(text)),
    words: [
      'data:',
      'data',
      'id:',
      'id',
      'event:',
      'event: missed\n',
      'retry:',
      ':',
      '\n',
      '\r',
      '\r\n',
      '\n\n',
      '\u0000',
      '\ufeff',
      '{"report":null}',
      'validFromTimestampMs',
      'null',
    ],
    run: async (input) => {
      const text = new TextDecoder().decode(input);
      const expected = readByStandard(text);
      const decoder = new TextDecoder();
      const readEvent = createEventReader();
      const found = pieces(input).flatMap((piece) => readEvent(decoder.decode(piece, { stream: true })));
      // Bytes of a character that is not whole at the end come with no later piece.
      requireSame(found, expected, 'in pieces it has other events than by the standard');
      return `${Math.min(found.length, 3)} ${[...new Set(found.map(({ type }) => (type.length > 12 ? 'long' : type)))].slice(0, 3)} ${await runTransport(input)}`;
    },
  };
};
