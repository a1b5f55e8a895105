// POST /sign-in, only in a demo: exchanges the one-time code of a link for the demo's credentials (D154). It reads no body; the code is in a header that
// other sites cannot send, and other sites cannot read the answer.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError, errorOf } from '@sealpost/protocol';
import { createRateLimiter } from '../access/rate-limit.ts';
import type { SignInCodes } from '../access/sign-in-code.ts';
import type { Pipeline, RequestEvent } from './pipeline.ts';
import { toApiError, toProblem } from './problem.ts';

/** Codes, and what they are exchanged for. */
export type SignIn = {
  readonly codes: SignInCodes;
  readonly credentials: { readonly userId: string; readonly secret: string };
};

/** Attempts per second, of everyone together: a code cannot be guessed, and need not be tried often. */
const attemptsPerSecond = 20;

/** Puts the exchange before other requests. */
export function withSignIn(
  handle: Pipeline['handle'],
  { codes, credentials }: SignIn,
  newRequestId: () => string,
  observe: (event: RequestEvent) => void,
  monotonicMs: () => number = () => performance.now(),
): Pipeline['handle'] {
  const attempts = createRateLimiter(1);
  const exchange = ({ headers }: IncomingMessage): object => {
    const { 'x-sign-in-code': code, 'sec-fetch-site': site = 'same-origin' } = headers;
    if (!attempts.take('sign-in', attemptsPerSecond, monotonicMs()).allowed) throw errorOf('too_many_failures');
    if (typeof code !== 'string' || site !== 'same-origin' || !codes.take(code))
      throw new ApiError('unauthorized', 'This sign-in link was already used, or has expired.');
    return credentials;
  };
  return (request, response, upgrade) => {
    if (request.method !== 'POST' || request.url !== '/sign-in' || upgrade !== undefined)
      return handle(request, response, upgrade);
    const [requestId, startedMs] = [newRequestId(), monotonicMs()];
    const answer = (code: string | null, status: number, body: string, headers: readonly string[] = []): void => {
      const bytes = send(response, status, requestId, body, headers);
      const durationMs = monotonicMs() - startedMs;
      observe({
        kind: 'request',
        requestId,
        route: null,
        method: 'POST',
        status,
        code,
        userId: null,
        address: request.socket.remoteAddress ?? '',
        bytes,
        durationMs,
      });
    };
    try {
      answer(null, 200, JSON.stringify(exchange(request)));
    } catch (thrown) {
      const error = toApiError(thrown);
      const { status, body, headers } = toProblem(error, requestId, 1);
      answer(error.code, status, body, headers);
    }
  };
}

/** Without the CORS headers of other answers: no other site may read this one. */
const send = (
  response: ServerResponse,
  status: number,
  requestId: string,
  body: string,
  headers: readonly string[],
): number => {
  const bytes = Buffer.byteLength(body);
  response.writeHead(status, [
    ...['Content-Type', 'application/json', 'Content-Length', String(bytes)],
    ...['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff', 'X-Request-Id', requestId],
    ...['Connection', 'close'], // what else the client sends is not read
    ...headers,
  ]);
  response.end(body);
  return bytes;
};
