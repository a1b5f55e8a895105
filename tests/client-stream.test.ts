// The client's stream against the real program over a network that fails: every stored report once, in order, whatever happens.
import { createClient, type StreamOptions, type StreamState } from '@sealpost/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FailingNetwork, openFailingNetwork } from './failing-network.ts';

let network: FailingNetwork;
beforeAll(async () => {
  network = await openFailingNetwork();
}, 60_000);
afterAll(() => network?.close());

const openStream = (options: StreamOptions) => {
  const { userId, secret, feedId } = network.world;
  const client = createClient({ baseUrl: network.proxy.url, userId, secret, onWarning: () => {} });
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
    const from = network.nextSecond();
    await network.ingest(20);
    const { reports, received, receive, states } = openStream({ transport, from });
    await network.killInMidStream(receive);
    expect(received).toEqual(await network.storedFrom(from));
    expect(states.map(({ phase }) => phase)).toContain('reconnecting');
    reports.close();
  },
  60_000,
);

test.each(transports)(
  'client stream over %s: the network is gone for a while, and nobody is told',
  async (transport) => {
    const from = network.nextSecond();
    const { reports, received, receive, states } = openStream({ transport, from, silenceMs: 500 });
    await network.ingest(3);
    await receive(3);
    await network.vanish(receive, async () => {
      while (!states.some(({ phase }) => phase === 'reconnecting')) await new Promise((next) => setTimeout(next, 20));
    });
    expect(received).toEqual(await network.storedFrom(from));
    reports.close();
  },
  60_000,
);

test.each(transports)(
  'client stream over %s: one of two origins goes down and comes back',
  async (transport) => {
    const from = network.nextSecond();
    const { reports, received, receive, states } = openStream({ transport, from, ha: true });
    await network.ingest(5);
    await receive(5);
    await network.takeDownInTurn(receive);
    expect(received).toEqual(await network.storedFrom(from));
    const origins = states.flatMap((state) => ('origin' in state && state.phase === 'live' ? [state.origin] : []));
    expect(new Set(origins)).toEqual(new Set(['001', '002']));
    reports.close();
  },
  60_000,
);

test('client stream: a wrong secret ends it with a typed error', async () => {
  const client = createClient({ baseUrl: network.proxy.url, userId: network.world.userId, secret: 'wrong' });
  for (const transport of transports)
    await expect(client.stream([network.world.feedId], { transport }).next()).rejects.toMatchObject({
      code: 'unauthorized',
      status: 401,
    });
});
