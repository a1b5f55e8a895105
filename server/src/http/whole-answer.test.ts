import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createAnswerWriter } from './answer.ts';
import { checkHeaderValues, createHeadWriter, keepAliveMs, takesWhole } from './whole-answer.ts';

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
  'whole answer: a head of status %i has the bytes that node itself writes',
  async (status) => {
    const body = status === 304 ? '' : 'true';
    const port = await serve((request, response) => {
      if (request.url === '/node') return void response.writeHead(status, headers).end(body);
      expect(takesWhole(response)).toBe(true);
      writeHeadText(response, status, lines, body);
      response.end();
    });
    const expected = await converse(port, get('/node'), 100);
    expect(expected).toContain('Keep-Alive: timeout=10\r\n');
    expect(await converse(port, get('/ours'), 100)).toBe(expected);
  },
);

test('whole answer: a head before a body in pieces, and the answer to HEAD, have the bytes that node itself writes', async () => {
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

test('whole answer: a head given before a body in pieces is followed by them', async () => {
  const port = await serve((_, response) => {
    writeHeadText(response, 200, lines);
    response.write(Buffer.from('tr'));
    response.end(Buffer.from('ue'));
  });
  const answer = await converse(port, get('/'), 180);
  expect(answer.split('\r\n\r\n')[1]).toBe('true');
});

test('whole answer: pipelined requests are answered in their order, however late the first one is', async () => {
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

test('whole answer: a connection that ends with its answer is left to node', async () => {
  const takes: boolean[] = [];
  const port = await serve((_, response) => {
    takes.push(takesWhole(response));
    response.end('x');
  });
  await converse(port, get('/', 'Connection: close\r\n'), 10);
  await converse(port, 'GET / HTTP/1.0\r\n\r\n', 10);
  expect(takes).toEqual([false, false]);
});

test('whole answer: a header value with a line break is rejected', () => {
  expect(() => checkHeaderValues(['Link', '<a>; rel="next"\r\nSet-Cookie: b'])).toThrow('control character');
  checkHeaderValues(['Link', '<a>; rel="next"', 'Name', 'Zürich']);
  const answer = { status: 200, body: '{}', cacheControl: 'no-store', headers: ['A', 'b\nc'] };
  const context = { requestId: 'r', head: false, acceptsGzip: false, rate: undefined, closing: false, isTls: false };
  const { writeAnswer } = createAnswerWriter();
  expect(() => writeAnswer({ shouldKeepAlive: true } as never, answer, context)).toThrow('control character'); // nothing is written yet
});
