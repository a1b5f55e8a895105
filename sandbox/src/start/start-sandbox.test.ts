import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { createClient, decode, verify } from '@sealpost/client';
import { reportSchemas } from '@sealpost/protocol';
import { afterEach, expect, test } from 'vitest';
import { collectGarbage } from '../../../tests/support/heap.ts';
import { type Sandbox, SandboxError, type SandboxOptions, startSandbox } from '../index.ts';

/** When they start. */
const at = '2026-03-13T14:30:00Z';
const t0 = Date.parse(at) / 1_000;

const open: Sandbox[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map(({ close }) => close()));
});
const start = async (options: SandboxOptions): Promise<Sandbox> => {
  const sandbox = await startSandbox(options);
  open.push(sandbox);
  return sandbox;
};
const windowOf = ({ validFromTimestamp, observationsTimestamp }: Awaited<ReturnType<Sandbox['push']>>) => [
  validFromTimestamp - t0,
  observationsTimestamp - t0,
];

test('sandbox: a pushed price is served, signed by the oracles of the sandbox', async () => {
  const { push, client } = await start({ streams: ['ETH/USD'] });
  const pushed = await push('ETH/USD', '4200.55', { bid: 4_200, ask: 4_201_000000000000000000n });
  const { report } = await client.latest('ETH/USD');
  expect(report).toEqual(pushed);
  expect(decode(report)).toMatchObject({
    price: 4_200_550000000000000000n,
    bid: 4_200_000000000000000000n,
    ask: 4_201_000000000000000000n,
  });
  expect(verify(report, (await client.signers()).signers).ok).toBe(true);
});

test('sandbox: time stands still; each push takes the next free second, and windows have no gap', async () => {
  const { push, advance, now, client } = await start({ streams: ['ETH/USD', 'BTC/USD'], at });
  expect(windowOf(await push('ETH/USD', 1))).toEqual([0, 0]);
  expect(windowOf(await push('BTC/USD', 1))).toEqual([0, 0]);
  expect(windowOf(await push('ETH/USD', 2))).toEqual([1, 1]);
  expect(now()).toEqual(new Date((t0 + 1) * 1_000));
  await advance('10s');
  expect(windowOf(await push('ETH/USD', 3))).toEqual([2, 11]);
  await advance(1_500);
  expect(windowOf(await push('ETH/USD', 4))).toEqual([12, 12]);
  expect(decode((await client.at('ETH/USD', t0 + 5)).report).price).toBe(3n * 10n ** 18n);
  expect((await client.coverage('ETH/USD', { from: t0, to: t0 + 12 })).coverage.gaps).toEqual([]);
});

test('sandbox: a push may be late, ahead of time, or leave a gap', async () => {
  const { push, now, client } = await start({ streams: ['ETH/USD'], at });
  expect(windowOf(await push('ETH/USD', 1, { at: t0 + 60, validFrom: t0 + 50 }))).toEqual([50, 60]);
  expect(now()).toEqual(new Date((t0 + 60) * 1_000));
  expect(windowOf(await push('ETH/USD', 2, { at: t0 + 20 }))).toEqual([20, 20]);
  await expect(client.at('ETH/USD', t0 + 30)).rejects.toMatchObject({ code: 'report_not_found' });
  await expect(push('ETH/USD', 3, { at: t0 + 55 })).rejects.toThrow(
    /^The report of ETH\/USD-Streams-CexPrice was rejected: .*window/i,
  );
});

test('sandbox: a scenario pushes exact reports of a simulated stream, which has no others from then on', async () => {
  const events = [
    { at: '2s', type: 'push', stream: 'ETH/USD', price: '4200.55', fields: { expiresAt: String(t0 + 60) } },
    { at: '4s', type: 'push', stream: 'ETH/USD', price: '4199', observedAt: t0 + 2 },
  ];
  const sandbox = await start({ scenario: { at, streams: ['ETH/USD'], events } });
  await sandbox.advance('10s');
  const { report } = await sandbox.client.latest('ETH/USD');
  expect(windowOf(report)).toEqual([2, 2]);
  expect(decode(report).fields).toMatchObject({ price: 4_200_55n * 10n ** 16n, expiresAt: t0 + 60 });
  expect(sandbox.problems).toEqual([
    expect.stringMatching(/:04Z: The report of ETH\/USD-Streams-CexPrice was rejected: /),
  ]);
  await expect(start({ scenario: { events: [{ ...events[0], fields: { volume: 1 } }] } })).rejects.toMatchObject({
    argument: 'scenario.events[0].fields.volume',
  });
});

