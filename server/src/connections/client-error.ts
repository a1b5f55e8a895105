// What no handler sees: requests that Node rejects, and connections that its parser has released.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError, errorOf } from '@sealpost/protocol';

/** The parser has released a connection and no longer handles its errors. */
export const destroyOnError = (socket: Socket): void => void socket.on('error', () => socket.destroy());

/** The answer that has its turn on a connection. Node keeps it here; a table of our own would cost every request. */
export const answerUnderWay = (socket: Socket): ServerResponse | undefined =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined; // null between two answers

/** Makes what lets everything that was asked before be answered, in its order, and ends the connection then. */
export const createEnding = () => {
  const ending = new WeakSet<Socket>();
  const endAfterAnswers = (socket: Socket): void => {
    const answer = answerUnderWay(socket);
    if (answer === undefined) socket.destroySoon();
    else if (!socket.destroyed) answer.once('close', () => endAfterAnswers(socket));
  };
  // Further errors on such a connection are ignored: each would wait for the same end.
  return (socket: Socket): void => {
    if (ending.has(socket)) return;
    ending.add(socket);
    endAfterAnswers(socket);
  };
};

/** Why Node rejected a request, as the error that is answered. */
export const explainClientError = (error: NodeJS.ErrnoException): ApiError => {
  if (error.code === 'HPE_HEADER_OVERFLOW') return errorOf('head_too_large');
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return errorOf('request_timeout');
  return new ApiError('malformed_target', 'The request is not valid HTTP/1.1.');
};
