import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { checkHeaderValues, createAnswerWriter } from '../http/answer.ts';
import { completeHeaders, createHeadWriter, keepAliveMs, requestClass, takesHead } from './node-internals.ts';

const writeHeadText = createHeadWriter();
const servers: Server[] = [];
const serve = async (listener: RequestListener): Promise<number> => {
  const server = createServer({ keepAliveTimeout: keepAliveMs }, listener);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port; // it listens on a port
};
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

/** Sends a text on one connection and returns what comes back until it has so many characters. */
const converse = async (port: number, text: string, characters: number): Promise<string> => {
  const socket = connect(port, '127.0.0.1');
  socket.write(text);
  let answer = '';
  while (answer.length < characters) answer += String((await once(socket, 'data'))[0]);
  socket.destroy();
  return answer.replace(/Date: .{29}\r/g, 'Date: now\r');
};

const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
const lines = 'Cache-Control: no-store\r\nContent-Type: application/json\r\nContent-Length: 4\r\nX-Id: a-1\r\n';
const headers = ['Cache-Control', 'no-store', 'Content-Type', 'application/json', 'Content-Length', '4', 'X-Id', 'a-1'];

test.each([200, 206, 304, 404, 503])(
  'node internals: a head of status %i has the bytes that node itself writes',
  async (status) => {
    const body = status === 304 ? '' : 'true';
    const port = await serve((request, response) => {
      if (request.url === '/node') return void response.writeHead(status, headers).end(body);
      expect(takesHead(response)).toBe(true);
      writeHeadText(response, status, lines, body);
      response.end();
    });
    const expected = await converse(port, get('/node'), 100);
    expect(expected).toContain('Keep-Alive: timeout=10\r\n');
    expect(await converse(port, get('/ours'), 100)).toBe(expected);
  },
);

test('node internals: a head before a body in pieces, and the answer to HEAD, have the bytes that node itself writes', async () => {
  const port = await serve((request, response) => {
    if (request.url === '/node') response.writeHead(200, headers);
    else writeHeadText(response, 200, lines);
    if (request.method === 'HEAD') return void response.end();
    response.write(Buffer.from('tr'));
    response.end(Buffer.from('ue'));
  });
  for (const method of ['GET', 'HEAD']) {
    const ask = (path: string) => converse(port, get(path).replace('GET', method), method === 'GET' ? 170 : 166);
    const expected = await ask('/node');
    expect(expected.endsWith(method === 'GET' ? '\r\n\r\ntrue' : '\r\n\r\n')).toBe(true);
    expect(await ask('/ours')).toBe(expected);
  }
});

test('node internals: a head given before a body in pieces is followed by them', async () => {
  const port = await serve((_, response) => {
    writeHeadText(response, 200, lines);
    response.write(Buffer.from('tr'));
    response.end(Buffer.from('ue'));
  });
  const answer = await converse(port, get('/'), 180);
  expect(answer.split('\r\n\r\n')[1]).toBe('true');
});

test('node internals: pipelined requests are answered in their order, however late the first one is', async () => {
  const port = await serve((request, response) => {
    const answer = () => {
      writeHeadText(response, 200, lines, request.url === '/first' ? 'one.' : 'two.');
      response.end();
    };
    if (request.url === '/first') setImmediate(answer);
    else answer();
  });
  const answer = await converse(port, get('/first') + get('/second'), 360);
  expect(answer.match(/one\.|two\./g)).toEqual(['one.', 'two.']);
});

test('node internals: a connection that ends with its answer is left to node', async () => {
  const takes: boolean[] = [];
  const port = await serve((_, response) => {
    takes.push(takesHead(response));
    response.end('x');
  });
  await converse(port, get('/', 'Connection: close\r\n'), 10);
  await converse(port, 'GET / HTTP/1.0\r\n\r\n', 10);
  expect(takes).toEqual([false, false]);
});

test('node internals: a header value with a line break is rejected', () => {
  expect(() => checkHeaderValues(['Link', '<a>; rel="next"\r\nSet-Cookie: b'])).toThrow('control character');
  checkHeaderValues(['Link', '<a>; rel="next"', 'Name', 'Zürich']);
  const answer = { status: 200, body: '{}', cacheControl: 'no-store', headers: ['A', 'b\nc'] };
  const context = { requestId: 'r', head: false, acceptsGzip: false, rate: undefined, closing: false, isTls: false };
  const { writeAnswer } = createAnswerWriter();
  expect(() => writeAnswer({ shouldKeepAlive: true } as never, answer, context)).toThrow('control character'); // nothing is written yet
});

