import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { completeHeaders, requestClass } from './listener-request.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

const open = async (options: object, listener: RequestListener) => {
  const server = createServer({ requireHostHeader: false, ...options }, listener);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  return { server, port };
};

/** What comes back on one connection until it has this text so many times. */
const converse = async (port: number, bytes: string, last: string, times = 1): Promise<string> => {
  const socket = connect(port, '127.0.0.1');
  socket.write(bytes);
  let answer = '';
  while (answer.split(last).length <= times) answer += String((await once(socket, 'data'))[0]);
  socket.destroy();
  return answer.replace(/Date: .{29}\r/g, 'Date: now\r');
};

const get = (...lines: readonly string[]): string => ['GET / HTTP/1.1', 'Host: a', ...lines, '', ''].join('\r\n');

/** Answers with what the request has; a server of ours gets it as the public listener hands it over. */
const tell =
  (prepare: (request: IncomingMessage) => void): RequestListener =>
  (request, response) => {
    prepare(request);
    const { method, url, headers, rawHeaders } = request;
    response.end(JSON.stringify({ method, url, headers, rawHeaders, last: 'END' }));
  };

test.each([
  ['no body', get('Accept: text/html', 'X-Two: 1', 'X-Two: 2', 'Cookie: a')],
  ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
  ['HEAD after GET', get() + get('A: b').replace('GET', 'HEAD') + get('C: d')],
  ['an expectation', `${get('expect: 100-continue', 'Content-Length: 2')}hi${get('After: it')}`],
  ['an expectation in capitals', get('EXPECT: 100-Continue')],
  ['an expectation that nobody knows', get('Expect: nothing')],
  ['a body', `${get('Content-Length: 5')}hello${get('After: it')}`],
  ['a body of zero bytes', get('Content-Length: 0') + get('After: it')],
  [
    'a body in chunks, with a trailer',
    `${get('Transfer-Encoding: chunked')}2\r\nhi\r\n0\r\nT: r\r\n\r\n${get('After: it')}`,
  ],
])('listener request: %s is answered as by node itself', async (_, bytes) => {
  const node = await open(
    {},
    tell(() => {}),
  );
  const ours = await open({ IncomingMessage: requestClass }, tell(completeHeaders));
  const last = bytes.includes('nothing') ? '417' : 'END';
  const times = bytes.split('GET').length - 1;
  const expected = await converse(node.port, bytes, last, times);
  expect(await converse(ours.port, bytes, last, times)).toBe(expected);
});

test('listener request: node gets no object of headers that it does not look for, and a handler gets all', async () => {
  const seen: unknown[] = [];
  const { port } = await open({ IncomingMessage: requestClass }, (request, response) => {
    seen.push({ ...request.headers });
    completeHeaders(request);
    seen.push({ ...request.headers });
    response.end('END');
  });
  await converse(port, get('A: b') + get('content-LENGTH: 0'), 'END', 2);
  expect(seen).toEqual([
    {},
    { host: 'a', a: 'b' },
    { host: 'a', 'content-length': '0' },
    { host: 'a', 'content-length': '0' },
  ]);
});

test('listener request: a body that nobody reads is let through, and the connection answers the next request', async () => {
  const requests: IncomingMessage[] = [];
  const { port } = await open({ IncomingMessage: requestClass }, (request, response) => {
    requests.push(request);
    response.end('END');
  });
  const socket = connect(port, '127.0.0.1');
  socket.write(get('Content-Length: 200000'));
  expect(String((await once(socket, 'data'))[0])).toContain('END');
  socket.write(`${'x'.repeat(200_000)}${get()}`);
  expect(String((await once(socket, 'data'))[0])).toContain('END');
  socket.destroy();
  expect(requests.map(({ complete, readableEnded }) => [complete, readableEnded])).toEqual([
    [true, true],
    [true, true],
  ]);
});

test('listener request: the answer to a client that left is closed, and a whole request is no aborted one', async () => {
  const { port } = await open({ IncomingMessage: requestClass }, (request, response) => {
    response.once('close', () => servers.at(-1)?.emit('over', request, response));
    socket.destroy();
  });
  const socket = connect(port, '127.0.0.1');
  socket.write(get());
  const [request, response] = await once(servers.at(-1) as Server, 'over'); // opened above
  expect([response.destroyed, response.writableFinished, request.complete]).toEqual([true, false, true]);
});
