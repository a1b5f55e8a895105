// A proxy that makes our server one that has only what the specification and the published SDKs define: other paths are 404 in plain text,
// other parameters 400, other headers are dropped, and errors are `{"error": text}` alone.
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

export type SpecProxy = {
  readonly url: string;
  readonly port: number;
  /** Targets in the order in which they came, with what they were answered; `ws` for an accepted WebSocket. */
  readonly answered: (readonly [target: string, status: number | 'ws'])[];
  /** Cuts every open connection. */
  readonly cut: () => void;
  readonly close: () => Promise<void>;
};

export type SpecProxyOptions = {
  /** The clock of the Date header; this machine's unless given. */
  readonly nowMs?: () => number;
  /** Reports of a page at most, whatever is asked for. */
  readonly pageMax?: number;
  /** A larger `limit` is 400. */
  readonly limitMax?: number;
  /** More feed IDs in one request are 400. */
  readonly feedIdsMax?: number;
  /** The catalog has only what the specification names. */
  readonly bare?: boolean;
  /** False: no WebSockets either, as in the specification alone. */
  readonly push?: boolean;
};

const dates = ['created', 'expected_decommission', 'decommissioned'].flatMap((name) => [
  `${name}_after`,
  `${name}_before`,
]);
const names = ['base_asset', 'quote_asset', 'asset_class', 'feed_type', 'attribute_type', 'status', 'network_type'];

/** Paths and their parameters, as the specification and the published SDKs have them. */
const parameters: Readonly<Record<string, readonly string[]>> = {
  '/': [],
  '/api/v1/discovery': [...names, 'hidden', ...dates],
  '/api/v1/feeds': [],
  '/api/v1/reports': ['feedID', 'timestamp'],
  '/api/v1/reports/latest': ['feedID'],
  '/api/v1/reports/bulk': ['feedIDs', 'timestamp'],
  '/api/v1/reports/page': ['feedID', 'startTimestamp', 'limit'],
};
const socketPaths = ['/api/v1/ws', '/api/v2/ws'];

type Answer = { readonly status: number; readonly type: string; readonly body: string };

const notFound: Answer = { status: 404, type: 'text/plain', body: '404 page not found\n' };
const toErrorAnswer = (status: number, error: string): Answer => ({
  status,
  type: 'application/json',
  body: JSON.stringify({ error }),
});

/** What such a server refuses by itself. */
const refusalOf = (method: string | undefined, target: string, isUpgrade: boolean): Answer | undefined => {
  const { pathname, searchParams } = new URL(target, 'http://proxy');
  const known = isUpgrade ? (socketPaths.includes(pathname) ? ['feedIDs'] : undefined) : parameters[pathname];
  if (known === undefined || (pathname === '/') !== (method === 'HEAD')) return notFound;
  const unknown = [...searchParams.keys()].find((name) => !known.includes(name));
  return unknown === undefined ? undefined : toErrorAnswer(400, `unknown parameter: ${unknown}`);
};

/** What it refuses because it is too much. */
const excessOf = (target: string, { limitMax = Infinity, feedIdsMax = Infinity }: SpecProxyOptions) => {
  const { searchParams } = new URL(target, 'http://proxy');
  if (Number(searchParams.get('limit')) > limitMax) return toErrorAnswer(400, 'invalid limit');
  const feedIds = searchParams.get('feedIDs')?.split(',') ?? [];
  return feedIds.length > feedIdsMax ? toErrorAnswer(400, 'too many feed IDs') : undefined;
};

type Entry = Readonly<Record<string, unknown>>;
const toBareEntry = ({ feedId, baseAsset, quoteAsset, status }: Entry) => ({ feedId, baseAsset, quoteAsset, status });

/** An answer of ours, reduced to what is defined. */
const reduce = (status: number, text: string, pageMax: number, bare = false): Answer => {
  const body = text === '' ? {} : JSON.parse(text);
  if (status >= 400) return toErrorAnswer(status, String(body.error ?? ''));
  if (Array.isArray(body.reports)) body.reports = body.reports.slice(0, pageMax);
  if (bare && Array.isArray(body.feeds)) body.feeds = body.feeds.map(toBareEntry);
  return { status, type: 'application/json', body: text === '' ? '' : JSON.stringify(body) };
};

const readBody = async (message: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
};

/** Listens on a free port; `upstreamOf` is asked for each request, so that the server behind may change. */
export const openSpecProxy = async (upstreamOf: () => string, options: SpecProxyOptions = {}): Promise<SpecProxy> => {
  const { nowMs = Date.now, pageMax = Number.POSITIVE_INFINITY, push = true } = options;
  const answered: (readonly [string, number | 'ws'])[] = [];
  const sockets = new Set<Duplex>();
  const headersOf = ({ type, body }: Answer) => ({
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    Date: new Date(nowMs()).toUTCString(),
  });
  const ask = ({ method, url: path, headers }: IncomingMessage) => {
    const { hostname, port } = new URL(upstreamOf());
    const { 'accept-encoding': _, ...rest } = headers; // what is read here must not be compressed
    return httpRequest({ hostname, port, method, path, headers: rest, agent: false });
  };
  const pass = (request: IncomingMessage, response: ServerResponse): void => {
    const target = request.url ?? '';
    const send = (answer: Answer, more: object = {}): void => {
      answered.push([target, answer.status]);
      response.writeHead(answer.status, { ...headersOf(answer), ...more });
      response.end(request.method === 'HEAD' ? undefined : answer.body);
    };
    const refusal = refusalOf(request.method, target, false) ?? excessOf(target, options);
    if (refusal !== undefined) {
      send(refusal);
      return;
    }
    const upstream = ask(request);
    upstream.on('error', () => response.destroy());
    upstream.on('response', (answer) => {
      const origins = answer.headers['x-cll-available-origins'];
      const more = origins === undefined ? {} : { 'X-Cll-Available-Origins': origins };
      const max = target.startsWith('/api/v1/reports/page') ? pageMax : Number.POSITIVE_INFINITY;
      readBody(answer).then(
        (text) => send(reduce(answer.statusCode ?? 0, text, max, options.bare), more),
        () => response.destroy(),
      );
    });
    upstream.end();
  };
  const upgrade = (request: IncomingMessage, socket: Duplex): void => {
    const target = request.url ?? '';
    socket.on('error', () => socket.destroy());
    const send = (answer: Answer): void => {
      answered.push([target, answer.status]);
      const head = Object.entries({ ...headersOf(answer), Connection: 'close' }).map(
        ([name, value]) => `${name}: ${value}\r\n`,
      );
      socket.end(`HTTP/1.1 ${answer.status} Refused\r\n${head.join('')}\r\n${answer.body}`);
    };
    const refusal = push ? refusalOf(request.method, target, true) : notFound;
    if (refusal !== undefined) {
      send(refusal);
      return;
    }
    const upstream = ask(request);
    upstream.on('error', () => socket.destroy());
    upstream.on('response', (answer) =>
      readBody(answer).then(
        (text) => send(reduce(answer.statusCode ?? 0, text, 0)),
        () => socket.destroy(),
      ),
    );
    upstream.on('upgrade', ({ headers }, far, head) => {
      answered.push([target, 'ws']);
      const accept = headers['sec-websocket-accept'];
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      socket.write(head);
      for (const [from, to] of [
        [socket, far],
        [far, socket],
      ] as const) {
        from.on('data', (bytes) => void to.write(bytes));
        from.on('error', () => to.destroy());
        from.on('close', () => to.destroy());
      }
    });
    upstream.end();
  };
  const server = createServer(pass).on('upgrade', upgrade);
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    answered,
    cut,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
};
