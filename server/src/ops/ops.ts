// The private listener: probes, metrics and, where this process ingests, POST /ingest and below. Never put it on a public address.

import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, isIP, type Socket } from 'node:net';
import { type ApiError, errorOf, statusOf } from '@sealpost/protocol';
import {
  answerUnderWay,
  type ConnectionLimits,
  createConnectionLimits,
  destroyOnError,
  endAfterAnswers,
  explainClientError,
  inTurn,
  isAnswerable,
  letProcessEnd,
  parseFromStream,
  tlsOptions,
} from '../connections/connection-limits.ts';
import { connectionsWithin, type DescriptorWatch, watchDescriptors } from '../connections/descriptors.ts';
import { metricsContentType } from '../observe/metrics.ts';
import type { Listener } from '../observe/observe.ts';
import { timedOut, within } from '../runtime/deadline.ts';
import { continueIfAsked } from '../runtime/expectation.ts';
import type { TlsPair } from '../runtime/tls-files.ts';
import { urlHost } from '../runtime/urls.ts';

/** Why a request is rejected. */
export type PageRefusal = { readonly code: 'forbidden' | 'unknown_host'; readonly message: string };

/** Names that no public name server can point at this machine, and addresses, which are none. */
const isLocal = (host: string): boolean =>
  isIP(host.replace(/^\[|\]$/g, '')) !== 0 || !host.includes('.') || /\.(?:internal|local|localhost)$/.test(host);

/** Looks at the headers of a request; `names` are the other names that the listener is reached by. Undefined lets it in. */
export function createPageCheck(names: readonly string[]) {
  const known = new Set(names.map((name) => name.toLowerCase()));
  return (headers: IncomingHttpHeaders): PageRefusal | undefined => {
    const site = headers['sec-fetch-site'];
    if (headers.origin !== undefined || (site !== undefined && site !== 'none')) {
      const message =
        'Web pages cannot use the private listener. Use a program that sends no Origin header, or enter the address in the browser yourself.';
      return { code: 'forbidden', message };
    }
    const host = (headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
    if (isLocal(host) || known.has(host)) return undefined;
    return {
      code: 'unknown_host',
      message: `The private listener does not answer for the host ${host.slice(0, 253)}. Use an IP address or a local name, or add it to the setting opsHosts.`,
    };
  };
}

/** Why this process should get no requests; undefined when it may. A throw or silence counts as a reason. */
export type ReadyCheck = () => string | undefined | Promise<string | undefined>;

export type OpsOptions = {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Does it keep the process alive? True by default. */
  readonly keepsProcess?: boolean;
  /** Public names that requests may have in `Host`, besides `host`. */
  readonly hosts?: readonly string[] | undefined;
  readonly tls?: TlsPair | undefined;
  /** Answers nothing but /ingest. */
  readonly isForIngest?: boolean;
  /** By name, which precedes the reason. */
  readonly checks: Readonly<Record<string, ReadyCheck>>;
  /** Problems of a node that is still ready; added to the answer of /readyz. */
  readonly degraded?: () => readonly string[];
  /** The text of /metrics. */
  readonly metrics: () => Promise<string>;
  /** Answers /ingest and below, whatever the method (`createIngestHandler` makes one); without it there is no such path. */
  readonly ingest?: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** A further path, with everything below it. */
  readonly further?: {
    readonly path: `/${string}`;
    readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  };
  readonly observe: Listener;
  /** A check or the metrics may take this long. */
  readonly answerMaxMs?: number;
  /** Closing waits this long for what is under way. */
  readonly closeMaxMs?: number;
};

export type OpsListener = {
  readonly url: string;
  /** Waits for what is under way, `closeMaxMs` at most, or as long as is said here. */
  readonly close: (deadlineMs?: number) => Promise<void>;
  /** Uses another certificate from the next connection on. */
  readonly useTls: (tls: TlsPair) => void;
};

// Probes must see a failure within two seconds, and most give up after a second or a few.
const answerMaxMsDefault = 1_500;
const closeMaxMsDefault = 10_000;
const connectionRules = {
  connectionsMax: 256,
  connectionsPerAddress: 0, // probes, scrapers and senders may all come through one
  addressOf: () => undefined,
  unreadBytesMax: 67_108_864,
  unreadBytesPerAccount: 67_108_864,
} as const;
/** A silent peer is cut off after this long; uploads may take as long as they need, so requests have no other end. */
const silenceMaxMs = 60_000;

const serverOptions = {
  requestTimeout: 0,
  headersTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  requireHostHeader: false, // the handler requires it, and says so
} as const;

/** Listens until closed. */
export async function openOpsListener(options: OpsOptions): Promise<OpsListener> {
  const { host, port, observe, tls, closeMaxMs = closeMaxMsDefault } = options;
  const descriptors = watchDescriptors(observe);
  const handle = inTurn(createOpsHandler(options, descriptors));
  const secure = tls && createHttpsServer({ ...serverOptions, ...tlsOptions, ...tls }, handle);
  const server: Server = secure ?? createHttpServer(serverOptions, handle);
  server.on('checkContinue', handle); // whoever reads the body asks for it
  server.on('checkExpectation', handle);
  server.on('clientError', (error, socket) => refuse(socket as Socket, explainClientError(error))); // the types say Duplex
  server.on('connect', (_, socket) => {
    const accepted = socket as Socket; // as above
    destroyOnError(accepted);
    refuse(accepted, errorOf('method_not_allowed', { allow: 'GET, HEAD' }));
  });
  server.once('close', descriptors.stop);
  server.setTimeout(silenceMaxMs);
  const connectionLimits = createConnectionLimits({
    rules: { ...connectionRules, connectionsMax: connectionsWithin(connectionRules.connectionsMax, 'private').max },
    monotonicMs: () => performance.now(),
    onDropped: (reason) => observe({ kind: 'connectionDropped', reason }),
  });
  connectionLimits.watch(server, tls !== undefined);
  server.on('secureConnection', parseFromStream);
  if (options.keepsProcess === false) letProcessEnd(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(void server.off('error', reject)));
  }).catch((error: unknown) => {
    descriptors.stop();
    connectionLimits.destroyAll();
    throw error;
  });
  // A connection that cannot be accepted, for example without a free descriptor, must not end the process.
  server.on('error', (error) =>
    observe({ kind: 'warning', code: 'ops_listener_failed', message: 'The private listener failed.', error }),
  );
  const address = server.address() as AddressInfo; // it listens on a port
  return {
    url: `${tls ? 'https' : 'http'}://${urlHost(host)}:${address.port}`,
    close: (ms = closeMaxMs) => closeServer(server, connectionLimits, ms),
    useTls: (renewed) => secure?.setSecureContext({ ...tlsOptions, ...renewed }),
  };
}

