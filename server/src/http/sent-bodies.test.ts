import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSentBodies } from './sent-bodies.ts';

const body = Buffer.alloc(20_000_000); // more than the system takes at once
const server = createServer();
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

/** A client that has asked and reads nothing, and the response to it. */
const ask = async (): Promise<readonly [Socket, ServerResponse]> => {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause(); // it listens on a port
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]; // as Node documents it
  return [socket, response];
};

test('sent bodies: one is released once when all of it is sent, or its client has left, and not before', async () => {
  const { add, sweep } = createSentBodies();
  const released: string[] = [];
  const [reader, slow] = await ask();
  const [leaver, left] = await ask();
  for (const [name, response] of [
    ['read', slow],
    ['left', left],
  ] as const) {
    add(response, () => released.push(name));
    response.end(body);
  }
  for (let i = 0; i < 10; i++) sweep();
  expect(released).toEqual([]);
  const closed = once(left, 'close');
  leaver.destroy();
  await closed;
  for (let i = 0; i < 10; i++) sweep();
  expect(released).toEqual(['left']);
  reader.resume();
  await once(slow, 'close');
  for (let i = 0; i < 10; i++) sweep();
  expect(released).toEqual(['left', 'read']);
  reader.destroy();
});