test('sandbox: pushes at once keep the order of the calls', async () => {
  const { push, client } = await start({ streams: ['ETH/USD'], at });
  await Promise.all([1, 2, 3].map((price) => push('ETH/USD', price)));
  const { reports } = await client.page('ETH/USD', t0);
  expect(reports.map((report) => decode(report).price / 10n ** 18n)).toEqual([1n, 2n, 3n]);
});

test('sandbox: live connections have a report when push resolves', async () => {
  const { push, client, subscribed } = await start({ streams: ['ETH/USD', 'BTC/USD'] });
  const stream = client.stream(['ETH/USD']);
  const first = stream.next();
  await subscribed('ETH/USD');
  await push('BTC/USD', 1);
  const pushed = await push('ETH/USD', 2);
  expect((await first).value).toEqual(pushed);
});

test('sandbox: simulated streams have a report at the start and get theirs as time advances; the others get none', async () => {
  const { advance, client } = await start({ streams: ['ETH/USD'], simulated: ['BTC/USD', 'SOFR/USD'], at });
  expect((await client.latest('BTC/USD')).report.observationsTimestamp).toBe(t0);
  expect((await client.latest('SOFR/USD')).report.observationsTimestamp).toBeGreaterThan(t0 - 60);
  await advance('2m');
  expect((await client.page('BTC/USD', t0 + 1, 1_000)).reports).toHaveLength(120);
  expect((await client.page('SOFR/USD', t0 + 1, 1_000)).reports).toHaveLength(2);
  expect((await client.page('ETH/USD', t0, 1_000)).reports).toEqual([]);
});

test('sandbox: the same seed gives the same reports, another one others', async () => {
  const reports = async (seed: string) => {
    const { advance, push, client } = await start({ streams: ['ETH/USD'], simulated: ['BTC/USD'], at, seed });
    await advance('3s');
    await push('ETH/USD', 1);
    return [(await client.page('BTC/USD', t0)).reports, (await client.latest('ETH/USD')).report];
  };
  const [first, same, other] = [await reports('a'), await reports('a'), await reports('b')];
  expect(same).toEqual(first);
  expect(other).not.toEqual(first);
});

test('sandbox: credentials are those of the seed, and random without one', async () => {
  const credentials = async (seed?: string) => {
    const { userId, secret } = await start({ streams: ['ETH/USD'], ...(seed !== undefined && { seed }) });
    return { userId, secret };
  };
  const [first, same, other] = [await credentials('a'), await credentials('a'), await credentials('b')];
  expect(same).toEqual(first);
  expect([other.userId === first.userId, other.secret === first.secret]).toEqual([false, false]);
  expect((await credentials()).userId).not.toBe((await credentials()).userId);
});

test('sandbox: a price is pushed to a stream of any schema, with fields of it', async () => {
  const schemas = Object.keys(reportSchemas)
    .map(Number)
    .filter((schema) => schema > 1);
  const { push, client } = await start({ streams: schemas.map((schema) => ({ name: `V${schema}/USD`, schema })), at });
  for (const schema of schemas) {
    await push(`V${schema}/USD`, '1.5', { fields: { nativeFee: '0.5', expiresAt: t0 + 60 } });
    const decoded = decode((await client.latest(`V${schema}/USD`)).report);
    expect(decoded).toMatchObject({ version: schema, price: 15n * 10n ** 17n });
    expect(decoded.fields).toMatchObject({ nativeFee: 5n * 10n ** 17n, expiresAt: t0 + 60 });
  }
});

test('sandbox: a stream that counts milliseconds is pushed to at any of them', async () => {
  const feedId = `0x1003${'ab'.repeat(30)}`;
  const { push, client, advance } = await start({ streams: [{ name: 'FOO/USD', feedId }], at });
  await push('FOO/USD', 1);
  await advance('250ms');
  await push('FOO/USD', 2, { fields: { expiresAt: t0 * 1_000 + 60_000 } }); // more than 32 bits
  expect(decode((await client.latest('FOO/USD')).report).fields).toMatchObject({
    validFromTimestamp: t0 * 1_000 + 1,
    observationsTimestamp: t0 * 1_000 + 250,
  });
});