/** Answers what no handler sees, in its turn, and closes the connection. */
function refuse(socket: Socket, error: ApiError): void {
  const answer = answerUnderWay(socket);
  if (!isAnswerable(socket) || !socket.writable) socket.destroy();
  else if (answer?.req.complete) endAfterAnswers(socket);
  else if (answer === undefined) socket.end(renderRefusal(error));
  else {
    // A body is broken off. Whoever reads it waits for the rest, unless the connection ends.
    if (!answer.headersSent) socket.write(renderRefusal(error));
    socket.destroySoon();
  }
}

const renderRefusal = (error: ApiError): string => {
  const { status, contentType, body } = problem(statusOf(error), error.code, error.message);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
    ...(typeof error.details.allow === 'string' ? [`Allow: ${error.details.allow}`] : []),
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
};

const closeServer = (server: Server, connectionLimits: ConnectionLimits, deadlineMs: number): Promise<void> =>
  new Promise((resolve) => {
    // Not the server's own list, which does not know a connection that asked for CONNECT or an upgrade.
    const deadline = setTimeout(connectionLimits.destroyAll, deadlineMs);
    server.close(() => {
      clearTimeout(deadline);
      connectionLimits.destroyAll();
      resolve();
    });
    server.closeIdleConnections();
    connectionLimits.destroySilent();
  });

