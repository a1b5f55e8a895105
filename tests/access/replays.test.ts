// A captured handshake: its signature has opened one live connection and opens no other, whatever unsigned parts are changed and whichever worker gets
// it. The account's own handshakes pass meanwhile (D250).
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { signRequest } from '@sealpost/protocol';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { openEvents, openSocket, signLive } from '../support/live-clients.ts';
import { head, toLines } from '../support/raw-http.ts';
import { createWorld, type Server, startServer, type World } from '../support/real-program.ts';

const replays = countOf(40, 2_000);
let world: World;
let server: Server | undefined;
const closings: (() => void)[] = [];

beforeAll(async () => {
  world = await createWorld();
});
afterEach(async () => {
  for (const close of closings.splice(0)) close();
  await server?.stop();
  server = undefined;
});
afterAll(() => world.remove());

type Headers = Readonly<Record<string, string>>;
type Outcome = { readonly opened: boolean; readonly status: number; readonly code: string | undefined };

const upgrade: Headers = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** Sends a request over a connection of its own and leaves open what opens. */
const send = (url: string, target: string, headers: Headers): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = request({ hostname, port, path: target, headers, agent: false }, async (response) => {
      const status = response.statusCode ?? 0;
      closings.push(() => sent.destroy());
      response.on('error', () => {});
      if (status === 200) return resolve({ opened: true, status, code: undefined });
      let body = '';
      for await (const chunk of response) body += chunk;
      resolve({ opened: false, status, code: JSON.parse(body).code });
    });
    sent.on('upgrade', ({ statusCode: status = 0 }, socket) => {
      closings.push(() => socket.on('error', () => {}).destroy());
      resolve({ opened: true, status, code: undefined });
    });
    sent.on('error', reject).end();
  });

const metricsOf = async ({ opsUrl }: Server): Promise<string> => (await fetch(`${opsUrl}/metrics`)).text();

/** Sends a request and leaves without waiting for the answer. */
const leave = async (url: string, target: string, headers: Headers): Promise<void> => {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(head(`GET ${target} HTTP/1.1`, 'Host: a', ...toLines(headers)), () => socket.destroy());
  await once(socket, 'close');
};

/** What the signature does not cover, in every spelling that the server accepts. */
const variants: readonly ((target: string, headers: Headers) => readonly [string, Headers])[] = [
  (target, headers) => [target, headers],
  (target, headers) => [target, { ...headers, Host: 'other.example' }],
  (target, headers) => [target, { ...headers, 'X-Cll-Origin': '002' }],
  (target, headers) => [target, { ...headers, 'Last-Event-ID': '1' }],
  (target, headers) => [`/${target}`, headers],
  (target, headers) => [
    target,
    Object.fromEntries(Object.entries(headers).map(([k, v]) => [k, /SHA256/.test(k) ? v.toUpperCase() : v])),
  ],
];

const routes = [
  ['/api/v1/ws', upgrade],
  ['/api/v2/ws', upgrade],
  ['/api/v1/reports/stream', {}],
] as const;

test.each([0, 2])('replays: with %s workers, a signature opens one live connection', async (workers) => {
  const running = await startServer(world, workers === 0 ? [] : ['--workers', String(workers)]);
  server = running;
  const { userId, secret, feedId } = world;
  const codes = new Set<string>();
  for (const [path, headers] of routes) {
    const target = `${path}?feedIDs=${feedId}`;
    const signed = { ...headers, ...signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret) };
    const outcomes = await Promise.all(
      Array.from({ length: replays }, (_, i) =>
        send(running.url, ...(variants[i % variants.length] ?? expect.unreachable())(target, signed)),
      ),
    );
    const refused = outcomes.filter(({ opened }) => !opened);
    tally({ 'opened by a replay': outcomes.length - refused.length - 1 });
    expect(outcomes.length - refused.length, path).toBe(1);
    for (const { status, code } of refused) codes.add(`${status} ${code}`);
  }
  // An address with many failures gets 429 for further ones, and for nothing else.
  expect(codes).toEqual(new Set(['401 signature_used', '429 too_many_failures']));
  const latest = `/api/v1/reports/latest?feedID=${feedId}`;
  const signed = signRequest({ method: 'GET', target: latest, userId, timestampMs: Date.now() }, secret);
  const reads = await Promise.all(Array.from({ length: 3 }, () => send(running.url, latest, signed)));
  tallyControl({ 'reads repeated with one signature': reads.filter(({ status }) => status === 200).length - 1 });
  // Clients that leave while their signature is looked up leave no connection behind.
  const hasty = Array.from({ length: 40 }, (_, i) => {
    const [path, headers] = routes[i % 2 === 0 ? 0 : 2];
    const target = `${path}?feedIDs=${feedId}`;
    return leave(running.url, target, { ...headers, ...signLive(target, world) });
  });
  await Promise.all(hasty);
  const openNow = async (): Promise<number> =>
    [...(await metricsOf(running)).matchAll(/^sealpost_live_connections\{.*\} (\d+)$/gm)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    );
  await expect.poll(openNow).toBe(3);
  // Three are open: as many more are the account's as if nobody had replayed anything.
  const own = Array.from({ length: 17 }, async (_, i) => {
    const open = i % 2 === 0 ? openSocket : openEvents;
    const client = await open(running.url, `${i % 2 === 0 ? routes[0][0] : routes[2][0]}?feedIDs=${feedId}`, world);
    closings.push(() => ('webSocket' in client ? client.webSocket.terminate() : client.close()));
    return 'opened';
  });
  expect(await Promise.all(own.map((one) => one.catch(String)))).toEqual(own.map(() => 'opened'));
  const metrics = await metricsOf(running);
  expect(Number(/^sealpost_auth_failures_total\{reason="signature_used"\} (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThan(
    0,
  );
});