test('sandbox: a name means the same to feedId, push, fault and client', async () => {
  const feedId = `0x0003${'cd'.repeat(30)}`;
  const one = await start({ streams: [{ name: 'ETH/USD', feedId }] });
  for (const name of ['ETH/USD', 'eth/usd', 'ETH/USD-Streams-Sandbox', feedId]) expect(one.feedId(name)).toBe(feedId);
  expect(() => one.feedId('ETH/USDC')).toThrow(
    /^No stream is named "ETH\/USDC"\. Similar: ETH\/USD.* This sandbox was started with: ETH\/USD\.$/,
  );
  const two = await start({ streams: ['ETH/USD', 'ETH/USD-Streams-TWAP'] });
  const several =
    /"ETH\/USD" matches 2 streams\. Give a full name or a feed ID:\n {2}ETH\/USD-Streams-\w+ {2}0x.*\n {2}ETH\/USD-Streams-\w+ {2}0x.*$/;
  expect(() => two.feedId('ETH/USD')).toThrow(several);
  expect(() => two.fault('stop,stream=ETH/USD')).toThrow(several);
  await expect(two.push('ETH/USD', 1)).rejects.toThrow(several);
  await expect(two.client.latest('ETH/USD')).rejects.toThrow(several);
  expect(two.feedId('ETH/USD-Streams-TWAP')).toBe((await two.push('eth/usd-streams-twap', 1)).feedID);
});

test.each<[string, (sandbox: Sandbox) => unknown, string, RegExp]>([
  ['a stream', ({ push }) => push('LINK/USD', 1), 'stream', /This sandbox was started with: ETH\/USD, BTC\/USD\.$/],
  [
    'a simulated stream',
    ({ push }) => push('BTC/USD', 1),
    'stream',
    /^BTC\/USD follows a simulated price: use advance\./,
  ],
  ['a price', ({ push }) => push('ETH/USD', 'high'), 'price', /^price is "high", expected a decimal/],
  [
    'an option',
    ({ push }) => push('ETH/USD', 1, { time: 1 } as never),
    'time',
    /^time is not an option\. Options: at, validFrom, bid, ask, fields\./,
  ],
  [
    'a field',
    ({ push }) => push('ETH/USD', 1, { fields: { marketStatus: 1 } }),
    'fields.marketStatus',
    /^fields\.marketStatus is not a field of ETH\/USD-Streams-CexPrice \(schema 3\)\. Fields: nativeFee, linkFee, expiresAt, price, bid, ask\.$/,
  ],
  [
    'a value',
    ({ push }) => push('ETH/USD', 1, { fields: { expiresAt: -1 } }),
    'fields.expiresAt',
    /^fields\.expiresAt is -1, expected a whole number/,
  ],
  [
    'a time beyond 32 bits',
    ({ push }) => push('ETH/USD', 1, { at: t0 + 60, fields: { expiresAt: 2 ** 32 } }),
    'fields.expiresAt',
    /^fields\.expiresAt is 4294967296, expected a whole number of 32 bits\.$/,
  ],
  [
    'the price twice',
    ({ push }) => push('ETH/USD', 1, { bid: 1, fields: { bid: 2 } }),
    'fields.bid',
    /^fields\.bid is given twice, as bid too\.$/,
  ],
  ['half a second', ({ push }) => push('ETH/USD', 1, { at: t0 + 0.5 }), 'at', /expected a whole second/],
  [
    'a time too far ahead',
    ({ push }) => push('ETH/USD', 1, { at: t0 + 32 * 86_400 }),
    'at',
    /at most 31 days ahead of sandbox time\.$/,
  ],
  [
    'a window that ends before it begins',
    ({ push }) => push('ETH/USD', 1, { validFrom: t0 + 1 }),
    'validFrom',
    /^validFrom is 1773412201, expected 2026-03-13T14:30:00\.000Z/,
  ],
  [
    'a duration',
    ({ advance }) => advance('soon'),
    'duration',
    /^duration is "soon", expected a duration up to 31 days such as '10s'/,
  ],
  ['a negative duration', ({ advance }) => advance(-1), 'duration', /^duration is -1/],
  [
    'too many reports',
    ({ advance }) => advance('2d'),
    'duration',
    /^The simulated streams would make 172800 reports until then, expected at most 100000\./,
  ],
  [
    'a push so far ahead that simulated streams make too many reports',
    ({ push }) => push('ETH/USD', 1, { at: t0 + 2 * 86_400 }),
    'duration',
    /^The simulated streams would make 172800 reports until then/,
  ],
  ['a fault', ({ fault }) => fault('explode'), 'fault.kind', /^kind is "explode", expected one of status, /],
  [
    'a route',
    ({ requestsTo }) => requestsTo('latest' as never),
    'route',
    /^route is "latest", expected one of discovery, /,
  ],
  [
    'a count',
    ({ subscribed }) => subscribed('ETH/USD', 0),
    'count',
    /^count is 0, expected a whole number from 1 on\.$/,
  ],
])('sandbox: %s that cannot be is rejected, and the error names the argument', async (_, act, argument, message) => {
  const sandbox = await start({ streams: ['ETH/USD'], simulated: ['BTC/USD'], at });
  const thrown = await Promise.resolve()
    .then(() => act(sandbox))
    .catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(SandboxError);
  const { argument: named, message: text } = thrown as SandboxError;
  expect([named, text]).toEqual([argument, expect.stringMatching(message)]);
  // Nothing of it was done.
  expect(sandbox.now()).toEqual(new Date(at));
});

