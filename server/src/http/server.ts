// The public listener: sets every time-out and size limit, answers requests that Node rejects, and drains without failed requests. The pipeline
// handles requests; the connection limits end connections.
import { createServer as createHttpServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { ApiError, errorOf, limits } from '@sealpost/protocol';
import {
  answerUnderWay,
  type ConnectionLimits,
  type ConnectionRules,
  createConnectionLimits,
  type DropReason,
  destroyOnError,
  endAfterAnswers,
  explainClientError,
  inTurn,
  isAnswerable,
  letProcessEnd,
  parseFromStream,
  tlsOptions,
} from '../connections/connection-limits.ts';
import { completeHeaders, keepAliveMs, requestClass } from '../connections/node-internals.ts';
import { urlHost } from '../runtime/urls.ts';
import { type AnswerContext, createAnswerWriter, renderAnswer } from './answer.ts';
import type { Pipeline, RequestEvent } from './pipeline.ts';
import { type ErrorAnswer, toProblem } from './problem.ts';

export type ListenOptions = {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Does it keep the process alive? True by default. */
  readonly keepsProcess?: boolean;
  /** How many connections there may be, and what may wait for them; generous bounds where absent. */
  readonly connections?: Partial<ConnectionRules>;
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer };
  /** Called for each connection, whatever becomes of it, and over TLS again when it has shaken hands. */
  readonly onAccepted?: () => void;
};

export type HttpListener = {
  readonly url: string;
  /** Connections that are open, and bytes that wait for their clients. */
  readonly counts: ConnectionLimits['counts'];
  /** Accepts no new connections; open ones continue. */
  readonly stopListening: () => void;
  /** Stops accepting connections, lets running requests finish, and cuts what is left after `deadlineMs`. */
  readonly close: (deadlineMs: number) => Promise<void>;
  /** Uses another certificate from the next connection on. */
  readonly useTls: (tls: NonNullable<ListenOptions['tls']>) => void;
};

/** A connection that was closed without an answer, or in the middle of one. `accept`: the system had no descriptor left. */
export type ConnectionDropped = { readonly kind: 'connectionDropped'; readonly reason: DropReason };

/** Events that no handler sees: dropped connections, and answers to requests that Node rejected. */
export type ListenerEvent = ConnectionDropped | RequestEvent;

const connectionRuleDefaults: ConnectionRules = {
  connectionsMax: 16_384,
  connectionsPerAddress: 0,
  addressOf: (peer) => peer,
  unreadBytesMax: 268_435_456,
  unreadBytesPerAccount: 67_108_864,
};

const serverOptions = {
  maxHeaderSize: limits.requestHeadBytesMax,
  headersTimeout: 5_000,
  requestTimeout: 8_000,
  keepAliveTimeout: keepAliveMs,
  connectionsCheckingInterval: 1_000,
  requireHostHeader: false,
  optimizeEmptyRequests: true,
  IncomingMessage: requestClass,
} as const;

/** More headers than this are rejected, by us: some Node releases drop the rest in silence, others close the connection. */
const headersMax = 200;

