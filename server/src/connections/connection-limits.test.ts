// Every connection ends, over real sockets, whatever its client does.
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { createCertificate } from '../../../tests/support/certificates.ts';
import { type HttpListener, type ListenerEvent, type ListenOptions, openHttpServer } from '../http/server.ts';
import { createStallWatch, createUnread, noteAnswer, noteChunked, type Unread } from './connection-limits.ts';

const opened: HttpListener[] = [];
const clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const listener of opened.splice(0)) await listener.close(0);
});

type Handle = (request: IncomingMessage, response: ServerResponse) => void;
const answerAtOnce: Handle = (_, response) => void response.end('handled');

const open = async (options: Partial<ListenOptions> = {}, handle = answerAtOnce) => {
  const events: ListenerEvent[] = [];
  const listener = await openHttpServer(
    { host: '127.0.0.1', port: 0, ...options },
    handle,
    () => 'r',
    (event) => void events.push(event),
  );
  opened.push(listener);
  const port = Number(new URL(listener.url).port);
  /** A client that keeps its side open for as long as it can. */
  const call = (localAddress = '127.0.0.1'): Socket => {
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true });
    socket.on('error', () => {});
    clients.push(socket);
    return socket;
  };
  const left = () => listener.counts().connections;
  const dropped = () => events.flatMap((event) => (event.kind === 'connectionDropped' ? [event.reason] : []));
  return { listener, call, left, dropped, port };
};

const get = (path = '/', ...lines: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: a', ...lines, '', ''].join('\r\n');
const upgrade = get('/', 'Connection: Upgrade', 'Upgrade: websocket');
const connectHead = 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n';
/** The server has ended or cut the connection; our side may still be open. */
const over = (socket: Socket): Promise<unknown> => {
  socket.resume();
  return Promise.race([once(socket, 'end'), once(socket, 'close')]).catch(() => {});
};
/** The same, where it may have been before. */
const isOver = (socket: Socket): boolean => socket.readableEnded || socket.destroyed;
/** Sends a request and says what becomes of it. */
const askOn = async (socket: Socket, bytes: string): Promise<'handled' | 'cut'> => {
  socket.write(bytes);
  const cut = over(socket).then((): unknown[] => ['cut']);
  const [chunk] = await Promise.race([once(socket, 'data'), cut]).catch((): unknown[] => ['cut']); // reset
  return String(chunk).includes('handled') ? 'handled' : 'cut';
};
const largeBody = Buffer.alloc(16_000_000, 'x');

test.each([
  ['what is no HTTP', 'nonsense\r\n\r\n'],
  ['CONNECT', connectHead],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['an upgrade', upgrade],
])('connection limits: a client that ignores our FIN after %s is cut', async (_, bytes) => {
  const { call, left } = await open();
  const socket = call();
  socket.write(bytes);
  await over(socket);
  await expect.poll(left).toBe(0);
});

test.each([
  ['silence', ''],
  ['half a head', 'GET / HTTP/1.1\r\nHo'],
  ['CONNECT', connectHead],
  ['an upgrade', upgrade],
  ['an answer that nobody reads', get('/large')],
])('connection limits: %s does not keep a drain beyond its deadline', async (_, bytes) => {
  const { listener, call, left } = await open({}, (request, response) => {
    if (request.url === '/large') response.end(largeBody);
  });
  const socket = call().pause();
  socket.write(bytes);
  await expect.poll(left).toBe(1);
  await listener.close(300);
  expect(left()).toBe(0);
});

test('connection limits: a client that says nothing, or anything but TLS, does not keep a drain beyond its deadline', async () => {
  const { cert, key } = createCertificate('silent');
  const { listener, call, left } = await open({ tls: { cert, key } });
  const [silent, half] = [call(), call()];
  half.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01])); // the begin of a ClientHello
  await expect.poll(left).toBe(2);
  await listener.close(300);
  expect(left()).toBe(0);
  silent.destroy();
});

test('connection limits: a TLS handshake that does not end within five seconds is cut, and a client that left before is forgotten', async () => {
  const { cert, key } = createCertificate('slow');
  const { call, left, port } = await open({ tls: { cert, key } });
  const waiting = call();
  const leaving = call();
  leaving.end();
  await Promise.all([over(waiting), over(leaving)]);
  const secure = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  clients.push(secure);
  await once(secure, 'secureConnect');
  secure.write(get());
  expect(String((await once(secure, 'data'))[0])).toContain('handled');
  expect(left()).toBe(1);
});

test('connection limits: requests of one connection are handled one at a time, in their order', async () => {
  const waiting: { readonly url: string; readonly response: ServerResponse }[] = [];
  const { call } = await open({}, ({ url = '' }, response) => void waiting.push({ url, response }));
  const socket = call();
  let answer = '';
  socket.on('data', (chunk) => {
    answer += String(chunk);
  });
  socket.write(get('/a') + get('/b') + get('/c'));
  for (const [i, url] of ['/a', '/b', '/c'].entries()) {
    await expect.poll(() => waiting.length).toBe(i + 1);
    expect(waiting[i]?.url).toBe(url);
    waiting[i]?.response.end(`answer${url}`);
  }
  await expect.poll(() => answer.match(/answer\/./g)).toEqual(['answer/a', 'answer/b', 'answer/c']);
});

