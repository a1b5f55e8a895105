import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import type { OpenSocket, Socket } from './socket.ts';
import { loadSocket } from './socket-node.ts';

const openSocket = (await loadSocket()) as OpenSocket; // ws is installed here
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

type Served = { readonly url: string; readonly sockets: WebSocket[]; readonly requests: IncomingMessage[] };

/** A real server; with `refuse` it answers handshakes itself. */
const serve = async (refuse?: (request: IncomingMessage, response: ServerResponse) => void): Promise<Served> => {
  const server = createServer(refuse);
  const [sockets, requests]: [WebSocket[], IncomingMessage[]] = [[], []];
  if (refuse === undefined)
    new WebSocketServer({ server }).on('connection', (socket, request) => {
      sockets.push(socket);
      requests.push(request);
    });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    for (const socket of sockets) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  return { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets, requests }; // it listens on a port
};

type SocketEvent = readonly [what: 'opened' | 'message' | 'alive' | 'refused' | 'closed', ...told: unknown[]];

const open = (url: string, headers: Readonly<Record<string, string>> = {}) => {
  const events: SocketEvent[] = [];
  const socket: Socket = openSocket(`${url}/api/v1/ws?feedIDs=0x1`, headers, {
    opened: () => events.push(['opened']),
    message: (text) => events.push(['message', text]),
    alive: () => events.push(['alive']),
    refused: ({ status, headers: answered, text }) =>
      events.push(['refused', status, answered.get('x-request-id'), text]),
    closed: (reason) => events.push(['closed', reason]),
  });
  closing.push(socket.close);
  return { socket, events };
};

/** Opened on both sides. */
const openPair = async (served: Served) => {
  const opened = open(served.url, { Authorization: 'me' });
  await expect.poll(() => opened.events).toEqual([['opened']]);
  const server = served.sockets.at(-1) as WebSocket; // it has just connected
  return { ...opened, server };
};

test('socket: the handshake has the target and the headers, and asks for no compression', async () => {
  const served = await serve();
  await openPair(served);
  const { url, headers } = served.requests[0] as IncomingMessage; // it has connected
  expect(url).toBe('/api/v1/ws?feedIDs=0x1');
  expect(headers.authorization).toBe('me');
  expect(headers['sec-websocket-extensions']).toBeUndefined();
});

test('socket: binary and text frames, whole or in fragments, are messages', async () => {
  const { server, events } = await openPair(await serve());
  server.send(Buffer.from('{"a":"é"}'));
  server.send('text');
  server.send('in ', { fin: false });
  server.send('pieces', { fin: true });
  await expect
    .poll(() => events.slice(1))
    .toEqual([
      ['message', '{"a":"é"}'],
      ['message', 'text'],
      ['message', 'in pieces'],
    ]);
});

test('socket: a ping counts as alive, and is answered', async () => {
  const { server, events } = await openPair(await serve());
  const answered = new Promise((resolve) => server.once('pong', (bytes) => resolve(String(bytes))));
  server.ping('p');
  expect(await answered).toBe('p');
  expect(events).toEqual([['opened'], ['alive']]);
});

test.each([
  [1001, 'This node is going away.', 'closed by the server with 1001 This node is going away.'],
  [1008, '', 'closed by the server with 1008'],
  [1013, 'too slow', 'closed by the server with 1013 too slow'],
  [1000, '\u0088\u0002', 'closed by the server with 1000'],
  [1011, 'two\r\nlines', 'closed by the server with 1011 two lines'],
])('socket: a close with %i is reported once, with its reason', async (code, reason, reported) => {
  const { server, events } = await openPair(await serve());
  const over = new Promise((resolve) => server.once('close', resolve));
  server.close(code, reason);
  expect(await over).toBe(code);
  await expect.poll(() => events).toEqual([['opened'], ['closed', reported]]);
});

test('socket: a lost connection is reported once', async () => {
  const { server, events } = await openPair(await serve());
  server.terminate();
  await expect.poll(() => events).toEqual([['opened'], ['closed', 'closed by the server with 1006']]);
});

test('socket: a message of more than 1 MB ends it', async () => {
  const { server, events } = await openPair(await serve());
  const over = new Promise((resolve) => server.once('close', resolve));
  server.send(Buffer.alloc(1_048_577));
  expect(await over).toBe(1009);
  expect(events).toHaveLength(2);
  expect(events[1]?.[1]).toContain('Max payload size exceeded');
});

