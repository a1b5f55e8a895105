import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Connection, openConnection } from './connection.ts';
import { generate } from './generator.ts';

const account = { userId: '00000000-0000-4000-8000-000000000000', secret: 'a-secret' };

test('generator: a stall is charged to all requests that were planned meanwhile, and every answer is counted (control)', async () => {
  let [asked, isStalled] = [0, false];
  const server = createServer((_, response) => {
    asked += 1;
    if (asked === 20) isStalled = true;
    const answer = (): void => {
      isStalled = false;
      response.writeHead(asked % 10 === 0 ? 503 : 200, { 'Content-Length': 2 }).end('ok');
    };
    if (asked === 20) setTimeout(answer, 300);
    else answer();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  const plan = { port, account, targets: ['/a', '/b'], rate: 200, seconds: 1, connections: 1, patienceMs: 10_000 };
  const result = await generate(plan);
  server.close();
  expect(isStalled).toBe(false);
  expect(result.planned).toBe(201);
  expect(asked).toBe(result.planned - result.givenUp);
  expect((result.answers['200'] ?? 0) + (result.answers['503'] ?? 0)).toBe(asked);
  expect(result.withoutRetryAfter).toBe(result.answers['503']);
  // One request took 300 ms; without the planned time the others would have taken none.
  expect(result.latencyMs.p50).toBeGreaterThan(0);
  expect(result.latencyMs.max).toBeGreaterThan(250);
});

test('generator: requests that no connection is free for in time are given up, and cut ones are counted', async () => {
  const server = createServer((request) => void request.socket.destroy()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  const plan = { port, account, targets: ['/a'], rate: 50, seconds: 0.2, connections: 1, patienceMs: 10_000 };
  const { planned, cut, givenUp, answers } = await generate(plan);
  expect(cut + givenUp).toBe(planned);
  expect(cut).toBeGreaterThan(0);
  expect(answers).toEqual({});
  server.close();
});

test('generator: a connection is used again, but not after it was idle for too long', async () => {
  let opened = 0;
  const server = createServer((_, response) => void response.writeHead(200, { 'Content-Length': 2 }).end('ok'))
    .on('connection', () => {
      opened += 1;
    })
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  const ask = (connection: Connection) =>
    new Promise((resolve) => connection.send(Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'), resolve));
  const [patient, impatient] = [openConnection(port), openConnection(port, 100)];
  for (const connection of [patient, impatient]) await ask(connection);
  await pause(200);
  expect(await ask(patient)).toMatchObject({ status: '200' });
  expect(opened).toBe(2);
  expect(await ask(impatient)).toMatchObject({ status: '200' });
  expect(opened).toBe(3);
  for (const connection of [patient, impatient]) connection.close();
  server.close();
});