test('sandbox: there is no rate limit unless one is set', async () => {
  const { client, push } = await start({ streams: ['ETH/USD'] });
  await push('ETH/USD', 1);
  await Promise.all(Array.from({ length: 50 }, () => client.latest('ETH/USD')));
  const limited = await start({ streams: ['ETH/USD'], requestsPerSecond: 1 });
  const calls = await Promise.allSettled(Array.from({ length: 5 }, () => limited.client.feeds()));
  expect(calls.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(2);
});

test('sandbox: in a folder, reports are kept in LMDB, and closing removes the folder', async () => {
  const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith('sealpost-testing-'));
  const before = new Set(folders());
  const sandbox = await start({ streams: ['ETH/USD'], store: 'folder' });
  const [own] = folders().filter((name) => !before.has(name));
  expect(existsSync(`${tmpdir()}/${own}/reports`)).toBe(true);
  await sandbox.push('ETH/USD', 1);
  expect(decode((await sandbox.client.latest('ETH/USD')).report).price).toBe(10n ** 18n);
  await sandbox.close();
  expect(folders()).not.toContain(own);
});

test('sandbox: closing ends live streams of its clients, waits for nothing, and may be repeated', async () => {
  const sandbox = await start({ streams: ['ETH/USD'] });
  const read = (async () => {
    const reports = [];
    for await (const report of sandbox.client.stream(['ETH/USD'])) reports.push(report);
    return reports;
  })();
  await sandbox.subscribed('ETH/USD');
  await sandbox.push('ETH/USD', 1);
  await Promise.all([sandbox.close(), sandbox[Symbol.asyncDispose]()]);
  expect((await read).length).toBeLessThanOrEqual(1);
  await expect(sandbox.push('ETH/USD', 1)).rejects.toThrow('The sandbox is closed. Start another one.');
  expect(() => sandbox.fault('status=503')).toThrow('The sandbox is closed. Start another one.');
  await expect(fetch(sandbox.url)).rejects.toThrow();
});

test('sandbox: await using closes it', async () => {
  let url = '';
  {
    await using sandbox = await startSandbox({ streams: ['ETH/USD'] });
    url = sandbox.url;
    expect((await fetch(`${url}/status.json`)).status).toBe(200);
  }
  await expect(fetch(url)).rejects.toThrow();
});

test('sandbox: a push that is under way when the sandbox closes settles', async () => {
  const sandbox = await start({ streams: ['ETH/USD'], simulated: ['BTC/USD'] });
  const calls = [sandbox.advance('5m'), sandbox.push('ETH/USD', 1), sandbox.push('ETH/USD', 2)];
  await sandbox.close();
  expect(await Promise.allSettled(calls)).toHaveLength(3);
});

test('sandbox: twenty run in parallel and share nothing', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => start({ streams: ['ETH/USD'] })));
  await Promise.all(all.map(({ push }, i) => push('ETH/USD', i + 1)));
  const prices = await Promise.all(
    all.map(async ({ client }) => decode((await client.latest('ETH/USD')).report).price),
  );
  expect(prices).toEqual(all.map((_, i) => BigInt(i + 1) * 10n ** 18n));
  expect(new Set(all.map(({ url, userId, secret }) => `${url} ${userId} ${secret}`)).size).toBe(20);
  await expect(
    all[0]?.createClient({ userId: all[1]?.userId, secret: all[1]?.secret }).latest('ETH/USD'),
  ).rejects.toMatchObject({ status: 401 });
});