test('socket: a rejected handshake reports status, headers and body, and nothing more', async () => {
  const body = '{"code":"unauthorized","message":"No."}';
  const { url } = await serve((_, response) => {
    response.writeHead(401, { 'X-Request-Id': 'r-1', 'Content-Type': 'application/json' });
    response.write(body.slice(0, 9));
    response.end(body.slice(9));
  });
  const { events } = open(url);
  await expect.poll(() => events).toEqual([['refused', 401, 'r-1', body]]);
});

test('socket: the body of a rejection is cut at 64 KB, even if it never ends', async () => {
  const dropped: Promise<unknown>[] = [];
  const { url } = await serve((_, response) => {
    dropped.push(new Promise((resolve) => response.once('close', resolve)));
    response.writeHead(503);
    response.write('x'.repeat(70_000));
  });
  const { events } = open(url);
  await expect.poll(() => events).toEqual([['refused', 503, null, 'x'.repeat(65_536)]]);
  await Promise.all(dropped);
});

test('socket: a rejection whose body is cut off is still reported', async () => {
  const { url } = await serve((_, response) => {
    response.writeHead(502, { 'Content-Length': '100' });
    response.write('half', () => response.destroy());
  });
  const { events } = open(url);
  await expect.poll(() => events).toEqual([['refused', 502, null, 'half']]);
});

test('socket: a rejection whose body does not end is reported when it expires, once', async () => {
  const dropped: Promise<unknown>[] = [];
  const { url } = await serve((_, response) => {
    dropped.push(new Promise((resolve) => response.once('close', resolve)));
    response.writeHead(401, { 'X-Request-Id': 'r-1' });
    response.write('{"code":"unauthorized"}');
  });
  const { socket, events } = open(url);
  // Before the rejection arrives, this does nothing.
  const expire = () => {
    socket.expire();
    return events;
  };
  await expect.poll(expire).toEqual([['refused', 401, 'r-1', '{"code":"unauthorized"}']]);
  await Promise.all(dropped);
  expect(expire()).toHaveLength(1);
});

test('socket: a refused connection closes it with the reason', async () => {
  const gone = createTcpServer();
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
  const { port } = gone.address() as AddressInfo; // it listens on a port
  await new Promise((resolve) => gone.close(resolve));
  const { events } = open(`ws://127.0.0.1:${port}`);
  await expect.poll(() => events).toEqual([['closed', `connect ECONNREFUSED 127.0.0.1:${port}`]]);
});

test('socket: a response that is not a WebSocket’s is a reason, not an exception', async () => {
  const noise = createTcpServer((socket) => socket.end('noise\r\n\r\n'));
  await new Promise<void>((resolve) => noise.listen(0, '127.0.0.1', resolve));
  closing.push(() => noise.close());
  const { events } = open(`ws://127.0.0.1:${(noise.address() as AddressInfo).port}`); // it listens on a port
  await expect.poll(() => events.length).toBe(1);
  expect(events[0]?.[0]).toBe('closed');
});

test('socket: while paused no message is delivered, and none is lost', async () => {
  const served = await serve();
  const paused = await openPair(served);
  const other = await openPair(served);
  paused.socket.pause();
  for (let i = 0; i < 100; i += 1) paused.server.send(String(i));
  other.server.send('later');
  await expect.poll(() => other.events).toEqual([['opened'], ['message', 'later']]);
  expect(paused.events).toEqual([['opened']]);
  paused.socket.resume();
  await expect.poll(() => paused.events.length).toBe(101);
  expect(paused.events.slice(1)).toEqual(Array.from({ length: 100 }, (_, i) => ['message', String(i)]));
});

test('socket: close sends 1000, even while paused, and reports nothing more', async () => {
  for (const isPaused of [false, true]) {
    const { socket, server, events } = await openPair(await serve());
    const over = new Promise((resolve) => server.once('close', resolve));
    if (isPaused) socket.pause();
    socket.close();
    expect(await over).toBe(1000);
    expect(events).toEqual([['opened']]);
  }
});

test('socket: if closed before it is open, it never opens, and nothing is reported', async () => {
  const served = await serve();
  const { socket, events } = open(served.url);
  socket.pause();
  socket.close();
  socket.resume();
  // A later connection is reported, so an earlier one would have been.
  const probe = connect(Number(new URL(served.url).port), '127.0.0.1');
  await new Promise((resolve) => probe.once('connect', resolve));
  probe.destroy();
  await openPair(served);
  expect(events).toEqual([]);
  expect(served.sockets).toHaveLength(1);
});

test('socket: a pong counts as alive', async () => {
  const { socket, events } = await openPair(await serve());
  socket.ping();
  await expect.poll(() => events.at(-1)).toEqual(['alive']);
});
