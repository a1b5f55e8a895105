// Live reports over server-sent events, with fetch: not reading the body applies backpressure to the server.
import { SealpostError } from '../errors.ts';
import { readText } from '../request/answer.ts';
import { fetchFailure, requestInit } from '../request/attempt.ts';
import { paths } from '../request/paths.ts';
import { parseMessage, type ReceivedReport } from './received-report.ts';
import {
  type ConnectionHandlers,
  type ConnectionRequest,
  createWatchdog,
  handshakeMs,
  handshakeTimedOut,
  originHeaders,
  silentFor,
  type Transport,
  toRefusal,
} from './transport.ts';

/** The transport on fetch. */
export const serverSentEvents: Transport = async (request, handlers) => {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort();
  if (request.signal.aborted) return 'aborted';
  request.signal.addEventListener('abort', onAbort);
  try {
    const { headers, body } = await connect(request, controller);
    // A web server may answer any path with its own page.
    if (!/^text\/event-stream\b/i.test(headers.get('Content-Type') ?? ''))
      throw new SealpostError('not_supported', `${new URL(request.baseUrl).host} has no event stream.`, {
        status: 200,
      });
    handlers.opened();
    return await readEvents(body.getReader(), request, handlers, controller);
  } catch (error) {
    if (request.signal.aborted) return 'aborted';
    if (error instanceof SealpostError) throw error;
    return fetchFailure(controller.signal.reason ?? error);
  } finally {
    request.signal.removeEventListener('abort', onAbort);
    // Ends a body that was not read to its end.
    controller.abort();
  }
};

/** Resolves when the head of a 200 is there; throws any other response, with as much of its body as arrives in time. */
const connect = async (
  { baseUrl, feedIds, origin, sign, fetch, nowMs, position }: ConnectionRequest,
  controller: AbortController,
) => {
  const target = `${paths.reportStream}?feedIDs=${feedIds.join(',')}`;
  const headers = {
    ...(await sign('GET', target)),
    ...originHeaders(origin),
    ...(position === undefined ? {} : { 'Last-Event-ID': position }),
  };
  const watchdog = createWatchdog(handshakeMs, () => controller.abort(new Error(handshakeTimedOut)));
  watchdog.touch();
  try {
    const response = await fetch(`${baseUrl}${target}`, { ...requestInit, headers, signal: controller.signal });
    const { status, headers: told, body } = response;
    if (status === 200 && body !== null) return { headers: told, body };
    const texts: string[] = [];
    // If the body breaks off or takes too long, what has arrived counts.
    await readText(response, (text) => texts.push(text), true).catch(() => {});
    throw toRefusal({ status, headers: told, text: texts.join('') }, baseUrl, nowMs);
  } finally {
    watchdog.stop();
  }
};

/** IDs that can be sent back: a header with any other text is never sent, or not as it was, and a long one is rejected. */
const sendable = /^[\x21-\x7e]{1,1024}$/;

const readEvents = async (
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { backpressure, silenceMs }: ConnectionRequest,
  handlers: ConnectionHandlers,
  controller: AbortController,
): Promise<string> => {
  const decoder = new TextDecoder();
  const readEvent = createEventReader();
  const watchdog = createWatchdog(silenceMs, () => controller.abort(new Error(silentFor(silenceMs))));
  try {
    for (;;) {
      // Not read while the consumer is behind: the platform's buffers fill, then the server's.
      await backpressure.drained();
      watchdog.touch();
      const { done, value } = await reader.read();
      watchdog.stop();
      if (done) return 'the server ended the stream';
      handlers.received(value.length);
      for (const { type, id: given, data } of readEvent(decoder.decode(value, { stream: true }))) {
        const id = given !== undefined && sendable.test(given) ? given : undefined;
        if (type === 'missed') handlers.missed(id);
        else if (type === 'message' || type === 'report') {
          const report = parseOrNone(data);
          if (report === undefined) return 'the server sent something that is not a report';
          handlers.report(report, id);
        }
      }
    }
  } finally {
    watchdog.stop();
  }
};

/** A report; undefined for what is none. The parser's own message would repeat what the server sent. */
const parseOrNone = (data: string): ReceivedReport | undefined => {
  try {
    return parseMessage(data);
  } catch {
    return undefined;
  }
};

/** One event. `id` is the last one received, which by the format stays until the next. */
export type ServerEvent = { readonly type: string; readonly id: string | undefined; readonly data: string };

/** Longest event in characters; the longest report takes 9,000. */
const eventCharactersMax = 1_048_576;

/** Parses events from chunks of text. An incomplete event waits for the rest; one that is too long throws. */
export function createEventReader(): (piece: string) => readonly ServerEvent[] {
  let rest = '';
  let afterReturn = false;
  let [type, data, id]: [string, string[], string | undefined] = ['', [], undefined];
  let bufferedCharacters = 0;

  const readLine = (line: string): ServerEvent | undefined => {
    if (line === '') {
      const event = data.length > 0 ? { type: type || 'message', id, data: data.join('\n') } : undefined;
      [type, data, bufferedCharacters] = ['', [], 0];
      return event;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') type = value;
    else if (field === 'data') data.push(value);
    else if (field === 'id' && !value.includes('\0')) id = value;
    bufferedCharacters += line.length;
    return undefined;
  };

  return (piece) => {
    // A line may end in CR, LF or both, and the two may be in different chunks.
    const text = rest + (afterReturn && piece.startsWith('\n') ? piece.slice(1) : piece);
    if (piece !== '') afterReturn = piece.endsWith('\r');
    const lines = text.split(/\r\n|\n|\r/);
    rest = lines.pop() ?? '';
    const events = lines.map(readLine).filter((event) => event !== undefined);
    if (rest.length + bufferedCharacters > eventCharactersMax)
      throw new Error('An event of the stream is longer than 1 MB.');
    return events;
  };
}