type OpsAnswer = {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A scraper that uses another name asks every few seconds. */
const hostRejectedEveryMs = 60_000;

/** Rendering the metrics takes milliseconds: however often they are asked for, it happens ten times a second at most. */
const metricsEveryMs = 100;

const atMostEvery = <T>(ms: number, make: () => Promise<T>): (() => Promise<T>) => {
  let last: { readonly made: Promise<T>; readonly atMs: number } | undefined;
  return () => {
    const nowMs = performance.now();
    if (last === undefined || nowMs - last.atMs >= ms) last = { made: make(), atMs: nowMs };
    return last.made;
  };
};

const createOpsHandler = (options: OpsOptions, descriptors: Pick<DescriptorWatch, 'describe'>) => {
  const { checks, ingest, further, observe, answerMaxMs = answerMaxMsDefault } = options;
  const metrics = atMostEvery(metricsEveryMs, options.metrics);
  const handlers = new Map<string, () => OpsAnswer | Promise<OpsAnswer>>([
    ['/livez', () => json(200, { live: true })],
    [
      '/readyz',
      async () => {
        const reasons = await findReasons(checks, answerMaxMs);
        const degraded = [...(options.degraded?.() ?? []), ...descriptors.describe()];
        const body = { ready: reasons.length === 0, reasons, ...(degraded.length > 0 && { degraded }) };
        return json(body.ready ? 200 : 503, body);
      },
    ],
    [
      '/metrics',
      async () => ({ status: 200, contentType: metricsContentType, body: await orFailAfter(answerMaxMs, metrics()) }),
    ],
  ]);
  const answer = async (path: string, method: string | undefined): Promise<OpsAnswer> => {
    const handler = options.isForIngest ? undefined : handlers.get(path);
    if (handler === undefined) return problem(404, 'route_not_found', 'There is no such path here.');
    if (method !== 'GET' && method !== 'HEAD')
      return problem(405, 'method_not_allowed', 'This path answers GET and HEAD.', { Allow: 'GET, HEAD' });
    try {
      return await handler();
    } catch (error) {
      observe({ kind: 'warning', code: 'ops_failed', message: `${path} could not be answered.`, error });
      return problem(500, 'internal_error', 'Unexpected error. The log has the cause.');
    }
  };
  const checkPage = createPageCheck([options.host, ...(options.hosts ?? [])]);
  let toldMs = Number.NEGATIVE_INFINITY;
  const reject = (request: IncomingMessage, response: ServerResponse, { code, message }: PageRefusal): void => {
    const nowMs = performance.now();
    if (code === 'unknown_host' && nowMs - toldMs >= hostRejectedEveryMs) {
      toldMs = nowMs;
      observe({ kind: 'warning', code: 'ops_host_rejected', message });
    }
    send(request, response, problem(403, code, message));
  };
  return (request: IncomingMessage, response: ServerResponse): void => {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    const refusal = checkPage(request.headers);
    if (request.headers.host === undefined && request.httpVersion === '1.1') send(request, response, withoutHost);
    else if (refusal !== undefined) reject(request, response, refusal);
    else if (ingest !== undefined && /^\/ingest(\/|$)/.test(path)) void ingest(request, response);
    else if (further !== undefined && (path === further.path || path.startsWith(`${further.path}/`))) {
      continueIfAsked(request, response);
      void further.handle(request, response);
    } else void answer(path, request.method).then((given) => send(request, response, given));
  };
};

const json = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): OpsAnswer => ({
  status,
  contentType: 'application/json',
  body: `${JSON.stringify(body)}\n`,
  headers,
});

const problem = (status: number, code: string, message: string, headers?: Readonly<Record<string, string>>) =>
  json(status, { error: message, code }, headers);

const withoutHost = problem(400, 'malformed_target', 'The request has no Host header. HTTP/1.1 requires one.', {
  Connection: 'close',
});

// Request bodies are not read: the connection closes after the answer, so that a slow body does not hold it.
const send = (request: IncomingMessage, response: ServerResponse, answer: OpsAnswer): void => {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  response.writeHead(answer.status, {
    'Content-Type': answer.contentType,
    'Content-Length': Buffer.byteLength(answer.body),
    'Cache-Control': 'no-store',
    ...((length !== '0' || encoding !== undefined) && { Connection: 'close' }),
    ...answer.headers,
  });
  response.end(answer.body);
};

/** Why this process is not ready; a check may take this long. */
export async function findReasons(checks: OpsOptions['checks'], answerMaxMs: number): Promise<readonly string[]> {
  const found = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      try {
        const reason = await orFailAfter(answerMaxMs, (async () => check())());
        return reason === undefined ? [] : [`${name}: ${reason}`];
      } catch (error) {
        return [`${name}: ${error instanceof Error ? error.message : String(error)}`];
      }
    }),
  );
  return found.flat();
}

/** Throws when the promise takes longer than `ms`. */
const orFailAfter = async <T>(ms: number, promise: Promise<T>): Promise<T> => {
  const value = await within(ms, promise);
  if (value === timedOut) throw new Error(`no answer within ${ms} ms`);
  return value;
};
