// Every fault that acts on live connections and messages, on a real node, as a WebSocket or an event stream sees it.
import { createClient } from '@sealpost/client';
import type { FeedId } from '@sealpost/protocol';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type LiveReport, openEvents, openSocket } from '../../../tests/support/live-clients.ts';
import type { Credentials } from '../../../tests/support/running-api.ts';
import { btc, eth, type FaultedNode, link, openFaultedNode, startSecond } from './faulted-node.fixture.ts';

let node: FaultedNode;
let second = startSecond;
const open: (() => void)[] = [];
beforeAll(async () => {
  node = await openFaultedNode({ origins: 'a.example,b.example' });
});
afterAll(() => node?.stop());
afterEach(() => {
  node.faults.clear();
  node.faults.clearRequests();
  for (const close of open.splice(0)) close();
});

const ways = ['WebSocket', 'WebSocket v2', 'event stream'] as const;
type Way = (typeof ways)[number];
const paths = {
  WebSocket: '/api/v1/ws',
  'WebSocket v2': '/api/v2/ws',
  'event stream': '/api/v1/reports/stream',
} as const;

type Reader = {
  /** Seconds of the observations that came, by stream. */
  readonly seen: (feedId?: FeedId) => readonly number[];
  readonly closed: Promise<unknown>;
  readonly ping?: () => Promise<boolean>;
};

const observed = (report: LiveReport & { readonly observationsTimestampMs?: number }): number =>
  report.observationsTimestamp ?? Math.floor((report.observationsTimestampMs ?? 0) / 1_000);

