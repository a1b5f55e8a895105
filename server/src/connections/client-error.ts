// What no handler sees: requests that Node rejects, and connections that its parser has released.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError, errorOf } from '@sealpost/protocol';

/** The parser has released a connection and no longer handles its errors. */
export const destroyOnError = (socket: Socket): void => void socket.on('error', () => socket.destroy());

/** The answer that has its turn on a connection. Node keeps it here; a table of our own would cost every request. */
export const answerUnderWay = (socket: Socket): ServerResponse | undefined =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined; // null between two answers

/**
 * Makes Node parse what the stream of a TLS connection emits, instead of reading the connection itself. Node's parser drops what is decrypted
 * while it is paused for a slow reader (`HPE_PAUSED`); a stream keeps it. `tests/http/node-tls-pipelining.mjs` shows the defect.
 */
export function parseFromStream(socket: Socket): void {
  const listener = (): void => {};
  socket.on('data', listener).off('data', listener); // Node stops reading the connection itself at the first listener
}

/** Why Node rejected a request, as the error that is answered. */
export const explainClientError = (error: NodeJS.ErrnoException): ApiError => {
  if (error.code === 'HPE_HEADER_OVERFLOW') return errorOf('head_too_large');
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return errorOf('request_timeout');
  return new ApiError('malformed_target', 'The request is not valid HTTP/1.1.');
};
