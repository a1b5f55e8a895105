// How live connections are kept and ended: a client that is silent, one that does not read, many that only wait, and a drain.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { signRequest } from '@sealpost/protocol';
import { afterEach, beforeAll, expect, test } from 'vitest';
import type { StoredReport } from '../server/src/store/store.ts';
import { countOf, tally } from './support/full-count.ts';
import { openEvents, openSocket, type SocketClient } from './support/live-clients.ts';
import { head, toLines } from './support/raw-http.ts';
import { type Credentials, openService, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, type SignedReports, secondStream } from './support/signed-reports.ts';

const now = 1_763_200_000;
const nowMs = now * 1_000;
const stream = secondStream(1);
const socket = `/api/v1/ws?feedIDs=${stream}`;
const events = `/api/v1/reports/stream?feedIDs=${stream}`;
let signed: SignedReports;
let service: Service | undefined;
let reader: Credentials;

beforeAll(async () => {
  signed = await createSignedReports('live-endings');
});
afterEach(() => service?.close());

const openWith = async (rules: Parameters<typeof openService>[3], monotonicMs?: () => number): Promise<Service> => {
  service = await openService([testStream(stream)], signed.signerSets, () => nowMs, rules, monotonicMs);
  reader = await service.addAccount(['public']);
  return service;
};

/** Large ones, so that few of them fill what the system holds for a client; the store does not look into them. */
const largeReports = (count: number): readonly StoredReport[] =>
  Array.from({ length: count }, (_, i) => ({
    feedId: stream,
    validFromMs: (now - 10_000 + i) * 1_000,
    observationsMs: (now - 10_000 + i) * 1_000,
    fullReport: Buffer.alloc(40_000, `${i} `),
  }));

const endedBy = ({ liveEvents }: Service) =>
  liveEvents.flatMap((event) => (event.kind === 'liveEnded' ? [[event.route, event.reason, event.closeCode]] : []));

test('endings: a client that stops reading is cut with 1013, and another one gets everything', async () => {
  const running = await openWith({ liveBufferBytesMax: 262_144 });
  const [slow, fast] = await Promise.all([1, 2].map(() => openSocket(running.url, socket, reader, nowMs)));
  const slowEvents = await openEvents(running.url, events, reader, nowMs);
  if (slow === undefined || fast === undefined) return expect.unreachable();
  slow.webSocket.pause();
  slowEvents.response.pause();
  const reports = largeReports(200);
  for (let i = 0; i < reports.length; i += 10) {
    await running.append(reports.slice(i, i + 10));
    await expect.poll(() => fast.received.length, { interval: 5 }).toBe(i + 10); // the slow one is given up after 5 s
  }
  expect(fast.reports().map(({ observationsTimestamp }) => observationsTimestamp)).toEqual(
    reports.map(({ observationsMs }) => observationsMs / 1_000),
  );
  await expect.poll(() => endedBy(running)).toContainEqual(['reportStream', 'too_slow', null]);
  slow.webSocket.resume();
  slowEvents.response.resume();
  expect((await slow.closed).code).toBe(1013);
  await expect.poll(() => endedBy(running)).toContainEqual(['socket', 'too_slow', 1013]);
  await slowEvents.closed;
  expect(slow.received.length).toBeLessThan(200);
  fast.webSocket.close();
});

test('endings: a silent client is pinged, and ended when it does not answer; an event stream gets a comment', async () => {
  let clock = 0;
  const running = await openWith({}, () => clock);
  const [answering, silent] = await Promise.all([
    openSocket(running.url, socket, reader, nowMs),
    openSocket(running.url, socket, reader, nowMs),
  ]);
  const stream = await openEvents(running.url, events, reader, nowMs);
  silent.webSocket.on('error', () => {});
  await expect.poll(() => stream.comments()).toBe(1);
  silent.webSocket.pause();
  const pinged = once(answering.webSocket, 'ping');
  clock += 10_000;
  await pinged;
  await expect.poll(() => stream.comments()).toBe(2);
  clock += 10_000;
  await expect.poll(() => endedBy(running)).toEqual([['socket', 'silent', 1006]]);
  expect(answering.webSocket.readyState).toBe(answering.webSocket.OPEN);
  silent.webSocket.terminate();
  answering.webSocket.close();
  stream.close();
});

test('endings: a client that floods us with frames is closed with 1008, one that pings now and then is answered', async () => {
  const running = await openWith({});
  const [calm, pinging, talking, splitting] = await Promise.all(
    [1, 2, 3, 4].map(() => openSocket(running.url, socket, reader, nowMs)),
  );
  if (!calm || !pinging || !talking || !splitting) return expect.unreachable();
  for (const { webSocket } of [pinging, talking, splitting]) webSocket.on('error', () => {}); // what is sent after the end
  for (let i = 0; i < 1_000; i++) {
    pinging.webSocket.ping();
    talking.webSocket.send('hello');
    splitting.webSocket.send('x'.repeat(100), { fin: false });
  }
  const codes = await Promise.all([pinging, talking, splitting].map(({ closed }) => closed));
  expect(codes.map(({ code }) => code)).toEqual([1008, 1008, 1008]);
  const pong = once(calm.webSocket, 'pong');
  calm.webSocket.ping('now');
  expect(String((await pong)[0])).toBe('now');
  await expect
    .poll(() => endedBy(running).filter(([, reason]) => reason === 'too_many_frames').length)
    .toBeGreaterThanOrEqual(2);
  calm.webSocket.close();
});

// Once more, because a busy machine may take these 4 s for other things.
test('endings: a drain ends with the close frames of a client that keeps its connection open', {
  retry: 2,
}, async () => {
  const running = await openWith({});
  const { hostname, port } = new URL(running.url);
  const headers = signRequest({ method: 'GET', target: socket, ...reader, timestampMs: nowMs }, reader.secret);
  const client = connect({ host: hostname, port: Number(port), allowHalfOpen: true }).on('error', () => {});
  client.write(
    head(
      `GET ${socket} HTTP/1.1`,
      ...['Host: a', 'Connection: Upgrade', 'Upgrade: websocket', ...toLines(headers)],
      ...['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
    ),
  );
  expect(String((await once(client, 'data'))[0])).toMatch(/^HTTP\/1\.1 101 /);
  client.on('data', (frame: Buffer) => {
    if (frame[0] === 0x88) client.write(Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9])); // close, 1001, and nothing more
  });
  const drained = running.drain(60_000).then(() => 'drained');
  service = undefined;
  // The `ws` package waits 5 s for the client to close.
  expect(await Promise.race([drained, setTimeout(4_000, 'waiting', { ref: false })])).toBe('drained');
  client.destroy();
});

const idleCount = countOf(300, 5_000);

test('endings: many idle connections all get the report that comes at last, and a drain ends each with 1001', async () => {
  const running = await openWith({ socketsPerAccount: idleCount });
  const clients: SocketClient[] = [];
  while (clients.length < idleCount) {
    const group = Array.from({ length: Math.min(100, idleCount - clients.length) }, () =>
      openSocket(running.url, socket, reader, nowMs),
    );
    clients.push(...(await Promise.all(group)));
  }
  await running.append([signed.report(stream, now - 1, now - 1)]);
  await expect.poll(() => clients.filter(({ received }) => received.length === 1).length).toBe(idleCount);
  await running.drain(8_000);
  service = undefined;
  const codes = await Promise.all(clients.map(({ closed }) => closed));
  tally({ 'closed otherwise than with 1001': codes.filter(({ code }) => code !== 1001).length });
  expect(new Set(codes.map(({ code }) => code))).toEqual(new Set([1001]));
});
