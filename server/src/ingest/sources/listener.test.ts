import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Door, openDoor, openPrivateListener, testStream } from '../../../../tests/door.ts';
import { createSignedReports, secondStream } from '../../../../tests/signed-reports.ts';
import type { OpsListener } from '../../ops.ts';
import { StoreError } from '../../store/store.ts';
import type { Ingest } from '../ingest.ts';
import { createIngestHandler } from './listener.ts';

const { report, signerSets } = await createSignedReports();
const now = 1_763_200_000;
const stream = secondStream(1);
const token = 'a-token-of-the-test';
let door: Door;
let listener: OpsListener;

beforeAll(async () => {
  door = await openDoor([testStream(stream)], signerSets, () => now * 1_000);
  listener = await openPrivateListener(door.ingest, token);
});
afterAll(async () => {
  await listener.close();
  await door.close();
});

const line = (second: number) =>
  `${JSON.stringify({ fullReport: `0x${Buffer.from(report(stream, second, second).fullReport).toString('hex')}` })}\n`;
const send = (body: string | undefined, init: RequestInit & { path?: string } = {}) =>
  fetch(`${listener.url}${init.path ?? '/ingest'}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { body }),
    ...init,
  });

test('listener: each line is answered in order, once it is durable', async () => {
  const response = await send(`${line(now - 3)}nonsense\n${line(now - 2)}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/x-ndjson');
  const results = (await response.text())
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text));
  expect(results.map(({ line: number, result, code }) => [number, result, code])).toEqual([
    [1, 'stored', null],
    [2, 'refused', 'malformed_line'],
    [3, 'stored', null],
  ]);
  expect(Object.keys(results[0])).toEqual(['line', 'result', 'feedID', 'observationsTimestamp', 'code', 'message']);
  expect(door.store.reports.latest(stream)?.observationsMs).toBe((now - 2) * 1_000);
});

test('listener: without the token nothing gets in', async () => {
  for (const headers of [
    {},
    { Authorization: 'Bearer wrong' },
    { Authorization: token },
    { Authorization: `bearer ${token}` },
  ] as Record<string, string>[]) {
    const response = await send(line(now - 1), { headers });
    expect([response.status, (await response.json()).code]).toEqual([401, 'unauthorized']);
  }
  expect(door.store.reports.latest(stream)?.observationsMs).toBe((now - 2) * 1_000);
});

test('listener: there is one path and one method', async () => {
  expect((await send('', { path: '/' })).status).toBe(404);
  expect((await send('', { path: '/ingest/' })).status).toBe(404);
  const response = await send(undefined, { method: 'GET' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
});

test('listener: an empty upload is fine', async () => {
  const response = await send('');
  expect([response.status, await response.text()]).toEqual([200, '']);
});

test.each([
  ['store_disk_full', 507],
  ['store_stopped', 503],
] as const)('listener: %s is %i, and the sender is told what it means', async (code, status) => {
  const failing: Ingest = {
    submit: () => Promise.reject(new StoreError(code, 'The disk is full.')),
    close: async () => {},
  };
  const other = await openPrivateListener(failing, token);
  try {
    const response = await fetch(`${other.url}/ingest`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: 'x\n',
    });
    expect([response.status, await response.json()]).toEqual([status, { error: 'The disk is full.', code }]);
  } finally {
    await other.close();
  }
});

const createSignal = () => {
  let resolve = (_: void | Promise<void>): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: (value?: Promise<void>) => resolve(value) };
};

test('listener: an upload ends when its client has left, however full the way back to it is', async () => {
  const stored = createSignal();
  const begun = createSignal();
  const waiting: Ingest = {
    submit: async (lines, firstLine) => {
      begun.resolve();
      await stored.promise;
      return door.ingest.submit(lines, firstLine);
    },
    close: async () => {},
  };
  const ended = createSignal();
  const handle = createIngestHandler(waiting, token);
  const server = createServer((request, response) => {
    response.once('close', () => stored.resolve()); // results come when nobody is left to read them
    ended.resolve(handle(request, response));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  const client = connect(port, '127.0.0.1').on('error', () => {});
  const body = 'nonsense\n'.repeat(3_000);
  client.write(
    `POST /ingest HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  client.write(body);
  await begun.promise;
  client.destroy();
  await ended.promise;
  server.close();
});
