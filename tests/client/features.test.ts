// The client as its users meet the real service: many streams within the limit, names, a secret that is rotated, events, its name.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type ClientEvent,
  type ClientOptions,
  createClient,
  decode,
  type ReportJson,
  SealpostError,
} from '@sealpost/client';
import { latest, openRequester, stream } from '@sealpost/client/calls';
import { columnsOf, createCsv, exportRowOf } from '@sealpost/client/export';
import { parseFeedId } from '@sealpost/protocol';
import { transform } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, type SignedReports, secondStream } from '../support/signed-reports.ts';
import { readText } from '../support/source-tree.ts';

const count = 30;
const feedIds = Array.from({ length: count }, (_, i) => secondStream(i + 1));
const silent = secondStream(90);
const hidden = secondStream(91);
let now = 1_763_200_000;
let signed: SignedReports;
let service: Service;
let account: Credentials;

beforeAll(async () => {
  signed = await createSignedReports('client-features');
  const named = (i: number) => ({ name: `C${i}/USD-Streams-CexPrice`, baseAsset: `C${i}` });
  const streams = [
    ...feedIds.map((feedId, i) => testStream(feedId, named(i))),
    testStream(silent, { ...named(0), name: 'C0/USD-Streams-TopOfBook', attributeType: 'TopOfBook' }),
    testStream(hidden, { ...named(99), hidden: true }),
    ...['LINK', 'SOL'].map((baseAsset, i) =>
      testStream(secondStream(70 + i), { name: `${baseAsset}/USD-Streams-CexPrice`, baseAsset }),
    ),
  ];
  service = await openService(streams, signed.signerSets, () => now * 1_000, { requestsPerSecond: 20 });
  account = await service.addAccount(['public', `feed:${hidden}`]);
  await service.append([...feedIds, hidden, secondStream(70)].map((feedId) => signed.report(feedId, now - 5, now - 1)));
});
afterAll(() => service.close());

const open = (options: Partial<ClientOptions> = {}) => {
  const events: ClientEvent[] = [];
  const client = createClient({
    baseUrl: service.url,
    ...account,
    nowMs: () => now * 1_000,
    onEvent: (event) => events.push(event),
    ...options,
  });
  const statuses = () => events.flatMap((event) => (event.kind === 'attempt' ? [event.status] : []));
  return { client, events, statuses };
};

test('client: latestMany of all streams is one request', async () => {
  const { client, statuses } = open();
  const { reports, missing, details } = await client.latestMany([silent, ...feedIds]);
  expect(reports.map(({ feedID }) => feedID)).toEqual(feedIds);
  expect(missing).toEqual([{ feedID: silent, reason: 'no_reports' }]);
  expect([statuses(), details.rateLimit?.limit]).toEqual([[206], 20]);
});

test('client: latestMany of a server without the extension takes one request for each stream, and none is refused', async () => {
  const { fetch: real } = globalThis;
  const plain: typeof fetch = async (url, init) =>
    String(url).includes('/latest?feedIDs=')
      ? new Response('{"error":"feedID is missing"}', { status: 400 })
      : real(url, init);
  const { client, statuses } = open({ fetch: plain });
  const { reports } = await client.latestMany(feedIds);
  expect(reports.map(({ feedID }) => feedID)).toEqual(feedIds);
  expect(statuses()).toEqual([400, ...feedIds.map(() => 200)]);
});

test('client: names are looked up in the real catalog, hidden streams among them, and an ambiguous one lists its streams', async () => {
  const { client } = open();
  expect((await client.latest('c7/usd')).report.feedID).toBe(feedIds[7]);
  expect((await client.latest('C99/USD')).report.feedID).toBe(hidden);
  const error = await client.latest('C0/USD').catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(SealpostError);
  expect(error).toMatchObject({
    code: 'ambiguous_stream',
    details: { streams: [{ feedId: feedIds[0] }, { feedId: silent }] },
  });
  expect((await client.bulk(['C1/USD', 'C2/USD', 'c1/usd-streams-cexprice'], now - 3)).reports).toHaveLength(2);
});

const nextReports = async (
  stream: AsyncIterator<ReportJson, undefined>,
  wanted: number,
): Promise<readonly (number | undefined)[]> => {
  const times: (number | undefined)[] = [];
  while (times.length < wanted) times.push((await stream.next()).value?.observationsTimestamp);
  return times;
};