export async function openHttpServer(
  options: ListenOptions,
  handle: Pipeline['handle'],
  newRequestId: () => string,
  tell: (event: ListenerEvent) => void = () => {},
): Promise<HttpListener> {
  const refuse = createRefuse(newRequestId, tell, options.tls !== undefined);
  const { writeAnswer } = createAnswerWriter();
  const guarded: Pipeline['handle'] = (request, response, upgrade) => {
    completeHeaders(request);
    if (request.rawHeaders.length <= headersMax * 2) return handle(request, response, upgrade);
    const error = new ApiError('head_too_large', `The request has more than ${headersMax} headers.`);
    refuse(error, request.socket, request.method, (problem, context) => void writeAnswer(response, problem, context));
  };
  const refuseOn = (socket: Socket, error: ApiError, method?: string): void => {
    if (!socket.writable) socket.destroy();
    else if (answerUnderWay(socket) !== undefined) endAfterAnswers(socket);
    else if (socket.bytesWritten > 0) socket.destroy();
    else refuse(error, socket, method, (problem, context) => socket.end(renderAnswer(problem, context)));
  };
  const onRequest = inTurn((request, response) => guarded(request, response));
  const server: Server = options.tls
    ? createHttpsServer({ ...serverOptions, ...tlsOptions, ...options.tls }, onRequest)
    : createHttpServer(serverOptions, onRequest);
  server.maxHeadersCount = 0; // none of node's own: `maxHeaderSize` bounds what it parses
  const connectionLimits = createConnectionLimits({
    rules: { ...connectionRuleDefaults, ...options.connections },
    monotonicMs: () => performance.now(),
    onDropped: (reason) => tell({ kind: 'connectionDropped', reason }),
  });
  connectionLimits.watch(server, options.tls !== undefined);
  if (options.keepsProcess === false) letProcessEnd(server);
  if (options.tls !== undefined) server.on('secureConnection', parseFromStream);
  if (options.onAccepted !== undefined)
    for (const event of ['connection', 'secureConnection']) server.on(event, options.onAccepted);
  server.on('checkContinue', onRequest); // no body is ever read, so none is asked for
  server.on('checkExpectation', onRequest);
  // A server accepts plain and TLS sockets. One whose handshake failed gets here too, and cannot be answered.
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const accepted = socket as Socket; // as above; the types say Duplex
    if (isAnswerable(accepted)) refuseOn(accepted, explainClientError(error));
    else socket.destroy();
  });
  server.on('connect', (_: IncomingMessage, socket) => {
    const accepted = socket as Socket; // as above
    destroyOnError(accepted);
    refuseOn(accepted, errorOf('method_not_allowed', { allow: 'GET, HEAD, OPTIONS' }), 'CONNECT');
  });
  server.on('upgrade', (request: IncomingMessage, socket, head) => {
    const accepted = socket as Socket; // as above
    destroyOnError(accepted);
    if (answerUnderWay(accepted) !== undefined) return endAfterAnswers(accepted);
    guarded(request, responseOn(request, accepted), { request, socket, head });
  });
  await listen(server, options, tell).catch((error: unknown) => {
    connectionLimits.destroyAll();
    throw error;
  });
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `${options.tls ? 'https' : 'http'}://${urlHost(options.host)}:${port}`,
    counts: connectionLimits.counts,
    stopListening: () => stopListening(server),
    close: (deadlineMs) => closeServer(server, connectionLimits, deadlineMs),
    useTls: (tls) =>
      'setSecureContext' in server &&
      (server as ReturnType<typeof createHttpsServer>).setSecureContext({ ...tlsOptions, ...tls }), // with TLS options it is one
  };
}

const listen = (server: Server, { host, port }: ListenOptions, tell: (event: ListenerEvent) => void): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      // Out of descriptors, for example: the listener continues, and the client retries.
      server.on('error', () => tell({ kind: 'connectionDropped', reason: 'accept' }));
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
const closeServer = (server: Server, connectionLimits: ConnectionLimits, deadlineMs: number): Promise<void> =>
  new Promise((resolve) => {
    const idleFromMs = performance.now() + Math.min(lastRequestMs, deadlineMs);
    const sweep = setInterval(() => {
      if (performance.now() < idleFromMs) return;
      server.closeIdleConnections();
      connectionLimits.destroySilent();
    }, 50);
    // Not the server's own list, which knows neither upgraded connections nor handshakes under way.
    const deadline = setTimeout(connectionLimits.destroyAll, deadlineMs);
    const finish = (): void => {
      clearInterval(sweep);
      clearTimeout(deadline);
      connectionLimits.destroyAll();
      server.close(); // its own, which ends the timer that looks at connections; it would keep the server in memory
      resolve();
    };
    server.once('close', finish);
    stopListening(server);
    // A server that stopped listening earlier may have closed its last connection, and emitted `close`, already.
    server.getConnections((_, count) => count === 0 && finish());
  });

/** A connection that asks for an upgrade is answered by hand, and ends with the answer. */
const responseOn = (request: IncomingMessage, socket: Socket): ServerResponse => {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.destroySoon();
  });
  return response;
};

/** Answers what no handler sees, by `send`, and reports it. The method is that of the request, where one was read. */
const createRefuse =
  (newRequestId: () => string, tell: (event: ListenerEvent) => void, isTls: boolean) =>
  (
    error: ApiError,
    { remoteAddress: address = '' }: Socket,
    method = '',
    send: (problem: ErrorAnswer, context: AnswerContext) => void,
  ): void => {
    const requestId = newRequestId();
    const problem = toProblem(error, requestId, 1);
    const { code } = error;
    const { status, body } = problem;
    send(problem, { requestId, head: method === 'HEAD', acceptsGzip: false, rate: undefined, closing: true, isTls });
    const bytes = Buffer.byteLength(body);
    tell({
      kind: 'request',
      requestId,
      route: null,
      method,
      status,
      code,
      userId: null,
      address,
      bytes,
      durationMs: 0,
    });
  };
