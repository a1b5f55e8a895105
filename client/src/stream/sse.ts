// Live reports over server-sent events, with fetch: not reading the body applies backpressure to the server.
import { SealpostError } from '../errors.ts';
import { paths } from '../request/paths.ts';
import { parseMessage, type ReceivedReport } from './received-report.ts';
import {
  type ConnectionHandlers,
  type ConnectionRequest,
  createWatchdog,
  handshakeMs,
  originHeaders,
  type Transport,
  toRefusal,
} from './transport.ts';

const refusalCharactersMax = 65_536;

/** The transport on fetch. */
export const serverSentEvents: Transport = async (request, handlers) => {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort();
  if (request.signal.aborted) return 'aborted';
  request.signal.addEventListener('abort', onAbort);
  let silent = false;
  const ring = (): void => {
    silent = true;
    controller.abort();
  };
  try {
    return await run(request, handlers, controller.signal, ring);
  } catch (error) {
    if (request.signal.aborted) return 'aborted';
    if (silent) return `silent for ${Math.round(request.silenceMs / 1_000)} s`;
    if (error instanceof SealpostError) throw error;
    return wordsOf(error);
  } finally {
    request.signal.removeEventListener('abort', onAbort);
    // Ends a body that was not read to its end.
    controller.abort();
  }
};

const run = async (
  request: ConnectionRequest,
  handlers: ConnectionHandlers,
  signal: AbortSignal,
  ring: () => void,
): Promise<string> => {
  const handshake = createWatchdog(handshakeMs, ring);
  handshake.touch();
  const response = await send(request, signal).finally(handshake.stop);
  if (response.status !== 200 || response.body === null) {
    handshake.touch();
    const text = await response.text().finally(handshake.stop);
    throw toRefusal(
      { status: response.status, headers: response.headers, text: text.slice(0, refusalCharactersMax) },
      request.baseUrl,
      request.nowMs,
    );
  }
  // A web server may answer any path with its own page.
  if (!/^text\/event-stream\b/i.test(response.headers.get('Content-Type') ?? ''))
    throw new SealpostError('not_supported', `${new URL(request.baseUrl).host} has no event stream.`, { status: 200 });
  handlers.opened();
  return readEvents(response.body.getReader(), request, handlers, ring);
};

const send = async (
  { baseUrl, feedIds, origin, sign, fetch, position }: ConnectionRequest,
  signal: AbortSignal,
): Promise<Response> => {
  const target = `${paths.reportStream}?feedIDs=${feedIds.join(',')}`;
  return fetch(`${baseUrl}${target}`, {
    headers: {
      ...(await sign('GET', target)),
      ...originHeaders(origin),
      ...(position === undefined ? {} : { 'Last-Event-ID': position }),
    },
    // A redirect would carry the signed headers elsewhere.
    redirect: 'manual',
    credentials: 'omit',
    cache: 'no-store',
    signal,
  });
};

const readEvents = async (
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { backpressure, silenceMs }: ConnectionRequest,
  handlers: ConnectionHandlers,
  ring: () => void,
): Promise<string> => {
  const decoder = new TextDecoder();
  const readEvent = createEventReader();
  const watchdog = createWatchdog(silenceMs, ring);
  try {
    for (;;) {
      // Not read while the consumer is behind: the platform's buffers fill, then the server's.
      await backpressure.drained();
      watchdog.touch();
      const { done, value } = await reader.read();
      watchdog.stop();
      if (done) return 'the server ended the stream';
      handlers.received(value.length);
      for (const { type, id, data } of readEvent(decoder.decode(value, { stream: true }))) {
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

/** Why fetch failed: the system's code where there is one, never the request. */
const wordsOf = (error: unknown): string => {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const { code, message } = Object(inner) as { readonly code?: unknown; readonly message?: unknown }; // shown as text only
  return typeof code === 'string' ? code : typeof message === 'string' ? message : 'the connection failed';
};

/** One event. `id` is the last one received, which by the format stays until the next. */
export type ServerEvent = { readonly type: string; readonly id: string | undefined; readonly data: string };

/** Longest event in characters; the longest report takes 9,000. */
const eventCharactersMax = 1_048_576;

/** Parses events from chunks of text. An incomplete event waits for the rest; one that is too long throws. */
export const createEventReader = (): ((piece: string) => readonly ServerEvent[]) => {
  let rest = '';
  let afterReturn = false;
  let [type, data, id]: [string, string[], string | undefined] = ['', [], undefined];
  let held = 0;

  const readLine = (line: string): ServerEvent | undefined => {
    if (line === '') {
      const event = data.length > 0 ? { type: type || 'message', id, data: data.join('\n') } : undefined;
      [type, data, held] = ['', [], 0];
      return event;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') type = value;
    else if (field === 'data') data.push(value);
    else if (field === 'id' && !value.includes('\0')) id = value;
    held += line.length;
    return undefined;
  };

  return (piece) => {
    // A line may end in CR, LF or both, and the two may be in different chunks.
    const text = rest + (afterReturn && piece.startsWith('\n') ? piece.slice(1) : piece);
    if (piece !== '') afterReturn = piece.endsWith('\r');
    const lines = text.split(/\r\n|\n|\r/);
    rest = lines.pop() ?? '';
    const events = lines.map(readLine).filter((event) => event !== undefined);
    if (rest.length + held > eventCharactersMax) throw new Error('An event of the stream is longer than 1 MB.');
    return events;
  };
};
