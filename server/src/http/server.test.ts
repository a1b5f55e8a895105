import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { noteAnswer } from '../connections/connection-limits.ts';
import type { Pipeline } from './pipeline.ts';
import { type HttpListener, type ListenerEvent, type ListenOptions, openHttpServer } from './server.ts';

const opened: HttpListener[] = [];
const answerAtOnce: Pipeline['handle'] = (_, response) => void response.end('handled');
const open = async (options: Partial<ListenOptions> = {}, handle = answerAtOnce) => {
  const events: ListenerEvent[] = [];
  let count = 0;
  const listener = await openHttpServer(
    { host: '127.0.0.1', port: 0, ...options },
    handle,
    () => `r-${++count}`,
    (event) => void events.push(event),
  );
  opened.push(listener);
  const call = (): Socket => connect(Number(new URL(listener.url).port), '127.0.0.1');
  return { events, call, listener };
};
afterEach(async () => {
  for (const listener of opened.splice(0)) await listener.close(0);
});

const answerTo = async (socket: Socket, text: string): Promise<string> => {
  let answer = '';
  socket.on('data', (chunk) => {
    answer += String(chunk);
  });
  socket.end(text);
  await once(socket, 'close');
  return answer;
};

test.each([
  ['what is no HTTP', 'nonsense\r\n\r\n', '', 400, 'malformed_target'],
  ['a head over 16 KB', `GET / HTTP/1.1\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, '', 431, 'head_too_large'],
  ['too many headers', `GET / HTTP/1.1\r\n${'A: b\r\n'.repeat(250)}\r\n`, 'GET', 431, 'head_too_large'],
  ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 'CONNECT', 405, 'method_not_allowed'],
])('listener: the answer to %s is reported as a request without a route', async (_, text, method, status, code) => {
  const { events, call } = await open();
  const answer = await answerTo(call(), text);
  const body = answer.split('\r\n\r\n')[1] ?? '';
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(JSON.parse(body)).toMatchObject({ code, requestId: 'r-1' });
  const told = { kind: 'request', requestId: 'r-1', route: null, userId: null, address: '127.0.0.1', durationMs: 0 };
  expect(events).toEqual([{ ...told, method, status, code, bytes: body.length }]);
});

test.each([
  [200, '200'],
  [201, '431'],
])('listener: %i headers are answered with %s', async (count, status) => {
  const { call } = await open({}, (_, response) => void response.end());
  const socket = call();
  socket.write(`GET / HTTP/1.1\r\n${'A: b\r\n'.repeat(count)}\r\n`);
  expect(String((await once(socket, 'data'))[0])).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  socket.destroy();
});

test('listener: a request that a handler answers is not reported here', async () => {
  const { events, call } = await open();
  expect(await answerTo(call(), 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).toContain('handled');
  expect(events).toEqual([]);
});

test('listener: a connection over the limit is dropped and reported', async () => {
  const { events, call } = await open({ connections: { connectionsMax: 1 } }, (request, response) => {
    response.end('handled');
    noteAnswer(request.socket, 'an account');
  });
  const first = call();
  first.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(first, 'data');
  const second = call().on('error', () => {}); // reset, on some systems
  await once(second, 'close');
  expect(events).toEqual([{ kind: 'connectionDropped', reason: 'connections' }]);
  first.destroy();
});

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

test.each([
  ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', []],
  ['an upgrade', 'GET /c HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n', []],
  ['what is no HTTP', 'nonsense\r\n\r\n', []],
  ['too many headers', `GET / HTTP/1.1\r\n${'A: b\r\n'.repeat(250)}\r\n`, ['431']],
] as const)('listener: %s takes the answer of no request before it, and the connection ends', async (_, last, more) => {
  const waiting: ServerResponse[] = [];
  const came = new EventEmitter();
  const { call } = await open({}, (_request, response) => {
    waiting.push(response);
    came.emit(String(waiting.length));
  });
  const socket = call();
  let answer = '';
  socket.on('data', (chunk) => {
    answer += String(chunk);
  });
  const [one, two] = [once(came, '1'), once(came, '2')];
  socket.write(`${get('/a')}${get('/b')}${last}`);
  await one;
  await setImmediate(); // all that was sent has been parsed
  waiting[0]?.end('first');
  await two;
  waiting[1]?.end('second');
  await once(socket, 'close');
  expect([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '200', ...more]);
  expect(answer.match(/first|second/g)).toEqual(['first', 'second']);
});

test('listener: bytes that are not HTTP do not cut an answer in progress on the same connection', async () => {
  const answers = new EventEmitter();
  const { call } = await open({}, ({ url }, response) => void answers.emit(url ?? '', response));
  const nextAnswer = async (url: string): Promise<ServerResponse> => (await once(answers, url))[0];
  const socket = call();
  socket.write(get('/a'));
  (await nextAnswer('/a')).end('first');
  await once(socket, 'data');
  socket.write(`${get('/b')}nonsense\r\n\r\n`);
  const second = await nextAnswer('/b');
  await setImmediate();
  second.end('second');
  const [chunk] = await once(socket, 'data');
  expect(String(chunk)).toContain('second');
  await once(socket, 'close');
});

test('listener: one that could not open leaves no timer', async () => {
  const { url } = (await open()).listener;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  await expect(open({ port: Number(new URL(url).port) })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect(vi.getTimerCount()).toBe(0);
});
