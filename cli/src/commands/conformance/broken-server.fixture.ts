// A proxy that makes a right server wrong in one way: it changes requests, answers or frames as one fault says.
import { Agent, createServer, type IncomingMessage, request as requestHttp } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { authHeaders, signatureOf, signRequest } from '@sealpost/protocol';
import { WebSocket, WebSocketServer } from 'ws';

/** A request under way; faults change it. Header names are in lower case, except in `rawNames`. */
export type Passing = {
  readonly method: string;
  target: string;
  headers: Record<string, string | undefined>;
  readonly rawNames: readonly string[];
};

export type Reply = { status: number; headers: Record<string, string | string[] | undefined>; text: string };

export type SentFrame = { text: string; isBinary: boolean };

/** What a fault may use. */
export type World = {
  readonly user: { readonly userId: string; readonly secret: string };
  /** Asks the right server: signed by the user, unless `isAnonymous`. */
  readonly ask: (target: string, isAnonymous?: boolean) => Promise<Reply>;
  /** Counts up by name, from 1: what a fault counts. */
  readonly count: (name: string) => number;
  /** The newest observation that `latest` has answered: the reports of the test have a time of their own. */
  newestSecond: number;
};

type Later = void | Promise<void>;
export type RequestChange = (request: Passing, world: World) => Reply | undefined | Later | Promise<Reply | undefined>;
export type AnswerChange = (reply: Reply, request: Passing, world: World) => Later;
export type FrameChange = (frame: SentFrame, target: string, count: World['count']) => readonly SentFrame[];

export type Fault = {
  readonly name: string;
  /** The checks that must fail, at least. */
  readonly fails: readonly string[];
  readonly options?: readonly string[];
  /** Changes a request or a handshake, or answers it. */
  readonly request?: RequestChange;
  /** Changes an answer. */
  readonly answer?: AnswerChange;
  /** The frames that are sent for one; `count` numbers those of the connection by name. */
  readonly frame?: FrameChange;
  /** Changes a connection that has just opened. */
  readonly socket?: (client: WebSocket, target: string) => void;
  /** A connection that does not answer pings. */
  readonly noPong?: true;
  readonly noPing?: true;
};

/** Signs a request anew, so that the right server accepts it. */
export const resign = (request: Passing, { user }: World): undefined => {
  const { method, target } = request;
  const signed = signRequest({ method, target, ...user, timestampMs: Date.now() }, user.secret);
  for (const [name, value] of Object.entries(signed)) request.headers[name.toLowerCase()] = value;
};

const [userIdName, timestampName, signatureName] = [
  authHeaders.userId,
  authHeaders.timestamp,
  authHeaders.signature,
].map((name) => name.toLowerCase()) as [string, string, string]; // one for each

/** The three headers as sent. */
export const authOf = ({ headers }: Passing) => ({
  userId: headers[userIdName],
  timestamp: headers[timestampName],
  signature: headers[signatureName],
});

/** Whether the signature is by the user's secret, over these parts instead of those of the request. */
export const isSignedOver = (
  request: Passing,
  { user }: World,
  changes: {
    readonly method?: string;
    readonly target?: string;
    readonly userId?: string;
    readonly body?: string;
  } = {},
): boolean => {
  const { userId = '', timestamp = '', signature } = authOf(request);
  const { method, target } = request;
  return (
    signature === signatureOf({ method, target, userId, timestampMs: timestamp as never, ...changes }, user.secret)
  );
};

const createCount = (): World['count'] => {
  const counts = new Map<string, number>();
  return (name) => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts.get(name) ?? 0;
  };
};

const agent = new Agent({ keepAlive: true });

const send = (url: string, { method, target, headers }: Passing, body: Buffer): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
    const outgoing = requestHttp({ hostname, port, method, path: target, headers: sent, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { connection: _, 'transfer-encoding': __, 'content-length': ___, ...kept } = response.headers;
        resolve({ status: response.statusCode ?? 0, headers: kept, text: Buffer.concat(chunks).toString() });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });

const passingOf = ({ method = 'GET', url = '/', headers, rawHeaders }: IncomingMessage): Passing => ({
  method,
  target: url,
  headers: { ...(headers as Record<string, string>), host: undefined, connection: undefined },
  rawNames: rawHeaders.filter((_, i) => i % 2 === 0),
});

export type BrokenServer = { readonly url: string; readonly close: () => Promise<void> };

/** Opens it in front of a right server, whose only user is `user`. */
export const openBrokenServer = async (right: string, user: World['user'], fault: Fault): Promise<BrokenServer> => {
  const world: World = {
    user,
    count: createCount(),
    newestSecond: 0,
    ask: (target, isAnonymous = false) => {
      const request: Passing = { method: 'GET', target, headers: {}, rawNames: [] };
      if (!isAnonymous) resign(request, world);
      return send(right, request, Buffer.alloc(0));
    },
  };
  const server = createServer(async (incoming, outgoing) => {
    const request = passingOf(incoming);
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const reply = (await fault.request?.(request, world)) ?? (await send(right, request, Buffer.concat(chunks)));
    const second = /"observationsTimestamp":(\d+)/.exec(reply.text)?.[1];
    if (request.target.startsWith('/api/v1/reports/latest'))
      world.newestSecond = Math.max(world.newestSecond, Number(second ?? 0));
    await fault.answer?.(reply, request, world);
    const headers = Object.entries(reply.headers).filter(([, value]) => value !== undefined) as [string, string][];
    outgoing.writeHead(reply.status, Object.fromEntries(headers));
    outgoing.end(reply.text);
  });
  const sockets = new WebSocketServer({ noServer: true, autoPong: fault.noPong !== true });
  const open = new Set<WebSocket | Duplex>();
  const refuse = (socket: Duplex, { status, text }: Pick<Reply, 'status' | 'text'>): void =>
    void socket.end(
      `HTTP/1.1 ${status} No\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
    );
  server.on('upgrade', async (incoming, socket, head) => {
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    const request = passingOf(incoming);
    const refusal = await fault.request?.(request, world);
    if (refusal !== undefined) return refuse(socket, refusal);
    const names = Object.entries(request.headers).filter(
      ([name, value]) => value !== undefined && !/^(upgrade|sec-websocket-.*)$/.test(name),
    ) as [string, string][];
    const upstream = new WebSocket(`${right.replace('http', 'ws')}${request.target}`, {
      headers: Object.fromEntries(names),
      perMessageDeflate: false,
    });
    upstream.on('error', () => socket.destroy());
    upstream.on('unexpected-response', async (_, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      refuse(socket, { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() });
    });
    upstream.on('open', () =>
      sockets.handleUpgrade(incoming, socket, head, (client) => {
        const count = createCount();
        open.add(client).add(upstream);
        upstream.on('message', (data: Buffer, isBinary) => {
          const frame = { text: String(data), isBinary };
          const frames = fault.frame?.(frame, request.target, count) ?? [frame];
          for (const { text, isBinary: binary } of frames) client.send(binary ? Buffer.from(text) : text, { binary });
        });
        if (fault.noPing !== true) upstream.on('ping', () => client.ping());
        client.on('error', () => {});
        client.on('close', () => upstream.terminate());
        upstream.on('close', (code, reason) =>
          code > 1_004 && code < 1_007 ? client.terminate() : client.close(code, reason),
        );
        fault.socket?.(client, request.target);
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      for (const socket of open) socket instanceof WebSocket ? socket.terminate() : socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