const connect = async (
  way: Way,
  feedIds: readonly FeedId[] = [eth, btc],
  who: Credentials = node.reader,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reader> => {
  const target = `${paths[way]}?feedIDs=${feedIds.join(',')}`;
  const seenIn =
    (reports: () => readonly LiveReport[]) =>
    (feedId: FeedId = eth) =>
      reports()
        .filter(({ feedID }) => feedID === feedId)
        .map(observed);
  if (way === 'event stream') {
    const events = await openEvents(node.url, target, who, Date.now(), undefined, headers);
    open.push(events.close);
    return { seen: seenIn(events.reports), closed: events.closed };
  }
  const socket = await openSocket(node.url, target, who, Date.now(), headers);
  open.push(() => socket.webSocket.terminate());
  const ping = (): Promise<boolean> =>
    new Promise((resolve) => {
      socket.webSocket.once('pong', () => resolve(true));
      socket.webSocket.ping();
      setTimeout(() => resolve(false), 300);
    });
  return { seen: seenIn(socket.reports), closed: socket.closed, ping };
};

/** Appends the next report of every stream; returns its second. */
const push = async (): Promise<number> => {
  second += 1;
  await node.append(...[eth, btc, link].map((feedId) => node.signed.report(feedId, second, second)));
  return second;
};

test.each(ways)('close: %s connections end when the fault starts, and new ones as they open', async (way) => {
  const [mine, others] = [await connect(way), await connect(way, [eth], node.other)];
  node.faults.add({ kind: 'close', code: 1012, account: node.reader.userId });
  const closed = await mine.closed;
  if (way !== 'event stream') expect(closed).toMatchObject({ code: 1012 });
  await (await connect(way)).closed;
  const at = await push();
  await expect.poll(() => others.seen()).toEqual([at]);
  node.faults.clear();
  const again = await connect(way);
  const later = await push();
  await expect.poll(() => again.seen()).toEqual([later]);
});

test('close: as many connections as the count says, cut without a frame by 1006', async () => {
  node.faults.add('close=1006,count=1,skip=1,stream=LINK/USD');
  const first = await connect('WebSocket', [link]);
  const second = await connect('WebSocket', [link]);
  expect(await second.closed).toMatchObject({ code: 1006 });
  const at = await push();
  await expect.poll(() => first.seen(link)).toEqual([at]);
});

test('close: with a probability, a connection ends before some message', async () => {
  node.faults.add({
    kind: 'close',
    code: 4000,
    probability: 0.2,
    id: 'some',
    account: node.other.userId,
    stream: 'LINK/USD',
  });
  const reader = await connect('WebSocket', [link], node.other);
  const sent: number[] = [];
  for (let i = 0; i < 50; i += 1) sent.push(await push());
  expect(await reader.closed).toMatchObject({ code: 4000 });
  expect(reader.seen(link)).toEqual(sent.slice(0, reader.seen(link).length));
  expect(node.faults.list()[0]).toMatchObject({ applied: 1, matched: reader.seen(link).length + 2 });
});

test.each(ways)('silent: %s connections get nothing and stay open; others are served', async (way) => {
  const [mine, others] = [await connect(way), await connect(way, [eth], node.other)];
  node.faults.add({ kind: 'silent', account: node.reader.userId });
  const at = await push();
  await expect.poll(() => others.seen()).toEqual([at]);
  if (mine.ping !== undefined) expect([await mine.ping(), await others.ping?.()]).toEqual([false, true]);
  expect(mine.seen()).toEqual([]);
  node.faults.clear();
  const later = await push();
  await expect.poll(() => mine.seen()).toEqual([later]);
  if (mine.ping !== undefined) expect(await mine.ping()).toBe(true);
});

test('silent: a count is of connections, which stay silent until the fault is removed', async () => {
  node.faults.add('silent,count=1,stream=LINK/USD');
  const [first, second] = [await connect('WebSocket', [link]), await connect('WebSocket', [link])];
  const sent = [await push(), await push()];
  await expect.poll(() => second.seen(link)).toEqual(sent);
  expect(first.seen(link)).toEqual([]);
});

test.each(ways)('delay: messages of the stream come late over a %s, in order, and others at once', async (way) => {
  const reader = await connect(way);
  node.faults.add('delay=60s,stream=ETH/USD,count=1');
  const sent = [await push(), await push()];
  await expect.poll(() => reader.seen(btc)).toEqual(sent);
  expect(reader.seen(eth)).toEqual([]); // the second waits for the first
  node.faults.clear();
  node.faults.add('delay=50ms,jitter=20ms');
  const quick = await connect(way);
  const late = [await push(), await push()];
  await expect.poll(() => quick.seen()).toEqual(late);
  expect(reader.seen(eth)).toEqual([]);
});

test.each(ways)('reorder: a message of a %s comes after the next one of its stream', async (way) => {
  const reader = await connect(way);
  node.faults.add('reorder,stream=ETH/USD,count=1');
  const [first, next, last] = [await push(), await push(), await push()];
  await expect.poll(() => reader.seen()).toEqual([next, first, last]);
  expect(reader.seen(btc)).toEqual([first, next, last]);
});

test.each(ways)('duplicate: a message of a %s comes several times', async (way) => {
  const reader = await connect(way);
  node.faults.add('duplicate=3,stream=ETH/USD,count=1');
  const [first, next] = [await push(), await push()];
  await expect.poll(() => reader.seen()).toEqual([first, first, first, next]);
  expect(reader.seen(btc)).toEqual([first, next]);
});

test('revoked: open connections of the account end with 1008', async () => {
  const [mine, others] = [await connect('WebSocket'), await connect('WebSocket', [eth], node.other)];
  node.faults.add({ kind: 'revoked', account: node.reader.userId });
  expect(await mine.closed).toMatchObject({ code: 1008 });
  const at = await push();
  await expect.poll(() => others.seen()).toEqual([at]);
});

test('origin-down: open connections of the origin are cut, those of the other one go on', async () => {
  const [a, b] = await Promise.all(
    ['a.example', 'b.example'].map((origin) => connect('WebSocket', [eth], node.reader, { 'X-Cll-Origin': origin })),
  );
  node.faults.add('origin-down=a.example');
  expect(await a?.closed).toMatchObject({ code: 1006 });
  const at = await push();
  await expect.poll(() => b?.seen()).toEqual([at]);
});

test('faults: the SDK delivers every report once and in order, whatever happens to its messages', async () => {
  for (const line of [
    'close=1011,skip=3,count=1',
    'duplicate,probability=0.5',
    'reorder,probability=0.3',
    'delay=5ms,jitter=5ms',
  ])
    node.faults.add(line);
  const client = createClient({ baseUrl: node.url, ...node.reader, onWarning: () => {}, nowMs: () => Date.now() });
  const from = second + 1;
  const reports = client.stream([eth], { transport: 'websocket', reconnect: { minMs: 10, maxMs: 20 }, from });
  await expect.poll(() => reports.state.phase).toBe('live');
  const sent: number[] = [];
  for (let i = 0; i < 20; i += 1) sent.push(await push());
  node.faults.clear();
  sent.push(await push());
  const got: number[] = [];
  while (got.length < sent.length) got.push((await reports.next()).value?.observationsTimestamp ?? 0);
  expect(got).toEqual(sent);
  reports.close();
});

test('origin-down: the SDK with a connection to each origin misses nothing', async () => {
  const client = createClient({ baseUrl: node.url, ...node.reader, onWarning: () => {} });
  const reports = client.stream([eth], { transport: 'websocket', ha: true, reconnect: { minMs: 10, maxMs: 20 } });
  await expect
    .poll(() => node.faults.requests().filter(({ status }) => status === 101).length)
    .toBeGreaterThanOrEqual(2);
  await expect.poll(() => reports.state.phase).toBe('live');
  const sent = [await push()];
  node.faults.add('origin-down=a.example');
  for (let i = 0; i < 5; i += 1) sent.push(await push());
  const got: number[] = [];
  while (got.length < sent.length) got.push((await reports.next()).value?.observationsTimestamp ?? 0);
  expect(got).toEqual(sent);
  reports.close();
});

test('faults: an error on the way to one connection ends that one, and the others are served', async () => {
  const broken = await openFaultedNode({}, () => {
    throw new Error('The oracles are gone.');
  });
  const [first, second] = [
    await openSocket(broken.url, `/api/v1/ws?feedIDs=${eth}`, broken.reader),
    await openSocket(broken.url, `/api/v1/ws?feedIDs=${eth}`, broken.other),
  ];
  broken.faults.add({ kind: 'two-reports', account: broken.reader.userId });
  await broken.append(broken.signed.report(eth, startSecond, startSecond));
  expect(await first.closed).toMatchObject({ code: 1006 });
  await broken.append(broken.signed.report(eth, startSecond + 1, startSecond + 1));
  await expect.poll(() => second.reports().map(observed)).toEqual([startSecond, startSecond + 1]);
  await broken.stop();
});

test('faults: what waits for a connection is sent when the node drains, and nothing is left', async () => {
  const draining = await openFaultedNode();
  draining.faults.add('delay=60s,stream=ETH/USD');
  draining.faults.add('reorder,stream=BTC/USD');
  const socket = await openSocket(draining.url, `/api/v1/ws?feedIDs=${eth},${btc}`, draining.reader);
  await draining.append(...[eth, btc].map((feedId) => draining.signed.report(feedId, startSecond, startSecond)));
  await expect.poll(() => draining.faults.list().map(({ applied }) => applied)).toEqual([1, 1]);
  await draining.stop();
  await socket.closed;
  expect(
    socket
      .reports()
      .map(({ feedID }) => feedID)
      .toSorted(),
  ).toEqual([eth, btc]);
});
