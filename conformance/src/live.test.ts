import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { openWatch } from './live.ts';
import type { Requester } from './requester.ts';

test('watch: a handshake that is sent byte by byte is given up when its time is over', async () => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    const sending = setInterval(() => socket.write('a'), 20);
    socket.once('close', () => clearInterval(sending)).write('HTTP/1.1 101 Switching Protocols\r\nX-Slow: ');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // it listens on a port
  const requester = { headersOf: () => ({}) } as unknown as Requester; // as much of it as is used
  const watch = openWatch(
    { wsUrl: new URL(`http://127.0.0.1:${port}`), requester, timeoutMs: 200 },
    { method: 'GET', target: '/api/v1/ws', signed: false, headers: {} },
  );
  expect(await watch.opened).toEqual({ ok: false, problem: 'no handshake within 0.2 s' });
  await expect.poll(() => [...sockets].every(({ destroyed }) => destroyed)).toBe(true);
});

test('watch: a frame whose times are no numbers is noted like any other', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket) => {
    for (const time of ['{"toString":1}', '"7"', '7'])
      socket.send(Buffer.from(`{"report":{"feedID":"a","observationsTimestampMs":${time}}}`), { binary: true });
    socket.send(Buffer.from('{"report":{"feedID":"a","observationsTimestamp":{"valueOf":1,"toString":1}}}'));
    socket.send(Buffer.from('{"report":{"feedID":"a","observationsTimestamp":7}}'));
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  const requester = { headersOf: () => ({}) } as unknown as Requester; // as much of it as is used
  const watch = openWatch(
    { wsUrl: new URL(`http://127.0.0.1:${port}`), requester, timeoutMs: 60_000 },
    { method: 'GET', target: '/api/v1/ws', signed: false, headers: {} },
  );
  onTestFinished(() => {
    watch.end();
    server.close();
  });
  await expect.poll(() => watch.frames.map(({ toMs }) => toMs)).toEqual([Number.NaN, Number.NaN, 7, Number.NaN, 7_000]);
});