test('sandbox: a fault acts until it is cleared, counts, and is seen on the requests', async () => {
  const sandbox = await start({ streams: ['ETH/USD'], at });
  await sandbox.push('ETH/USD', 1);
  const client = sandbox.createClient({ retries: 0 });
  const feedId = sandbox.feedId('ETH/USD');
  const fault = sandbox.fault({ kind: 'status', status: 503, route: 'reportLatest', stream: 'ETH/USD' });
  await expect(client.latest(feedId)).rejects.toMatchObject({ status: 503 });
  expect((await client.at(feedId, t0)).report.observationsTimestamp).toBe(t0);
  fault.clear();
  await client.latest(feedId);
  expect([fault.matched, fault.applied]).toEqual([1, 1]);
  const { userId: account } = sandbox;
  const row = { atMs: t0 * 1_000, method: 'GET', account, query: { feedID: feedId } };
  expect(sandbox.requests).toEqual([
    { ...row, route: 'reportLatest', path: '/api/v1/reports/latest', status: 503, faults: [fault.id] },
    {
      ...row,
      route: 'reportAt',
      path: '/api/v1/reports',
      query: { ...row.query, timestamp: `${t0}` },
      status: 200,
      faults: [],
    },
    { ...row, route: 'reportLatest', path: '/api/v1/reports/latest', status: 200, faults: [] },
  ]);
  expect(sandbox.requestsTo('reportLatest')).toHaveLength(2);
  sandbox.clearRequests();
  expect(sandbox.requests).toEqual([]);
});

test('sandbox: the handle of a fault that was removed keeps its counts and leaves the next fault alone', async () => {
  const sandbox = await start({ streams: ['ETH/USD'] });
  const client = sandbox.createClient({ retries: 0 });
  const first = sandbox.fault('status=503');
  await expect(client.feeds()).rejects.toMatchObject({ status: 503 });
  sandbox.clearFaults();
  const second = sandbox.fault('status=500');
  expect([first.id, second.id]).toEqual(['f1', 'f1']);
  for (let i = 0; i < 2; i += 1) await expect(client.feeds()).rejects.toMatchObject({ status: 500 });
  first.clear();
  await expect(client.feeds()).rejects.toMatchObject({ status: 500 });
  expect([first, second].map(({ matched, applied }) => [matched, applied])).toEqual([
    [1, 1],
    [3, 3],
  ]);
  second.clear();
  await client.feeds();
});

test('sandbox: a fault with a probability acts on the same requests for the same seed', async () => {
  const statuses = async (seed: string) => {
    const sandbox = await start({ streams: ['ETH/USD'], seed });
    await sandbox.push('ETH/USD', 1);
    const client = sandbox.createClient({ retries: 0 });
    sandbox.fault('status=500,probability=0.5');
    for (let i = 0; i < 20; i += 1) await client.latest(sandbox.feedId('ETH/USD')).catch(() => {});
    return sandbox.requests.map(({ status }) => status).join(' ');
  };
  const first = await statuses('a');
  expect(first).toContain('500');
  expect(first).toContain('200');
  expect([await statuses('a'), (await statuses('b')) === first]).toEqual([first, false]);
});

test('sandbox: closing does not wait for what a fault keeps waiting', async () => {
  const sandbox = await start({ streams: ['ETH/USD'] });
  await sandbox.push('ETH/USD', 1);
  sandbox.fault('latency=60s');
  sandbox.fault('silent');
  const call = fetch(`${sandbox.url}/status.json`).catch(() => 'cut');
  await expect.poll(() => sandbox.requests.length).toBe(1);
  await sandbox.close();
  await call;
});

test('sandbox: closed ones are not kept in memory', async () => {
  const heapBytesAfter = async (sandboxes: number): Promise<number> => {
    for (let i = 0; i < sandboxes; i += 1) {
      const sandbox = await startSandbox({ streams: ['ETH/USD'] });
      await sandbox.push('ETH/USD', 1);
      await sandbox.close();
    }
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = await heapBytesAfter(5);
  expect((await heapBytesAfter(20)) - before).toBeLessThan(2_000_000); // one that is kept takes 150 kB
});

test('sandbox: a stream ends at the time limit of its reader, also after garbage is collected', async () => {
  const { client } = await start({ streams: ['ETH/USD'] });
  const read = async (): Promise<string> => {
    try {
      for await (const _ of client.stream(['ETH/USD'], { signal: AbortSignal.timeout(300) }));
      return 'ended';
    } catch (error) {
      return (error as Error).name; // whatever a stream ends with
    }
  };
  const reading = read();
  for (let i = 0; i < 10; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    collectGarbage();
  }
  expect(await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, 20_000, 'never'))])).not.toBe(
    'never',
  );
});

