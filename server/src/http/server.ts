// Owns the public listener: every time-out and size set, requests that never become one answered all the same, a drain that no client
// notices. What a request means is the pipeline's.
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ApiError, limits, toErrorJson } from '@sealpost/protocol';
import { urlHost } from '../url-host.ts';
import type { Pipeline, RequestEvent } from './pipeline.ts';

export type ListenOptions = {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Connections open at once; more are turned away. */
  readonly connectionsMax?: number;
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer };
};

export type HttpListener = {
  readonly url: string;
  /** Takes no new connections; those that are open go on. */
  readonly stopListening: () => void;
  /** Stops taking connections, lets requests under way finish, then cuts what is left after `deadlineMs`. */
  readonly close: (deadlineMs: number) => Promise<void>;
  /** Uses another certificate from the next connection on. */
  readonly useTls: (tls: NonNullable<ListenOptions['tls']>) => void;
};

/** A connection that was turned away without an answer: too many were open, or the system had no descriptor left. */
export type ConnectionDropped = { readonly kind: 'connectionDropped' };

/** What the listener tells, which no handler sees: dropped connections, and answers to what never became a request of ours. */
export type ListenerEvent = ConnectionDropped | RequestEvent;

/** As many as a process with a common limit of descriptors can have. */
const connectionsMaxDefault = 16_384;

const serverOptions = {
  maxHeaderSize: limits.requestHeadBytesMax,
  headersTimeout: 5_000,
  requestTimeout: 8_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  requireHostHeader: false,
  optimizeEmptyRequests: true,
} as const;

/** More headers than this are refused; node would drop the rest in silence. */
const headersMax = 200;

export const openHttpServer = async (
  options: ListenOptions,
  handle: Pipeline['handle'],
  newRequestId: () => string,
  tell: (event: ListenerEvent) => void = () => {},
): Promise<HttpListener> => {
  const refuse = createRefuse(newRequestId, tell);
  const guarded: Pipeline['handle'] = (request, response, upgrade) => {
    if (request.rawHeaders.length < headersMax * 2) return handle(request, response, upgrade);
    refuse(request.socket, new ApiError('head_too_large', `At most ${headersMax} headers are read.`), request.method);
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => guarded(request, response);
  const server: Server = options.tls
    ? createHttpsServer({ ...serverOptions, ...options.tls, minVersion: 'TLSv1.2' }, onRequest)
    : createHttpServer(serverOptions, onRequest);
  server.maxHeadersCount = headersMax;
  server.maxConnections = options.connectionsMax ?? connectionsMaxDefault;
  server.on('drop', () => tell({ kind: 'connectionDropped' }));
  server.on('checkContinue', onRequest); // no body is ever read, so none is asked for
  server.on('checkExpectation', onRequest);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) =>
    takesNoAnswer(socket) ? socket.destroy() : refuse(socket, explain(error)),
  );
  server.on('connect', (_: IncomingMessage, socket: Duplex) =>
    takesNoAnswer(socket) ? socket.destroy() : refuse(socket, new ApiError('method_not_allowed'), 'CONNECT'),
  );
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const response = responseOn(request, socket as Socket); // what a server accepts is one, plain or TLS
    if (response !== undefined) guarded(request, response, { request, socket, head });
  });
  await listen(server, options, tell);
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `${options.tls ? 'https' : 'http'}://${urlHost(options.host)}:${port}`,
    stopListening: () => stopListening(server),
    close: (deadlineMs) => closeServer(server, deadlineMs),
    useTls: (tls) =>
      'setSecureContext' in server &&
      (server as ReturnType<typeof createHttpsServer>).setSecureContext({ ...tls, minVersion: 'TLSv1.2' }),
  };
};

const listen = (server: Server, { host, port }: ListenOptions, tell: (event: ListenerEvent) => void): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      // Out of descriptors, say: the listener goes on, and what could not be accepted is the client's to retry.
      server.on('error', () => tell({ kind: 'connectionDropped' }));
      resolve();
    });
  });

// Not the server's own close, which also cuts idle connections, and with them a request that is just coming in.
const stopListening = (server: Server): void => {
  if (server.listening) NetServer.prototype.close.call(server);
};

/** An open connection has this long to send one more request, whose answer says that it was the last. */
const lastRequestMs = 500;

// Requests are now answered with `Connection: close`; connections that still wait for a next one are closed after a while, then again
// and again.
const closeServer = (server: Server, deadlineMs: number): Promise<void> =>
  new Promise((resolve) => {
    const idleFromMs = performance.now() + Math.min(lastRequestMs, deadlineMs);
    const sweep = setInterval(() => performance.now() >= idleFromMs && server.closeIdleConnections(), 50);
    const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
    const finish = (): void => {
      clearInterval(sweep);
      clearTimeout(deadline);
      resolve();
    };
    server.once('close', finish);
    stopListening(server);
    // One that stopped listening before may have lost its last connection since, and has told so.
    server.getConnections((_, count) => count === 0 && finish());
  });

/** The parser has let go of a connection that asks for an upgrade: it is answered by hand, and ends with the answer. */
const responseOn = (request: IncomingMessage, socket: Socket): ServerResponse | undefined => {
  socket.on('error', () => socket.destroy());
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  try {
    response.assignSocket(socket);
  } catch {
    socket.destroy(); // an earlier request on it is not answered yet, and now cannot be
    return undefined;
  }
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.destroySoon();
  });
  return response;
};

const explain = (error: NodeJS.ErrnoException): ApiError => {
  if (error.code === 'HPE_HEADER_OVERFLOW') return new ApiError('head_too_large');
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ApiError('request_timeout');
  return new ApiError('malformed_target', 'The request is not valid HTTP/1.1.');
};

/** Answers what no handler sees, and tells of it. The method is that of the request, where one was read. */
const createRefuse =
  (newRequestId: () => string, tell: (event: ListenerEvent) => void) =>
  (socket: Duplex, error: ApiError, method = ''): void => {
    const requestId = newRequestId();
    const body = JSON.stringify(toErrorJson(error, requestId));
    socket.end(renderRefusal(error, requestId, body));
    const { status, code } = error;
    const bytes = Buffer.byteLength(body);
    tell({ kind: 'request', requestId, route: null, method, status, code, userId: null, bytes, durationMs: 0 });
  };

/** A socket that was reset, or already answered, takes nothing more. */
const takesNoAnswer = (socket: Duplex): boolean => !socket.writable || (socket as Socket).bytesWritten > 0;

const renderRefusal = (error: ApiError, requestId: string, body: string): string => {
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    `X-Request-Id: ${requestId}`,
    'Access-Control-Allow-Origin: *',
    ...(error.status === 405 ? ['Allow: GET, HEAD, OPTIONS'] : []),
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
};