const open = async (options: object, listener: RequestListener) => {
  const server = createServer({ requireHostHeader: false, ...options }, listener);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  return { server, port };
};

/** What comes back on one connection until it has this text so many times. */
const exchange = async (port: number, bytes: string, last: string, times = 1): Promise<string> => {
  const socket = connect(port, '127.0.0.1');
  socket.write(bytes);
  let answer = '';
  while (answer.split(last).length <= times) answer += String((await once(socket, 'data'))[0]);
  socket.destroy();
  return answer.replace(/Date: .{29}\r/g, 'Date: now\r');
};

const ask = (...lines: readonly string[]): string => ['GET / HTTP/1.1', 'Host: a', ...lines, '', ''].join('\r\n');

/** Answers with what the request has; a server of ours gets it as the public listener hands it over. */
const tell =
  (prepare: (request: IncomingMessage) => void): RequestListener =>
  (request, response) => {
    prepare(request);
    const { method, url, headers, rawHeaders } = request;
    response.end(JSON.stringify({ method, url, headers, rawHeaders, last: 'END' }));
  };

test.each([
  ['no body', ask('Accept: text/html', 'X-Two: 1', 'X-Two: 2', 'Cookie: a')],
  ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
  ['HEAD after GET', ask() + ask('A: b').replace('GET', 'HEAD') + ask('C: d')],
  ['an expectation', `${ask('expect: 100-continue', 'Content-Length: 2')}hi${ask('After: it')}`],
  ['an expectation in capitals', ask('EXPECT: 100-Continue')],
  ['an expectation that nobody knows', ask('Expect: nothing')],
  ['a body', `${ask('Content-Length: 5')}hello${ask('After: it')}`],
  ['a body of zero bytes', ask('Content-Length: 0') + ask('After: it')],
  [
    'a body in chunks, with a trailer',
    `${ask('Transfer-Encoding: chunked')}2\r\nhi\r\n0\r\nT: r\r\n\r\n${ask('After: it')}`,
  ],
])('node internals: %s is answered as by node itself', async (_, bytes) => {
  const node = await open(
    {},
    tell(() => {}),
  );
  const ours = await open({ IncomingMessage: requestClass }, tell(completeHeaders));
  const last = bytes.includes('nothing') ? '417' : 'END';
  const times = bytes.split('GET').length - 1;
  const expected = await exchange(node.port, bytes, last, times);
  expect(await exchange(ours.port, bytes, last, times)).toBe(expected);
});

test('node internals: node gets no object of headers that it does not look for, and a handler gets all', async () => {
  const seen: unknown[] = [];
  const { port } = await open({ IncomingMessage: requestClass }, (request, response) => {
    seen.push({ ...request.headers });
    completeHeaders(request);
    seen.push({ ...request.headers });
    response.end('END');
  });
  await exchange(port, ask('A: b') + ask('content-LENGTH: 0'), 'END', 2);
  expect(seen).toEqual([
    {},
    { host: 'a', a: 'b' },
    { host: 'a', 'content-length': '0' },
    { host: 'a', 'content-length': '0' },
  ]);
});

test('node internals: a body that nobody reads is let through, and the connection answers the next request', async () => {
  const requests: IncomingMessage[] = [];
  const { port } = await open({ IncomingMessage: requestClass }, (request, response) => {
    requests.push(request);
    response.end('END');
  });
  const socket = connect(port, '127.0.0.1');
  socket.write(ask('Content-Length: 200000'));
  expect(String((await once(socket, 'data'))[0])).toContain('END');
  socket.write(`${'x'.repeat(200_000)}${ask()}`);
  expect(String((await once(socket, 'data'))[0])).toContain('END');
  socket.destroy();
  expect(requests.map(({ complete, readableEnded }) => [complete, readableEnded])).toEqual([
    [true, true],
    [true, true],
  ]);
});

test('node internals: the answer to a client that left is closed, and a whole request is no aborted one', async () => {
  const { port } = await open({ IncomingMessage: requestClass }, (request, response) => {
    response.once('close', () => servers.at(-1)?.emit('over', request, response));
    socket.destroy();
  });
  const socket = connect(port, '127.0.0.1');
  socket.write(ask());
  const [request, response] = await once(servers.at(-1) as Server, 'over'); // opened above
  expect([response.destroyed, response.writableFinished, request.complete]).toEqual([true, false, true]);
});