test('sandbox: a push that moves time leaves no gap in simulated streams', async () => {
  const { push, advance, client } = await start({ streams: ['ETH/USD'], simulated: ['BTC/USD'], at });
  for (const price of [1, 2, 3]) await push('ETH/USD', price);
  await advance('2s');
  expect((await client.page('BTC/USD', t0)).reports.map((report) => report.observationsTimestamp - t0)).toEqual([
    0, 1, 2, 3, 4,
  ]);
});

test('sandbox: a scenario’s prices, faults and rotation happen as time advances', async () => {
  const scenario = {
    at,
    past: '5s',
    streams: ['BTC/USD'],
    events: [
      { type: 'level', at: '10s', streams: 'BTC/USD', price: 50_000 },
      { type: 'fault', at: '20s', fault: 'status=503,route=reportLatest' },
      { type: 'clear', at: '30s', what: 'faults' },
      { type: 'rotate', at: '40s' },
    ],
  };
  const sandbox = await start({ scenario, streams: ['ETH/USD'] });
  const client = sandbox.createClient({ retries: 0 });
  const [btc, eth] = [sandbox.feedId('BTC/USD'), sandbox.feedId('ETH/USD')];
  expect((await client.page(btc, t0 - 60)).reports).toHaveLength(5);
  await sandbox.advance('20s');
  await expect(client.latest(btc)).rejects.toMatchObject({ status: 503 });
  await sandbox.advance('10s');
  const before = (await client.latest(btc)).report;
  expect(Number(decode(before).price / 10n ** 18n) / 50_000).toBeCloseTo(1, 1);
  await sandbox.advance('15s');
  await sandbox.push('ETH/USD', 1);
  const { signers } = await client.signers();
  const after = [(await client.latest(btc)).report, (await client.latest(eth)).report];
  expect(after.map((report) => verify(report, signers).ok)).toEqual([true, true]);
  expect(new Set([...after, before].map((report) => decode(report).configDigest)).size).toBe(2);
});

test('sandbox: a scenario that cannot be is rejected with its place in it', async () => {
  const refused = async (options: unknown) => startSandbox(options as SandboxOptions).catch((error: unknown) => error);
  expect(await refused({ scenario: { events: [{ type: 'explode' }] } })).toMatchObject({
    name: 'SandboxError',
    argument: 'scenario.events[0].type',
  });
  expect(
    await refused({ scenario: { streams: ['BTC/USD'], events: [{ type: 'freeze', at: '1s', streams: 'ETH/USD' }] } }),
  ).toMatchObject({
    name: 'SandboxError',
    argument: 'scenario.events[0].streams',
  });
  expect(await refused({ scenario: { events: [] }, simulated: ['BTC/USD'] })).toMatchObject({ argument: 'simulated' });
});

test('sandbox: accounts read what they are entitled to, and hidden streams only where they are named', async () => {
  const streams = ['ETH/USD', 'BTC/USD', { name: 'OWN/USD', hidden: true }];
  const accounts = { alice: ['public'], bob: ['BTC/USD', 'OWN/USD'], carol: [] };
  const sandbox = await start({ streams, accounts, seed: 'mine' });
  for (const stream of ['ETH/USD', 'BTC/USD', 'OWN/USD']) await sandbox.push(stream, 1);
  const readable = async (name: string): Promise<readonly string[]> => {
    const names: string[] = [];
    for (const stream of ['ETH/USD', 'BTC/USD', 'OWN/USD']) {
      const read = sandbox.accounts[name]?.client.latest(sandbox.feedId(stream));
      await read?.then(
        () => names.push(stream),
        (error: unknown) => expect(error).toMatchObject({ code: 'stream_not_accessible' }),
      );
    }
    return names;
  };
  expect(await readable('alice')).toEqual(['ETH/USD', 'BTC/USD']);
  expect(await readable('bob')).toEqual(['BTC/USD', 'OWN/USD']);
  expect(await readable('carol')).toEqual([]);
  expect((await sandbox.client.latest(sandbox.feedId('OWN/USD'))).report.feedID).toBe(sandbox.feedId('OWN/USD'));
  const again = await start({ streams, accounts, seed: 'mine' });
  expect(again.accounts.bob?.secret).toBe(sandbox.accounts.bob?.secret);
  expect(again.accounts.bob?.secret).not.toBe(again.accounts.alice?.secret);
  await expect(start({ streams, accounts: { dave: ['DOGE/USD'] } })).rejects.toMatchObject({
    argument: 'accounts.dave',
    message: expect.stringMatching(/^accounts\.dave: No stream is named "DOGE\/USD".* Or write public\. Streams: /),
  });
});