test.each(['websocket', 'sse'] as const)(
  'client: a stream by name over %s continues when the secret is rotated and the old one revoked, and loses nothing',
  async (transport) => {
    const name = transport === 'sse' ? 'C3/USD' : 'C4/USD';
    let credentials = await service.addAccount(['public']);
    const { client, events } = open({ ...credentials, secret: async () => credentials.secret });
    const stream = client.stream([name], { transport, reconnect: { minMs: 10, maxMs: 50 } });
    const feedId = parseFeedId((await client.findStream(name)).feedId);
    await expect.poll(() => stream.state.phase).toBe('live');
    const push = async (): Promise<number> => {
      now += 1;
      await service.append([signed.report(feedId, now, now)]);
      return now;
    };
    const before = await push();
    expect(await nextReports(stream, 1)).toEqual([before]);
    credentials = await service.rotateSecret(credentials);
    const meanwhile = [await push(), await push()];
    expect(await nextReports(stream, 2)).toEqual(meanwhile);
    await expect.poll(() => stream.state.phase).toBe('live');
    const after = await push();
    expect(await nextReports(stream, 1)).toEqual([after]);
    stream.close();
    const phases = events.flatMap((event) => (event.kind === 'stream' ? [event.state.phase] : []));
    expect(phases[0]).toBe('connecting');
    expect(phases).toContain('reconnecting');
    expect(phases.at(-1)).toBe('closed');
    const [first] = events.filter((event) => event.kind === 'disconnected');
    expect(first).toMatchObject({ feedIds: [feedId], reports: 1 });
    expect(JSON.stringify(events)).not.toContain(credentials.secret);
  },
);

test('client: a revoked secret without another one ends the stream with its error', async () => {
  const credentials = await service.addAccount(['public']);
  const { client } = open({ ...credentials, secret: () => credentials.secret });
  const stream = client.stream([feedIds[5] as string], { reconnect: { minMs: 10, maxMs: 50 } }); // the sample has more
  await expect.poll(() => stream.state.phase).toBe('live');
  await service.rotateSecret(credentials);
  await expect(stream.next()).rejects.toMatchObject({ code: 'unauthorized' });
});

test('client: HTTP, event streams and WebSockets name the program', async () => {
  const seen = new Map<string, string | undefined>();
  const server = createServer((request, response) => {
    seen.set(`${request.method} ${request.url?.split('?', 1)[0]}`, request.headers['user-agent']);
    response.writeHead(401, { 'Content-Type': 'application/json' });
    response.end('{"error":"no","message":"no","code":"unauthorized","requestId":"r"}');
  });
  server.on('upgrade', (request, socket) => {
    seen.set('UPGRADE', request.headers['user-agent']);
    socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { client } = open({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // it listens on a port
    userAgent: 'mine/2',
  });
  const [feedId = ''] = feedIds;
  await client.latest(feedId).catch(() => {});
  for (const options of [{ transport: 'websocket' }, { transport: 'sse' }, { transport: 'sse', ha: true }] as const)
    await client
      .stream([feedId], options)
      .next()
      .catch(() => {});
  const places = ['GET /api/v1/reports/latest', 'UPGRADE', 'GET /api/v1/reports/stream', 'HEAD /'];
  for (const place of places) expect([place, seen.get(place)]).toEqual([place, 'mine/2 sealpost-client/0.1.0']);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('client: the code of its README runs as printed, one block after the other', async () => {
  const blocks = [...readText('client/README.md').matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code as string); // the group always matches
  expect(blocks.length).toBeGreaterThan(4);
  const [, link] = [feedIds, secondStream(70)];
  const stop = new Error('enough');
  const stored: ReportJson[] = [];
  const printed: unknown[] = [];
  const given = {
    ...account,
    createClient: (options: ClientOptions) => createClient({ nowMs: () => now * 1_000, ...options }),
    openRequester: (options: ClientOptions) => openRequester({ nowMs: () => now * 1_000, ...options }),
    ...{ latest, stream, decode, columnsOf, createCsv, exportRowOf },
    baseUrl: service.url,
    feedId: link,
    lastSeenSecond: now - 10,
    readSecret: () => account.secret,
    store: async (report: ReportJson) => {
      stored.push(report);
      throw stop;
    },
    show: () => {
      throw stop;
    },
    console: { log: (...words: unknown[]) => printed.push(words) },
  };
  const code = blocks
    .join('\n')
    .replace(/^import .*$/gm, '')
    .replaceAll("'https://api.example.org'", 'baseUrl')
    // The loops have no end: what follows one runs when it was left.
    .replace(/^for await .*$/gm, 'try {\n$&\n} catch (error) { left.push(error); }');
  const ends =
    'return { link, newest, missing, left, prices: [await rotating.latest(feedId), await counted.latest(feedId)] };';
  const { code: script } = await transform(
    `export const run = async (given) => { const left = []; const {${Object.keys(given)}} = given;\n${code}\n${ends} };`,
    { loader: 'ts', format: 'cjs' },
  );
  const module = { exports: {} as { run?: (values: typeof given) => Promise<Record<string, unknown>> } }; // filled by the code that runs
  new Function('module', script)(module);
  const result = await module.exports.run?.(given);
  expect(result).toMatchObject({
    link: { feedID: link },
    newest: [{ feedID: link }],
    missing: [{ feedID: secondStream(71) }],
    left: [stop, stop],
  });
  expect(stored[0]?.feedID).toBe(link);
  expect(printed).toContainEqual(['/api/v1/reports/latest', 200, expect.any(Number), expect.any(Number)]);
});
