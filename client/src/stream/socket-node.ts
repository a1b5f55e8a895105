// WebSockets in Node, with the package ws: Node 22's own WebSocket takes no headers and cannot be paused.
import type { IncomingMessage } from 'node:http';
import { oneLine } from '@sealpost/protocol';
import type { OpenSocket, SocketHandlers } from './socket.ts';
import type { Transport } from './transport.ts';
import { createWebSocketTransport } from './websocket.ts';

/** Node sends the client's User-Agent. */
export const sendsUserAgent = true;

const messageBytesMax = 1_048_576;
const refusalCharactersMax = 65_536;
/** How long the server has to answer a close before the socket is terminated. */
const closeMs = 1_000;

/** The WebSocket transport; undefined if ws is not installed. */
export async function loadSockets(): Promise<Transport | undefined> {
  const openSocket = await loadSocket();
  return openSocket && createWebSocketTransport(openSocket);
}

/** Loads ws; undefined if it is not installed. */
export async function loadSocket(): Promise<OpenSocket | undefined> {
  try {
    return createOpener((await import('ws')).WebSocket);
  } catch {
    return undefined;
  }
}

const createOpener =
  (WebSocket: typeof import('ws').WebSocket): OpenSocket =>
  (url, headers, handlers) => {
    const socket = new WebSocket(url, {
      headers,
      maxPayload: messageBytesMax,
      // Signatures in hex hardly compress, and a compression window per socket costs memory on both sides.
      perMessageDeflate: false,
    });
    let isReported = false;
    let reportRefusal: (() => void) | undefined;
    const report = (reason: string): void => {
      if (!isReported) handlers.closed(oneLine(reason)); // it may have what a server said
      isReported = true;
    };
    socket.on('open', handlers.opened);
    socket.on('message', (bytes) => handlers.message(String(bytes)));
    socket.on('ping', handlers.alive);
    socket.on('pong', handlers.alive);
    socket.on('unexpected-response', (request, response) => {
      isReported = true;
      reportRefusal = readRefusal(response, handlers, () => request.destroy());
    });
    socket.on('error', (error) => report(describe(error)));
    socket.on('close', (code, reason) => report(`closed by the server with ${code} ${reason}`));
    // ws throws if a socket is paused or resumed before it is open or after its handshake failed.
    const whenOpen = (act: () => void): void => {
      if (socket.readyState === WebSocket.OPEN) act();
    };
    return {
      pause: () => whenOpen(() => socket.pause()),
      resume: () => whenOpen(() => socket.resume()),
      ping: () => whenOpen(() => socket.ping()),
      expire: () => reportRefusal?.(),
      close: () => {
        isReported = true;
        whenOpen(() => {
          socket.resume();
          socket.close(1000);
        });
        if (socket.readyState === WebSocket.CONNECTING) socket.terminate();
        setTimeout(() => socket.terminate(), closeMs).unref();
      },
    };
  };

// Only the code and the message: other properties of an error may contain addresses and requests.
const describe = (error: Error): string => {
  const { code } = error as { readonly code?: unknown }; // an error of the system has one
  return typeof code === 'string' && !error.message.includes(code) ? `${code} ${error.message}` : error.message;
};

/** Reads a rejection and reports it when it is complete, too long or cut off, or when the returned function is called. */
const readRefusal = (response: IncomingMessage, handlers: SocketHandlers, drop: () => void): (() => void) => {
  let body = '';
  let isReported = false;
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headers)) if (typeof value === 'string') headers.set(name, value);
  const report = (): void => {
    if (isReported) return;
    isReported = true;
    handlers.refused({ status: response.statusCode ?? 0, headers, text: body.slice(0, refusalCharactersMax) });
    drop();
  };
  response.setEncoding('utf8');
  response.on('data', (piece: string) => {
    body += piece;
    if (body.length > refusalCharactersMax) report();
  });
  response.on('end', report);
  response.on('close', report);
  response.on('error', report);
  return report;
};
