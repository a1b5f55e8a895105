import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { OpenSocket } from './socket.ts';
import { loadSockets } from './socket-node.ts';
import type { ConnectionRequest, Transport } from './transport.ts';
import { createWebSocketTransport } from './websocket.ts';

const transport = (await loadSockets()) as Transport; // ws is installed here
const closing: (() => void)[] = [];

beforeEach(() => {
  // The limits of the SDK only: the timers of Node's sockets are not simulated.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
  for (const close of closing.splice(0)) close();
});

const requestTo = (wsUrl: string): ConnectionRequest =>
  ({
    wsUrl,
    feedIds: [`0x0003${'a'.repeat(60)}`],
    sign: async () => ({}),
    nowMs: () => 0,
    backpressure: { isFull: () => false, onChange: () => () => {} },
    silenceMs: 60_000,
    signal: new AbortController().signal,
  }) as unknown as ConnectionRequest; // what this transport uses of it

const never = (): void => expect.unreachable();
const handlers = { opened: never, received: never, missed: never, report: never };

/** Connects to a server that has read the request; `write` sends a part of its answer. */
const connect = async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port
  const ended = transport(requestTo(url), handlers);
  const socket = await accepted;
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => {});
  closing.push(() => {
    socket.destroy();
    server.close();
  });
  await new Promise((resolve) => socket.once('data', resolve));
  const write = (text: string): Promise<void> => new Promise((resolve) => socket.write(text, () => resolve()));
  return { ended, closed, write };
};

test('websocket: a server that never answers has 10 s', async () => {
  const { ended, closed } = await connect();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await ended).toBe('no answer within 10 s');
  await closed;
});

test('websocket: a handshake that is sent byte by byte has 10 s too', async () => {
  const { ended, closed, write } = await connect();
  await write('HTTP/1.1 101 Switching Protocols\r\nX-Slow: ');
  let reason: string | undefined;
  ended.then((told) => {
    reason = told;
  });
  for (let i = 0; i < 3; i += 1) {
    await write('a');
    await vi.advanceTimersByTimeAsync(3_000);
  }
  expect(reason).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await ended).toBe('no answer within 10 s');
  await closed;
});

test('websocket: a rejection that is incomplete after 10 s is reported with what has arrived', async () => {
  const text = '{"code":"unauthorized","message":"No."}';
  let closes = 0;
  const openSocket: OpenSocket = (_url, _headers, { refused }) => ({
    pause: () => {},
    resume: () => {},
    ping: () => {},
    expire: () => refused({ status: 401, headers: new Headers(), text }),
    close: () => {
      closes += 1;
    },
  });
  const ended = createWebSocketTransport(openSocket)(requestTo('http://a.test'), handlers);
  const failure = expect(ended).rejects.toMatchObject({ code: 'unauthorized', message: 'No.', status: 401 });
  await vi.advanceTimersByTimeAsync(10_000);
  await failure;
  expect(closes).toBe(1);
});