test('sandbox: a series is pushed at its times, from CSV text, a file or rows', async () => {
  const { pushSeries, push, client, now } = await start({ streams: ['ETH/USD', 'BTC/USD'], at });
  const csv = 'time,stream,price,bid\n0s,ETH/USD,4200.000000000000000001,\n5s,BTC/USD,90000,89999\n3s,ETH/USD,4100,\n';
  const reports = await pushSeries(csv);
  expect(reports.map(windowOf)).toEqual([
    [0, 0],
    [1, 3],
    [5, 5],
  ]);
  expect(decode((await client.at('ETH/USD', t0)).report).price).toBe(4_200_000000000000000001n);
  expect(decode((await client.latest('BTC/USD')).report).bid).toBe(89_999n * 10n ** 18n);
  expect(now()).toEqual(new Date((t0 + 5) * 1_000));
  const rows = [{ time: '1s', stream: 'ETH/USD', price: 5n * 10n ** 18n }];
  expect((await pushSeries(rows)).map(windowOf)).toEqual([[4, 6]]);
  const file = new URL(`data:,${encodeURIComponent('time,stream,price')}`);
  await expect(pushSeries(file)).rejects.toThrow(); // not a file
  const before = await push('ETH/USD', 6);
  await expect(pushSeries('time,stream,price\n1s,ETH/USD,1\n2s,DOGE/USD,1\n')).rejects.toMatchObject({
    argument: 'line 3: stream',
    message: expect.stringMatching(/^line 3: No stream is named "DOGE\/USD"/),
  });
  expect((await client.latest('ETH/USD')).report).toEqual(before); // nothing of it was pushed
  await expect(pushSeries(`time,stream,price\n${t0},ETH/USD,1\n`)).rejects.toThrow(/^line 2: The report of ETH/);
});

const sizes = { oracles: 16, faulty: 5 };

test.each([
  ['the usual size', {}, 4, 2],
  ['a main network', sizes, 16, 6],
  ['one oracle', { oracles: 1 }, 1, 1],
])('signers: reports of %s verify, pushed and simulated', async (_, size, oracles, signatures) => {
  const sandbox = await start({ streams: ['ETH/USD'], simulated: ['BTC/USD'], ...size });
  expect(Object.values(sandbox.signers).map(({ addresses }) => addresses.length)).toEqual([oracles]);
  await sandbox.advance('2s');
  const pushed = await sandbox.push('ETH/USD', '4200.55');
  const { report: simulated } = await sandbox.client.latest('BTC/USD');
  for (const report of [pushed, simulated]) {
    const verdict = verify(report, sandbox.signers);
    expect(verdict.ok && verdict.signers).toHaveLength(signatures);
  }
  expect(sandbox.signers).toEqual((await sandbox.client.signers()).signers);
});

test('signers: those of a rotation are added, as large as before', async () => {
  const scenario = { at, streams: ['ETH/USD'], events: [{ at: '2s', type: 'rotate' }] };
  const sandbox = await start({ scenario, ...sizes });
  const [before] = Object.keys(sandbox.signers);
  await sandbox.advance('5s');
  expect(Object.values(sandbox.signers).map(({ f, addresses }) => [f, addresses.length])).toEqual([
    [5, 16],
    [5, 16],
  ]);
  const verdict = verify((await sandbox.client.latest('ETH/USD')).report, sandbox.signers);
  expect(verdict).toMatchObject({ ok: true, configDigest: expect.not.stringContaining(String(before)) });
});

test.each([
  ['a version', { schema: 99 }, /^0x0063/],
  ['a version of a network in milliseconds', { feedId: `0x1fff${'ab'.repeat(30)}` }, /^0x1fff/],
])(
  'push: reports of %s that nobody knows are read, streamed and verified, and decoded by no client',
  async (_, schema, prefix) => {
    const sandbox = await start({ streams: [{ name: 'NEW/USD', ...schema }], at });
    const feedId = sandbox.feedId('NEW/USD');
    expect(feedId).toMatch(prefix);
    const client = createClient({ baseUrl: sandbox.url, userId: sandbox.userId, secret: sandbox.secret });
    const streamed = client.stream([feedId])[Symbol.asyncIterator]();
    const next = streamed.next();
    await sandbox.subscribed('NEW/USD');
    const pushed = await sandbox.push('NEW/USD', '4200.55', { fields: { nativeFee: '0.5' } });
    expect((await next).value).toEqual(pushed);
    await streamed.return?.();
    expect((await client.latest(feedId)).report).toEqual(pushed);
    expect([pushed.feedID, pushed.observationsTimestamp]).toEqual([feedId, t0]);
    expect(verify(pushed, sandbox.signers)).toMatchObject({ ok: true, decoded: undefined });
    expect(() => decode(pushed)).toThrow(expect.objectContaining({ code: 'unknown_schema' }));
    expect(pushed.fullReport).toContain((420_055n * 10n ** 16n).toString(16)); // the price, for a client that will know it
    await expect(sandbox.push('NEW/USD', 1, { bid: 1 })).rejects.toMatchObject({ argument: 'bid' });
  },
);