test('connection limits: a client that runs far ahead of its answers is cut, and reported', async () => {
  let handled = 0;
  const { call, left, dropped } = await open({}, () => {
    handled += 1;
  });
  const socket = call();
  socket.write(get().repeat(1_000));
  await over(socket);
  await expect.poll(left).toBe(0);
  expect([handled, dropped()]).toEqual([1, ['pipelined']]);
});

test('connection limits: while one answer waits for its client, the next request is not begun', async () => {
  let handled = 0;
  const { call, listener } = await open({}, (request, response) => {
    handled += 1;
    response.end(largeBody);
    noteAnswer(request.socket, 'an account');
  });
  const socket = call().pause();
  socket.write(get().repeat(10));
  await expect.poll(() => listener.counts().unreadBytes).toBeGreaterThan(1_000_000);
  expect(handled).toBe(1);
  expect(listener.counts().unreadBytes).toBeLessThanOrEqual(largeBody.length + 1_000);
});

test('connection limits: near the bound of connections the oldest that never authenticated goes first, and a new client gets in', async () => {
  const { call, left, dropped } = await open({ connections: { connectionsMax: 16 } }, (request, response) => {
    response.end('handled');
    if (request.url === '/account') noteAnswer(request.socket, 'an account');
  });
  const account = call();
  account.write(get('/account'));
  await once(account, 'data');
  const silent: Socket[] = [];
  for (let i = 0; i < 15; i++) {
    silent.push(call());
    await expect.poll(left).toBe(Math.min(15, i + 2));
  }
  await over(silent[0] as Socket); // there are fifteen
  const late = call();
  late.write(get('/late'));
  expect(String((await once(late, 'data'))[0])).toContain('handled');
  account.write(get('/account'));
  expect(String((await once(account, 'data'))[0])).toContain('handled');
  expect(new Set(dropped())).toEqual(new Set(['connections']));
});

test('connection limits: an account that authenticates on every connection loses its oldest ones, and others get in and stay', async () => {
  const { call, left, dropped } = await open({ connections: { connectionsMax: 16 } }, (request, response) => {
    response.end('handled');
    noteAnswer(request.socket, request.url);
  });
  const ask = (socket: Socket, account: string) => askOn(socket, get(account));
  const early = call();
  expect(await ask(early, '/early')).toBe('handled');
  const greedy: Socket[] = [];
  for (let i = 0; i < 20; i++) {
    greedy.push(call());
    expect(await ask(greedy[i] as Socket, '/greedy')).toBe('handled'); // pushed just now
  }
  const late = call();
  expect([await ask(late, '/late'), await ask(early, '/early'), await ask(late, '/late')]).toEqual(
    Array(3).fill('handled'),
  );
  await expect.poll(() => isOver(greedy[0] as Socket)).toBe(true); // there are twenty
  expect(left()).toBeLessThanOrEqual(16);
  expect(new Set(dropped())).toEqual(new Set(['connections']));
});

test('connection limits: an answer to a client that has left does not count it for its account, which would never lose its oldest again', async () => {
  let [begun, answered] = [0, 0];
  const { call, left } = await open({ connections: { connectionsMax: 16 } }, (request, response) => {
    begun += 1;
    const answer = (): void => {
      response.end('handled');
      noteAnswer(request.socket, '/greedy');
      answered += 1;
    };
    if (request.url === '/slow') request.socket.once('close', () => setImmediate(answer));
    else answer();
  });
  for (let i = 1; i <= 20; i++) {
    const gone = call();
    gone.write(get('/slow'));
    await expect.poll(() => begun).toBe(i);
    gone.destroy();
    await expect.poll(() => answered).toBe(i);
  }
  expect(left()).toBe(0);
  for (let i = 0; i < 20; i++) expect(await askOn(call(), get('/greedy'))).toBe('handled');
  expect(left()).toBeLessThanOrEqual(16);
});

test('connection limits: connections are limited per address; proxies have no limit', async () => {
  const addressOf = (peer: string) => (peer === '127.0.0.9' ? undefined : peer);
  const { call, dropped } = await open({ connections: { connectionsPerAddress: 2, addressOf } });
  const ask = (address: string) => askOn(call(address), get());
  expect([await ask('127.0.0.2'), await ask('127.0.0.2'), await ask('127.0.0.2')]).toEqual([
    'handled',
    'handled',
    'cut',
  ]);
  expect([await ask('127.0.0.3'), ...(await Promise.all([1, 2, 3].map(() => ask('127.0.0.9'))))]).toEqual(
    Array(4).fill('handled'),
  );
  clients[0]?.destroy();
  await expect.poll(() => ask('127.0.0.2')).toBe('handled');
  expect(dropped()[0]).toBe('address');
});

