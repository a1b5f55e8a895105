// The client's stream against the real program over a network that fails: every stored report once, in order, whatever happens.
import { createClient, type StreamOptions, type StreamState } from '@sealpost/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CuttingProxy, openCuttingProxy } from './cutting-proxy.ts';
import { createWorld, fetchSigned, type Server, startServer, type World } from './real-program.ts';
import { createSignedReports } from './signed-reports.ts';

const { report } = await createSignedReports();
const token = 'token-of-the-tests';
const settings = ['--origins', '001,002', '--ahead-max-ms', '6000000'];

let world: World;
let server: Server;
let proxy: CuttingProxy;
let seconds: number;

const serve = (): Promise<Server> =>
  startServer(world, [...settings, '--verifier-threads', '1'], { SEALPOST_INGEST_TOKEN: token });

beforeAll(async () => {
  world = await createWorld();
  server = await serve();
  proxy = await openCuttingProxy(server.port);
  seconds = Math.floor(Date.now() / 1_000) + 10;
}, 20_000);
afterAll(async () => {
  await proxy?.close();
  await server?.stop();
  world?.remove();
});

/** Brings in reports of the next seconds, with a gap before them; not through the proxy. */
const ingest = async (count: number): Promise<void> => {
  seconds += 5;
  for (let i = 0; i < count; i += 1) {
    seconds += 1;
    const fullReport = `0x${Buffer.from(report(world.feedId, seconds, seconds).fullReport).toString('hex')}`;
    const answer = await fetch(`${server.opsUrl}/ingest`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify({ fullReport }),
    });
    expect(await answer.text()).toContain('"stored"');
  }
};

/** The program itself: from sources, the child is only what starts it. */
const pidOf = ({ output }: Server): number => Number(/"pid":(\d+)/.exec(output())?.[1] ?? Number.NaN);

/** Everything that the store has from a second on. */
const storedFrom = async (from: number): Promise<readonly unknown[]> => {
  const target = `/api/v1/reports/page?feedID=${world.feedId}&startTimestamp=${from}&limit=1000`;
  return (await (await fetchSigned(server.url, target, world)).json()).reports;
};

const openStream = (options: StreamOptions) => {
  const { userId, secret, feedId } = world;
  const client = createClient({ baseUrl: proxy.url, userId, secret, onWarning: () => {} });
  const states: StreamState[] = [];
  const reports = client.stream([feedId], {
    reconnect: { minMs: 20, maxMs: 200 },
    ...options,
    onState: (state) => void states.push(state),
  });
  const received: unknown[] = [];
  const receive = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) received.push((await reports.next()).value);
  };
  return { reports, received, receive, states };
};

const transports = ['sse', 'websocket'] as const;

test.each(transports)(
  'client stream over %s: the server is killed in mid-stream and comes back',
  async (transport) => {
    const from = seconds + 1; // the second before has what an earlier test brought
    await ingest(20);
    const { reports, received, receive, states } = openStream({ transport, from });
    await receive(20);
    await ingest(5);
    process.kill(pidOf(server), 'SIGKILL');
    await server.finished;
    server = await serve();
    await ingest(10);
    proxy.upstreamPort = server.port;
    await receive(15);
    await ingest(5);
    await receive(5);
    expect(received).toEqual(await storedFrom(from));
    expect(states.map(({ phase }) => phase)).toContain('reconnecting');
    reports.close();
  },
  60_000,
);

test.each(transports)(
  'client stream over %s: the network is gone for a while, and nobody is told',
  async (transport) => {
    const from = seconds + 1; // the second before has what an earlier test brought
    const { reports, received, receive, states } = openStream({ transport, from, silenceMs: 500 });
    await ingest(3);
    await receive(3);
    proxy.freeze();
    await ingest(30);
    while (!states.some(({ phase }) => phase === 'reconnecting')) await new Promise((next) => setTimeout(next, 20));
    await ingest(10);
    proxy.thaw();
    await receive(40);
    await ingest(3);
    await receive(3);
    expect(received).toEqual(await storedFrom(from));
    reports.close();
  },
  60_000,
);

test.each(transports)(
  'client stream over %s: one of two origins goes down and comes back',
  async (transport) => {
    const from = seconds + 1; // the second before has what an earlier test brought
    const { reports, received, receive, states } = openStream({ transport, from, ha: true });
    await ingest(5);
    await receive(5);
    for (const origin of ['001', '002']) {
      proxy.downOrigins.clear();
      proxy.downOrigins.add(origin);
      proxy.drop(`X-Cll-Origin: ${origin}`);
      await ingest(10);
      await receive(10);
    }
    expect(received).toEqual(await storedFrom(from));
    const origins = states.flatMap((state) => ('origin' in state && state.phase === 'live' ? [state.origin] : []));
    expect(new Set(origins)).toEqual(new Set(['001', '002']));
    proxy.downOrigins.clear();
    reports.close();
  },
  60_000,
);

test('client stream: a wrong secret ends it with a typed error', async () => {
  const client = createClient({ baseUrl: proxy.url, userId: world.userId, secret: 'wrong' });
  for (const transport of transports)
    await expect(client.stream([world.feedId], { transport }).next()).rejects.toMatchObject({
      code: 'unauthorized',
      status: 401,
    });
});