test('advance: a fault of a scenario whose ID is taken is a problem; time runs on, and no second lacks its report', async () => {
  const fault = { type: 'fault', fault: 'latency=1ms,id=mine' };
  const scenario = { at, streams: ['BTC/USD'], events: [10, 20].map((second) => ({ ...fault, at: `${second}s` })) };
  const sandbox = await start({ scenario });
  const { advance, now, client } = sandbox;
  await advance('15s');
  expect(sandbox.problems).toEqual([]);
  await advance('15s');
  expect(now()).toEqual(new Date((t0 + 30) * 1_000));
  expect((await client.page('BTC/USD', t0, 100)).reports.map((report) => report.observationsTimestamp - t0)).toEqual(
    Array.from({ length: 31 }, (_, second) => second),
  );
  expect(sandbox.problems).toEqual([
    '2026-03-13T14:30:20Z: id is "mine", expected one that no other fault has. Remove that one first.',
  ]);
});

const closed = { name: 'SandboxError', argument: 'sandbox', message: 'The sandbox is closed. Start another one.' };

test.each(['memory', 'folder'] as const)('advance: closed meanwhile, it is rejected as closed (%s)', async (store) => {
  const sandbox = await start({ simulated: ['BTC/USD'], at, store });
  const advanced = sandbox.advance('1h');
  const settled = expect(advanced).rejects.toMatchObject(closed);
  await expect.poll(() => sandbox.now().getTime(), { interval: 1 }).toBeGreaterThan(t0 * 1_000);
  await sandbox.close();
  await settled;
});

test('advance: closed at any point of a rotation, it is rejected as closed', { timeout: 30_000 }, async () => {
  const events = Array.from({ length: 50 }, (_, i) => ({ at: `${i + 1}s`, type: 'rotate' }));
  for (let turns = 0; turns < 20; turns += 2) {
    const sandbox = await start({ scenario: { at, streams: ['BTC/USD'], events } });
    const settled = expect(sandbox.advance('60s')).rejects.toMatchObject(closed);
    for (let i = 0; i < turns; i += 1) await new Promise((resolve) => setImmediate(resolve));
    await sandbox.close();
    await settled;
  }
});

/** Runs a program in a process of its own; resolves with what it printed, once it has ended by itself. */
const runProgram = async (program: string): Promise<string> => {
  const entry = new URL('../index.ts', import.meta.url).href;
  const tsx = import.meta.resolve('tsx');
  const text = `import(${JSON.stringify(entry)}).then(async ({ startSandbox }) => {${program}});`;
  const args = ['--conditions=source', '--import', tsx, '--eval', text]; // --input-type would fail in the threads of a folder
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
  return `${stdout}${stderr}`;
};

test.for(['memory', 'folder'])(
  'sandbox: one in %s that is not closed does not keep the process alive, and pushes and reads finish',
  async (store) => {
    const printed = await runProgram(`
    const sandbox = await startSandbox({ streams: ['ETH/USD'], store: '${store}' });
    await sandbox.push('ETH/USD', 7);
    const stream = sandbox.client.stream(['ETH/USD']);
    await sandbox.subscribed('ETH/USD');
    setTimeout(() => sandbox.push('ETH/USD', 8), 100);
    for await (const report of stream) {
      console.log(report.feedID === sandbox.feedId('ETH/USD'));
      break;
    }
    await fetch(sandbox.url + '/time');
    console.log('the end');
  `);
    expect(printed).toBe('true\nthe end\n');
  },
);

test('sandbox: twelve in one process warn of nothing', async () => {
  const printed = await runProgram(`
    const start = () => startSandbox({ streams: ['ETH/USD'] });
    const sandboxes = await Promise.all(Array.from({ length: 12 }, start));
    await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
    console.log('closed');
  `);
  expect(printed).toBe('closed\n');
});
