// The client's stream against the real program over a network that fails: every stored report once, in order, whatever happens. On our server,
// and on one that has none of our extensions.
import { createClient, type StreamOptions, type StreamState } from '@sealpost/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FailingNetwork, openFailingNetwork } from '../support/proxies/failing-network.ts';
import { openSpecProxy, type SpecProxy } from '../support/proxies/spec-proxy.ts';

let network: FailingNetwork;
let proxy: SpecProxy;
beforeAll(async () => {
  network = await openFailingNetwork();
  proxy = await openSpecProxy(() => network.proxy.url, { pageMax: 15 });
});
afterAll(async () => {
  await proxy?.close();
  await network?.close();
});

/** Over what, and on which server. */
const transports = ['sse', 'websocket', 'auto elsewhere'] as const;
type Way = (typeof transports)[number];

const openStream = (way: Way, options: StreamOptions) => {
  const { userId, secret, feedId } = network.world;
  const { url: baseUrl } = way === 'auto elsewhere' ? proxy : network.proxy;
  const client = createClient({ baseUrl, userId, secret, onWarning: () => {} });
  const states: StreamState[] = [];
  const reports = client.stream([feedId], {
    reconnect: { minMs: 20, maxMs: 200 },
    transport: way === 'auto elsewhere' ? 'auto' : way,
    ...options,
    onState: (state) => void states.push(state),
  });
  const received: unknown[] = [];
  const receive = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) received.push((await reports.next()).value);
  };
  return { reports, received, receive, states };
};

test.each(transports)(
  'client stream over %s: the server is killed in mid-stream and comes back',
  async (way) => {
    const from = network.nextSecond();
    await network.ingest(20);
    const { reports, received, receive, states } = openStream(way, { from });
    await network.killInMidStream(receive);
    expect(received).toEqual(await network.storedFrom(from));
    expect(states.map(({ phase }) => phase)).toContain('reconnecting');
    reports.close();
  },
  300_000,
);

test.each(transports)(
  'client stream over %s: the network drops packets silently for a while',
  async (way) => {
    const from = network.nextSecond();
    const { reports, received, receive, states } = openStream(way, { from, silenceMs: 500 });
    await network.ingest(3);
    await receive(3);
    await network.vanish(receive, async () => {
      while (!states.some(({ phase }) => phase === 'reconnecting')) await new Promise((next) => setTimeout(next, 20));
    });
    expect(received).toEqual(await network.storedFrom(from));
    reports.close();
  },
  300_000,
);

test.each(transports)(
  'client stream over %s: one of two origins goes down and comes back',
  async (way) => {
    const from = network.nextSecond();
    const { reports, received, receive, states } = openStream(way, { from, ha: true });
    await network.ingest(5);
    await receive(5);
    await network.takeDownInTurn(receive);
    expect(received).toEqual(await network.storedFrom(from));
    const origins = states.flatMap((state) => ('origin' in state && state.phase === 'live' ? [state.origin] : []));
    expect(new Set(origins)).toEqual(new Set(['001', '002']));
    reports.close();
  },
  300_000,
);

test('client stream: a wrong secret ends it with a typed error', async () => {
  const client = createClient({ baseUrl: network.proxy.url, userId: network.world.userId, secret: 'wrong' });
  for (const transport of ['sse', 'websocket'] as const)
    await expect(client.stream([network.world.feedId], { transport }).next()).rejects.toMatchObject({
      code: 'unauthorized',
      status: 401,
    });
});
