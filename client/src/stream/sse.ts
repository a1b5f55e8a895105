// Owns live reports over Server-Sent Events, read from fetch: a body that is not read holds the server back by itself.
import { SealpostError } from '../errors.ts';
import { createEventReader } from './events.ts';
import { parseMessage } from './received-report.ts';
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
  // A website answers any path with its own page.
  if (!/^text\/event-stream\b/i.test(response.headers.get('Content-Type') ?? ''))
    throw new SealpostError('not_supported', `${new URL(request.baseUrl).host} has no event stream.`, { status: 200 });
  handlers.opened();
  return readEvents(response.body.getReader(), request, handlers, ring);
};

const send = async (
  { baseUrl, feedIds, origin, sign, fetch, position }: ConnectionRequest,
  signal: AbortSignal,
): Promise<Response> => {
  const target = `/api/v1/reports/stream?feedIDs=${feedIds.join(',')}`;
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
  { valve, silenceMs }: ConnectionRequest,
  handlers: ConnectionHandlers,
  ring: () => void,
): Promise<string> => {
  const decoder = new TextDecoder();
  const readEvent = createEventReader();
  const watchdog = createWatchdog(silenceMs, ring);
  try {
    for (;;) {
      // Not read while the consumer is behind: the platform's buffers fill, then the server's.
      await valve.room();
      watchdog.touch();
      const { done, value } = await reader.read();
      watchdog.stop();
      if (done) return 'the server ended the stream';
      handlers.received(value.length);
      for (const { type, id, data } of readEvent(decoder.decode(value, { stream: true }))) {
        if (type === 'missed') handlers.missed(id);
        else if (type === 'message' || type === 'report') handlers.report(parseMessage(data), id);
      }
    }
  } finally {
    watchdog.stop();
  }
};

/** Why fetch failed: the system's code where there is one, never the request. */
const wordsOf = (error: unknown): string => {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const { code, message } = Object(inner) as { readonly code?: unknown; readonly message?: unknown }; // shown as text only
  return typeof code === 'string' ? code : typeof message === 'string' ? message : 'the connection failed';
};
