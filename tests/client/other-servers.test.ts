// Our client on servers of others, which allow less and send less than ours: a proxy in front of our service that behaves so.
import { createClient } from '@sealpost/client';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openPrefixProxy } from '../support/proxies/prefix-proxy.ts';
import { openSpecProxy, type SpecProxyOptions } from '../support/proxies/spec-proxy.ts';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

const now = 1_763_200_000;
const first = secondStream(1);
const many = Array.from({ length: 130 }, (_, i) => secondStream(i + 10));
const count = 130;
let service: Service;
let account: Credentials;

beforeAll(async () => {
  const { report, signerSets } = await createSignedReports();
  service = await openService(
    [first, ...many].map((feedId) => testStream(feedId)),
    signerSets,
    () => now * 1_000,
  );
  account = await service.addAccount(['public']);
  const ofSeconds = Array.from({ length: count }, (_, i) => report(first, now - count + i, now - count + i));
  await service.append([...ofSeconds, ...many.map((feedId) => report(feedId, now - 20, now - 5))]);
});
const proxies: { readonly close: () => Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});
afterAll(() => service.close());

const openProxy = async (options: SpecProxyOptions) => {
  const proxy = await openSpecProxy(() => service.url, { nowMs: () => now * 1_000, ...options });
  proxies.push(proxy);
  const client = createClient({ baseUrl: proxy.url, ...account, nowMs: () => now * 1_000, retries: 0 });
  /** The argument and status of each request that had one, in order. */
  const asked = (argument: string) =>
    proxy.answered.map(([target, status]) => {
      const value = new URL(target, proxy.url).searchParams.get(argument);
      return `${value === null ? 'none' : value.startsWith('0x') ? value.split(',').length : value} ${status}`;
    });
  return { proxy, client, asked };
};

const secondsOf = async (pages: AsyncIterable<{ readonly reports: readonly { observationsTimestamp: number }[] }>) => {
  const seconds: number[] = [];
  for await (const { reports } of pages) seconds.push(...reports.map((one) => one.observationsTimestamp));
  return seconds;
};
const allSeconds = Array.from({ length: count }, (_, i) => now - count + i);

test('pages: a server that rejects the limit is read with the largest one that it accepts, which is remembered', async () => {
  const { client, asked, proxy } = await openProxy({ limitMax: 50 });
  expect(await secondsOf(client.pages(first, { from: now - count }))).toEqual(allSeconds);
  const search = ['1000 400', 'none 200', '500 400', '100 400', '50 200'];
  expect(asked('limit')).toEqual([...search, '50 200', '50 200', '50 200']);
  proxy.answered.length = 0;
  await secondsOf(client.pages(first, { from: now - 3 }));
  expect(asked('limit')).toEqual(['50 200', '50 200']);
});

test('pages: a server that accepts no limit at all is read with its default', async () => {
  const { client, asked } = await openProxy({ limitMax: 0 });
  expect(await secondsOf(client.pages(first, { from: now - count }))).toEqual(allSeconds);
  expect(asked('limit').filter((one) => one.endsWith('400'))).toHaveLength(5);
  expect(asked('limit').at(-1)).toBe('none 200');
});

test('pages: a limit of the caller is made smaller, too', async () => {
  const { client, asked } = await openProxy({ limitMax: 50 });
  expect(await secondsOf(client.pages(first, { from: now - 3, limit: 70 }))).toEqual(allSeconds.slice(-3));
  expect(asked('limit').slice(0, 3)).toEqual(['70 400', 'none 200', '50 200']);
});

test('pages: a 400 for another reason is the error of the first request, and nothing is remembered', async () => {
  const { client, asked } = await openProxy({ limitMax: -1 });
  const read = () => secondsOf(client.pages(first, { from: now - 3 }));
  await expect(read()).rejects.toMatchObject({ status: 400, code: 'bad_request', message: 'invalid limit' });
  await expect(read()).rejects.toMatchObject({ status: 400 });
  expect(asked('limit')).toEqual(['1000 400', 'none 400', '1000 400', 'none 400']);
});

test('stream: stored reports are read from a server that rejects the limit', async () => {
  const { proxy } = await openProxy({ limitMax: 50, push: false });
  const client = createClient({ baseUrl: proxy.url, ...account, nowMs: () => now * 1_000 });
  const seconds: number[] = [];
  for await (const { observationsTimestamp } of client.stream([first], { from: now - count })) {
    seconds.push(observationsTimestamp);
    if (seconds.length === count) break;
  }
  expect(seconds).toEqual(allSeconds);
});

test('bulk: more streams than a server allows are several requests, and the results are in the order asked for', async () => {
  const { client, asked, proxy } = await openProxy({ feedIdsMax: 30 });
  const order = [...many].reverse();
  const found = await client.bulk(order, now - 10);
  expect(found.reports.map(({ feedID }) => feedID)).toEqual(order);
  expect(asked('feedIDs').filter((one) => one.endsWith('400')).length).toBeLessThanOrEqual(4);
  proxy.answered.length = 0;
  await client.bulk(order, now - 10);
  expect(asked('feedIDs')).toEqual(['25 200', '25 200', '25 200', '25 200', '25 200', '5 200']);
});

test('bulk: our server gets as many streams at once as it allows', async () => {
  const client = createClient({ baseUrl: service.url, ...account, nowMs: () => now * 1_000 });
  const { reports, missing } = await client.bulk([...many, first], now - 10);
  expect(reports.map(({ feedID }) => feedID)).toEqual([...many, first]);
  expect(missing).toEqual([]);
});

test('catalog: entries of feed ID, pair and status are enough to find a stream and to read it', async () => {
  const { client } = await openProxy({ bare: true });
  const { feeds } = await client.discovery();
  const { baseAsset, quoteAsset } = testStream(first);
  expect(feeds.find(({ feedId }) => feedId === first)).toEqual({
    feedId: first,
    name: `${baseAsset}/${quoteAsset}`,
    baseAsset,
    quoteAsset,
    status: 'live',
  });
  await expect(client.latest(`${baseAsset}/${quoteAsset}`)).rejects.toMatchObject({ code: 'ambiguous_stream' });
});

test('prefix: calls and every kind of live connection go to the path of the base URL, and are signed as the server receives them', async () => {
  const proxy = await openPrefixProxy(service.url, '/my/streams');
  proxies.push(proxy);
  const client = createClient({ baseUrl: `${proxy.url}/`, ...account, nowMs: () => now * 1_000 });
  expect((await client.latest(first)).report.feedID).toBe(first);
  expect((await client.time()).serverTimeMs).toBe(now * 1_000);
  expect((await client.discovery()).feeds).toHaveLength(1 + many.length);
  expect(await secondsOf(client.pages(first, { from: now - 3, limit: 2 }))).toEqual(allSeconds.slice(-3));
  for (const transport of ['websocket', 'sse', 'poll'] as const) {
    const phases: string[] = [];
    const stream = client.stream([first], {
      from: now - 1,
      transport,
      ha: transport === 'websocket',
      onState: ({ phase }) => phases.push(phase),
    });
    expect((await stream.next()).value?.observationsTimestamp).toBe(now - 1);
    expect(phases).toEqual(['connecting', 'live']);
    stream.close();
  }
  const paths = proxy.targets.map((target) => target.replace(/\?.*/, ''));
  expect(paths).toEqual(expect.arrayContaining(['/my/streams/api/v1/ws', '/my/streams/api/v1/reports/stream']));
  expect(paths.filter((path) => !path.startsWith('/my/streams/'))).toEqual([]);
});
