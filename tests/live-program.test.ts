// Live delivery by the real program: the published TypeScript SDK unmodified, an event stream over a restart, workers, and a drain.
import { createRequire } from 'node:module';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from './support/free-port.ts';
import { openEvents, openSocket, type SocketClient } from './support/live-clients.ts';
import { createWorld, type Server, startServer, type World } from './support/real-program.ts';
import { createSignedReports } from './support/signed-reports.ts';

type SdkStream = {
  readonly on: (event: string, listener: (value: { readonly observationsTimestamp: number }) => void) => SdkStream;
  readonly connect: () => Promise<void>;
  readonly close: () => Promise<void>;
  readonly getOrigins: () => readonly string[];
};
const { createClient } = createRequire(import.meta.url)('@chainlink/data-streams-sdk') as {
  createClient: (config: Record<string, unknown>) => {
    readonly createStream: (feedIds: readonly string[], options: object) => SdkStream;
  };
};

const { report } = await createSignedReports();
const token = 'token-of-the-tests';
const settings = ['--origins', '001,002', '--ahead-max-ms', '6000000', '--verifier-threads', '1'];
const serve = (world: World, args: readonly string[] = []): Promise<Server> =>
  startServer(world, [...settings, ...args], { SEALPOST_INGEST_TOKEN: token });

let world: World;
let server: Server;
let port: number;
let seconds = Math.floor(Date.now() / 1_000) + 10;

beforeAll(async () => {
  world = await createWorld();
  port = await freePort();
  server = await serve(world, ['--listen', `127.0.0.1:${port}`]);
});
afterAll(async () => {
  await server?.stop();
  world?.remove();
});

/** Brings in a report of the next second; returns the second. */
const ingestNext = async (): Promise<number> => {
  seconds += 1;
  const fullReport = `0x${Buffer.from(report(world.feedId, seconds, seconds).fullReport).toString('hex')}`;
  const body = JSON.stringify({ fullReport });
  const answer = await fetch(`${server.opsUrl}/ingest`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body,
  });
  expect(await answer.text()).toContain('"stored"');
  return seconds;
};

const sdkStream = async (haMode: boolean) => {
  const { userId, secret, feedId } = world;
  const client = createClient({
    apiKey: userId,
    userSecret: secret,
    endpoint: server.url,
    wsEndpoint: server.url.replace('http', 'ws'),
    haMode,
  });
  const stream = client.createStream([feedId], { reconnectInterval: 50, maxReconnectAttempts: 50 });
  const received: number[] = [];
  const failures: unknown[] = [];
  stream.on('report', ({ observationsTimestamp }) => void received.push(observationsTimestamp));
  stream.on('error', (error) => void failures.push(error));
  await stream.connect();
  return { stream, received, failures };
};

const close = async ({ webSocket, closed }: SocketClient): Promise<string> => {
  webSocket.close();
  await closed;
  return 'opened';
};

const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`${server.opsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name.replace(/[{}"]/g, '\\$&')} (\\d+)$`, 'm').exec(text)?.[1]);
};
const sockets = 'sealpost_live_connections{http_route="/api/v1/ws"}';

test('published SDK: its stream, on one connection and on one to each of two origins, gets every report once', async () => {
  const [plain, both] = [await sdkStream(false), await sdkStream(true)];
  expect(both.stream.getOrigins()).toHaveLength(2);
  await expect.poll(() => metric(sockets)).toBe(3);
  const times = [await ingestNext(), await ingestNext(), await ingestNext()];
  await expect.poll(() => plain.received).toEqual(times);
  await expect.poll(() => both.received).toEqual(times);
  await Promise.all([plain.stream.close(), both.stream.close()]);
  expect([...plain.failures, ...both.failures]).toEqual([]);
  await expect.poll(() => metric(sockets)).toBe(0);
});

test('published SDK: comes back after a restart of the server, and an event stream goes on where it was', async () => {
  const sdk = await sdkStream(true);
  const target = `/api/v1/reports/stream?feedIDs=${world.feedId}`;
  const before = await openEvents(server.url, target, world);
  const times = [await ingestNext(), await ingestNext()];
  await expect.poll(() => sdk.received).toEqual(times);
  await expect.poll(() => before.events.length).toBe(2);
  expect((await server.stop()).code).toBe(0);
  await before.closed;
  server = await serve(world, ['--listen', `127.0.0.1:${port}`]);
  times.push(await ingestNext()); // the event stream is not open
  const after = await openEvents(server.url, target, world, Date.now(), before.events.at(-1)?.id);
  await expect.poll(() => metric(sockets)).toBe(2);
  times.push(await ingestNext());
  await expect.poll(() => sdk.received.at(-1)).toBe(times.at(-1));
  await expect
    .poll(() => [...before.reports(), ...after.reports()].map(({ observationsTimestamp }) => observationsTimestamp))
    .toEqual(times);
  after.close();
  await sdk.stream.close();
});

test('program: a drain says 1001, and each connection has one line of the log at its end', async () => {
  const socket = await openSocket(server.url, `/api/v1/ws?feedIDs=${world.feedId}`, world);
  const time = await ingestNext();
  await expect.poll(() => socket.reports().map(({ observationsTimestamp }) => observationsTimestamp)).toEqual([time]);
  const { code, stdout } = await server.stop();
  expect((await socket.closed).code).toBe(1001);
  expect(code).toBe(0);
  const ended = stdout
    .split('\n')
    .filter((line) => line.includes('"liveEnded"'))
    .map((line) => JSON.parse(line));
  expect(ended.at(-1)).toMatchObject({ userId: world.userId, route: '/api/v1/ws', messages: 1, reason: 'going_away' });
});

test('program: with two workers every connection of either gets every report, in order', async () => {
  await server.stop(); // the test before may have
  server = await serve(world, ['--workers', '2']);
  const target = `/api/v1/ws?feedIDs=${world.feedId}`;
  const clients = await Promise.all(Array.from({ length: 6 }, () => openSocket(server.url, target, world)));
  const events = await openEvents(server.url, `/api/v1/reports/stream?feedIDs=${world.feedId}`, world);
  await expect.poll(() => metric(sockets)).toBe(6);
  const times: number[] = [];
  for (let i = 0; i < 5; i++) times.push(await ingestNext());
  for (const client of [...clients, events])
    await expect.poll(() => client.reports().map(({ observationsTimestamp }) => observationsTimestamp)).toEqual(times);
  // The account's number is that of all workers: six sockets and a stream are open.
  const more = await Promise.all(Array.from({ length: 13 }, () => openSocket(server.url, target, world)));
  await expect.poll(() => openSocket(server.url, target, world).then(close, String)).toMatch(/429.*too_many_sockets/);
  more[0]?.webSocket.close();
  await expect.poll(() => openSocket(server.url, target, world).then(close, String)).toBe('opened');
  expect((await server.stop()).code).toBe(0);
  expect((await Promise.all(clients.map(({ closed }) => closed))).map(({ code }) => code)).toEqual(
    clients.map(() => 1001),
  );
  await events.closed;
});