test('connection limits: an address that sends many bodies in chunks loses its connections and gets none for a second; others and accounts keep theirs', async () => {
  const { call, dropped } = await open({}, (request, response) => {
    if (request.method === 'POST') noteChunked(request.socket);
    response.end('handled');
    noteAnswer(request.socket, request.url === '/account' ? 'an account' : undefined);
  });
  const ask = (socket: Socket, bytes = get()) => askOn(socket, bytes);
  const [account, silent] = [call('127.0.0.2'), call('127.0.0.2').resume()];
  expect(await ask(account, get('/account'))).toBe('handled');
  const post = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx';
  const answers = await Promise.all(Array.from({ length: 30 }, () => ask(call('127.0.0.2'), post)));
  expect(answers).toContain('cut');
  await expect.poll(() => isOver(silent)).toBe(true);
  expect([await ask(call('127.0.0.3')), await ask(account)]).toEqual(['handled', 'handled']);
  expect(new Set(dropped())).toEqual(new Set(['address']));
  await expect.poll(() => ask(call('127.0.0.2'))).toBe('handled');
});

test('connection limits: an address whose connections run far ahead of their answers gets none for a second; others do', async () => {
  const { call, dropped } = await open({}, (request, response) => {
    if (request.url !== '/waits') response.end('handled');
  });
  // Again and again: what arrives within a second counts.
  const attack = () => {
    for (let i = 0; i < 30; i++) call('127.0.0.2').resume().write(get('/waits').repeat(200));
    return dropped();
  };
  await expect.poll(attack).toContain('address');
  expect(await askOn(call('127.0.0.3'), get())).toBe('handled');
  expect(new Set(dropped())).toEqual(new Set(['pipelined', 'address']));
  await expect.poll(() => askOn(call('127.0.0.2'), get())).toBe('handled');
});

test('connection limits: an account with too many unread bytes loses the connection that stalled longest, and others lose none', async () => {
  const connections = { unreadBytesMax: 1_000_000_000, unreadBytesPerAccount: 40_000_000 };
  const { call, left, dropped } = await open({ connections }, (request, response) => {
    response.end(largeBody);
    noteAnswer(request.socket, request.url);
  });
  const ask = (who: string): Socket => {
    const socket = call().pause();
    socket.write(get(who));
    return socket;
  };
  ask('/other');
  for (let i = 0; i < 4; i++) ask('/greedy');
  await expect.poll(dropped).toContain('unread');
  await expect.poll(() => left() + dropped().length).toBe(5);
  expect(left()).toBeGreaterThanOrEqual(3);
});

test('connection limits: unread bytes are counted per owner and in total, and bytes that were read meanwhile do not count', () => {
  const cut: string[] = [];
  const one = (name: string, owner: string, movedMs: number, bytes: { now: number }): Unread => ({
    owner,
    waitingBytes: () => bytes.now,
    movedMs: () => movedMs,
    cut: () => void cut.push(name),
  });
  const unread = createUnread({ unreadBytesMax: 100, unreadBytesPerAccount: 60 });
  const [a, b, c, d] = [{ now: 40 }, { now: 30 }, { now: 50 }, { now: 20 }];
  unread.count(one('a', 'x', 3, a));
  a.now = 0; // read before anybody looks again
  unread.count(one('b', 'x', 2, b));
  expect([cut, unread.total()]).toEqual([[], 30]);
  unread.count(one('c', 'x', 9, c));
  expect([cut, unread.total()]).toEqual([['b'], 50]);
  const other = one('d', 'y', 1, d);
  unread.count(other);
  d.now = 55;
  unread.count(other);
  expect([cut, unread.total()]).toEqual([['b', 'd'], 50]);
});

test('connection limits: a client stalls when nothing of what waits for it goes out for seven seconds, and not while it reads', async () => {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as { port: number }; // it listens on a port
  const client = connect(port, '127.0.0.1').pause();
  clients.push(client);
  const [socket] = (await once(server, 'connection')) as [Socket];
  clients.push(socket);
  server.close();
  const watch = createStallWatch(socket, socket, 0);
  expect(watch.isStalled(60_000)).toBe(false); // nothing waits
  socket.write(largeBody);
  await expect.poll(() => socket.writableLength).toBeGreaterThan(0);
  expect([watch.isStalled(61_000), watch.isStalled(67_900), watch.isStalled(68_000)]).toEqual([false, false, true]);
  let read = 0;
  while (read < 8_000_000) read += ((await once(client.resume(), 'data')) as [Buffer])[0].length;
  client.pause();
  await expect.poll(() => watch.isStalled(68_100)).toBe(false);
  expect(watch.movedMs()).toBe(68_100);
  expect(socket.writableLength).toBeGreaterThan(0);
  expect(watch.isStalled(68_100 + 60_000 * 60)).toBe(true); // less than a kilobyte a second, over an hour
});
