// Owns the public listener: every time-out and size set, requests that never become one answered all the same, a drain that no client
// notices. What a request means is the pipeline's.
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  STATUS_CODES,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ApiError, limits, toErrorJson } from '@sealpost/protocol';

export type ListenOptions = {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer };
};

export type HttpListener = {
  readonly url: string;
  /** Stops taking connections, lets requests under way finish, then cuts what is left after `deadlineMs`. */
  readonly close: (deadlineMs: number) => Promise<void>;
  /** Uses another certificate from the next connection on. */
  readonly useTls: (tls: NonNullable<ListenOptions['tls']>) => void;
};

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
  handle: RequestListener,
  newRequestId: () => string,
): Promise<HttpListener> => {
  const guarded: RequestListener = (request, response) => {
    if (request.rawHeaders.length < headersMax * 2) return handle(request, response);
    request.socket.end(
      renderRefusal(new ApiError('head_too_large', `At most ${headersMax} headers are read.`), newRequestId()),
    );
  };
  const server: Server = options.tls
    ? createHttpsServer({ ...serverOptions, ...options.tls, minVersion: 'TLSv1.2' }, guarded)
    : createHttpServer(serverOptions, guarded);
  server.maxHeadersCount = headersMax;
  server.on('checkContinue', guarded); // no body is ever read, so none is asked for
  server.on('checkExpectation', guarded);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) =>
    refuse(socket, explain(error), newRequestId()),
  );
  server.on('connect', (_: IncomingMessage, socket: Duplex) =>
    refuse(socket, new ApiError('method_not_allowed'), newRequestId()),
  );
  await listen(server, options);
  const { port } = server.address() as AddressInfo; // it listens on a port
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `${options.tls ? 'https' : 'http'}://${host}:${port}`,
    close: (deadlineMs) => closeServer(server, deadlineMs),
    useTls: (tls) =>
      'setSecureContext' in server &&
      (server as ReturnType<typeof createHttpsServer>).setSecureContext({ ...tls, minVersion: 'TLSv1.2' }),
  };
};

const listen = (server: Server, { host, port }: ListenOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      // Out of descriptors, say: the listener goes on, and what could not be accepted is the client's to retry.
      server.on('error', () => {});
      resolve();
    });
  });

// Requests under way are answered with `Connection: close`; connections that wait for a next request are closed now and again.
const closeServer = (server: Server, deadlineMs: number): Promise<void> =>
  new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), 50);
    const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
    server.close(() => {
      clearInterval(sweep);
      clearTimeout(deadline);
      resolve();
    });
    server.closeIdleConnections();
  });

const explain = (error: NodeJS.ErrnoException): ApiError => {
  if (error.code === 'HPE_HEADER_OVERFLOW') return new ApiError('head_too_large');
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ApiError('request_timeout');
  return new ApiError('malformed_target', 'The request is not valid HTTP/1.1.');
};

const refuse = (socket: Duplex, error: ApiError, requestId: string): void => {
  // A socket that was reset, or already answered, takes nothing more.
  if (!socket.writable || (socket as Socket).bytesWritten > 0) return void socket.destroy();
  socket.end(renderRefusal(error, requestId));
};

const renderRefusal = (error: ApiError, requestId: string): string => {
  const body = JSON.stringify(toErrorJson(error, requestId));
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
