// Every fault that acts on requests and answers, on a real node, as a client sees it.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, SealpostError } from '@sealpost/client';
import { signRequest } from '@sealpost/protocol';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createCertificate } from '../../../tests/support/certificates.ts';
import { openSocket, RefusedError } from '../../../tests/support/live-clients.ts';
import { at } from '../../../tests/support/running-api.ts';
import {
  btc,
  bulk,
  eth,
  type FaultedNode,
  latest,
  link,
  openFaultedNode,
  page,
  startSecond,
} from './faulted-node.fixture.ts';

let node: FaultedNode;
beforeAll(async () => {
  node = await openFaultedNode({ origins: 'a.example,b.example' });
});
afterAll(() => node?.stop());
afterEach(() => {
  node.faults.clear();
  node.faults.clearRequests();
});

const statusOf = async (target: string, who = node.reader): Promise<number> => (await node.get(target, who)).status;
/** The code of the error under a failed fetch. */
const failureOf = (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => 'answered',
    (error) => error.cause?.code ?? error.cause?.name ?? error.message,
  );
const client = (changes = {}) =>
  createClient({ baseUrl: node.url, ...node.reader, onWarning: () => {}, sleep: async () => {}, ...changes });

test.each([429, 500, 502, 503])(
  'status: %i is answered as often as asked, with Retry-After or without',
  async (status) => {
    node.faults.add({ kind: 'status', status, count: 1, retryAfter: 7 });
    node.faults.add({ kind: 'status', status, count: 1 });
    const [first, second] = [await node.get(latest(eth)), await node.get(latest(eth))];
    expect([first.status, first.headers.get('Retry-After')]).toEqual([status, '7']);
    expect([second.status, second.headers.get('Retry-After')]).toEqual([status, null]);
    expect(first.headers.get('X-Sandbox-Fault')).toBeNull();
    const text = await second.text();
    if (status === 502) expect(text).toContain('<h1>502 Bad Gateway</h1>');
    else expect(JSON.parse(text)).toMatchObject({ requestId: second.headers.get('X-Request-Id') });
    expect(await statusOf(latest(eth))).toBe(200);
    expect(node.faults.list()).toMatchObject([
      { id: 'f1', state: 'exhausted', matched: 1, applied: 1 },
      { id: 'f2', state: 'exhausted', matched: 1, applied: 1 },
    ]);
  },
);

test('status: any status has any body, or a page', async () => {
  node.faults.add('status=418,body=No coffee%2c sorry,content-type=text/plain,count=1');
  node.faults.add({ kind: 'status', status: 200, body: '<h1>Sign in</h1>', count: 1 });
  node.faults.add('status=404,count=1');
  node.faults.add({ kind: 'status', status: 503, body: '{}', contentType: 'application/json', count: 1 });
  const seen = async () => {
    const answer = await node.get(latest(eth));
    return [answer.status, answer.headers.get('Content-Type'), await answer.text()];
  };
  expect(await seen()).toEqual([418, 'text/plain', 'No coffee, sorry']);
  expect(await seen()).toEqual([200, 'text/html', '<h1>Sign in</h1>']);
  expect(await seen()).toEqual([404, 'text/html', expect.stringContaining('<h1>404 Not Found</h1>')]);
  expect(await seen()).toEqual([503, 'application/json', '{}']);
  expect(await statusOf(latest(eth))).toBe(200);
});

test('status: the SDK retries until the fault is exhausted, and the request log has every attempt', async () => {
  node.faults.add('status=503,retry-after=0,count=2,route=reportLatest');
  expect((await client().latest(eth)).report.feedID).toBe(eth);
  expect(
    node.faults
      .requests()
      .map(({ method, route, status, account, faults, query }) => ({ method, route, status, account, faults, query })),
  ).toEqual(
    [503, 503, 200].map((status) => ({
      method: 'GET',
      route: 'reportLatest',
      status,
      account: node.reader.userId,
      faults: status === 503 ? ['f1'] : [],
      query: { feedID: eth },
    })),
  );
});

test('status: the log has the request with its route, at level info', async () => {
  node.faults.add('status=500,count=1');
  const id = (await node.get(latest(eth))).headers.get('X-Request-Id') ?? '';
  await expect.poll(() => node.logged.find((line) => line.includes(id))).toBeDefined();
  expect(JSON.parse(node.logged.find((line) => line.includes(id)) ?? '')).toMatchObject({
    ...{ level: 'info', route: '/api/v1/reports/latest', status: 500, code: 'sandbox_fault' },
  });
});

test('status: a WebSocket handshake is rejected with it', async () => {
  node.faults.add('status=503,route=socket');
  const refused = await openSocket(node.url, `/api/v1/ws?feedIDs=${eth}`, node.reader).catch((error) => error);
  expect(refused).toBeInstanceOf(RefusedError);
  expect(refused.status).toBe(503);
});

test('scope: other routes, accounts and streams are untouched, and a removed fault is gone', async () => {
  node.faults.add({
    kind: 'status',
    status: 503,
    route: 'reportLatest',
    account: node.reader.userId,
    stream: 'ETH/USD',
  });
  expect(await statusOf(latest(eth))).toBe(503);
  expect(await statusOf(latest(btc))).toBe(200);
  expect(await statusOf(latest(eth), node.other)).toBe(200);
  expect(await statusOf(bulk([eth], startSecond - 1))).toBe(200);
  expect((await fetch(`${node.url}/time`)).status).toBe(200);
  expect(node.faults.list()).toMatchObject([{ matched: 1, applied: 1 }]);
  expect(node.faults.remove('f1')).toBe(true);
  expect(await statusOf(latest(eth))).toBe(200);
});

test('scope: a fault acts in its time, which is sandbox time', async () => {
  node.faults.add('status=503,from=10s,for=5s');
  const seen = [];
  for (const ms of [0, 10_000, 5_000]) {
    node.clock.ms += ms;
    seen.push(await statusOf(latest(eth)));
  }
  expect(seen).toEqual([200, 503, 200]);
});

test('mark: the header names the faults that changed an answer, errors too', async () => {
  node.faults.add('clock=2s,mark,id=late');
  node.faults.add('status=500,count=1,mark,id=broken');
  expect((await node.get(latest(eth))).headers.get('X-Sandbox-Fault')).toBe('broken');
  expect((await node.get(latest(eth))).headers.get('X-Sandbox-Fault')).toBe('late');
  const unsigned = await fetch(`${node.url}/api/v1/feeds`);
  expect([unsigned.status, unsigned.headers.get('X-Sandbox-Fault')]).toEqual([400, 'late']);
});

test('latency: answers and errors are late by the delay and its jitter, others are not', async () => {
  node.faults.add('latency=300ms,jitter=100ms,stream=ETH/USD');
  const timed = async (target: string) => {
    const startedMs = performance.now();
    await statusOf(target);
    return performance.now() - startedMs;
  };
  const took = [await timed(latest(eth)), await timed(`${at(eth, startSecond - 500)}`)];
  for (const ms of took) expect(ms).toBeGreaterThan(190);
  const [fault] = node.faults.list();
  await timed(latest(btc));
  expect([fault?.applied, node.faults.list()[0]?.matched]).toEqual([2, 2]);
});

test('latency: a client that leaves frees its request', async () => {
  node.faults.add('latency=60s');
  const leaving = new AbortController();
  const target = latest(eth);
  const headers = signRequest(
    { method: 'GET', target, userId: node.reader.userId, timestampMs: Date.now() },
    node.reader.secret,
  );
  const asked = fetch(`${node.url}${target}`, { headers: headers as Record<string, string>, signal: leaving.signal });
  await expect.poll(() => node.faults.list()[0]?.applied).toBe(1);
  leaving.abort();
  await asked.catch(() => {});
  await expect.poll(() => node.activeRequests()).toBe(0);
});

test('latency: a WebSocket opens late, and one whose client leaves before never opens', async () => {
  node.faults.add('latency=50ms,count=1,route=socket');
  const { webSocket } = await openSocket(node.url, `/api/v1/ws?feedIDs=${eth}`, node.reader);
  webSocket.terminate();
  node.faults.add('latency=60s,route=socket');
  const opening = new WebSocket(`${node.url.replace('http', 'ws')}/api/v1/ws?feedIDs=${eth}`, {
    headers: signRequest(
      { method: 'GET', target: `/api/v1/ws?feedIDs=${eth}`, userId: node.reader.userId, timestampMs: Date.now() },
      node.reader.secret,
    ),
  });
  opening.on('error', () => {});
  await expect.poll(() => node.faults.list()[1]?.applied).toBe(1);
  opening.terminate();
  await expect.poll(() => node.activeRequests()).toBe(0);
});

test('reset: the connection is reset, for this stream alone', async () => {
  node.faults.add('reset,stream=ETH/USD,count=1');
  expect(await statusOf(latest(btc))).toBe(200);
  expect(await failureOf(node.get(latest(eth)))).toBe('ECONNRESET');
  expect(node.faults.requests().map(({ status, faults }) => [status, faults])).toEqual([
    [200, []],
    [null, ['f1']],
  ]);
  expect(await statusOf(latest(eth))).toBe(200);
});

test('reset: a connection over TLS is cut', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-faults-'));
  const { cert, key } = createCertificate('localhost');
  const [tlsCert, tlsKey] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(tlsCert, cert);
  writeFileSync(tlsKey, key, { mode: 0o600 });
  const secure = await openFaultedNode({ tlsCert, tlsKey });
  secure.faults.add('reset,count=1');
  const ask = (): Promise<number | string> =>
    new Promise((resolve) => {
      const asked = get(`${secure.url}/time`, { rejectUnauthorized: false, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    });
  expect([await ask(), await ask()]).toEqual(['ECONNRESET', 200]);
  await secure.stop();
  rmSync(folder, { recursive: true });
});

test.each([
  ['truncate', undefined],
  ['truncate=10', 10],
  ['truncate=0', 0],
  ['truncate=99999999', -1],
])('%s: the body ends before its length', async (line, bytes) => {
  const whole = await (await node.get(latest(eth))).text();
  node.faults.add(`${line},route=reportLatest,count=1`);
  const cut = await node.get(latest(eth));
  expect([cut.status, cut.headers.get('Content-Length')]).toEqual([200, String(whole.length)]);
  let got = '';
  const ended = await (async () => {
    for await (const chunk of cut.body ?? []) got += Buffer.from(chunk).toString();
  })().then(
    () => 'whole',
    () => 'cut',
  );
  expect([ended, got]).toEqual(['cut', whole.slice(0, bytes ?? Math.floor(whole.length / 2))]);
  expect(await (await node.get(latest(eth))).text()).toBe(whole);
});

test('truncate: the SDK sees a failed attempt and gets the whole answer from the next', async () => {
  node.faults.add('truncate,count=1');
  expect((await client().latest(eth)).report.feedID).toBe(eth);
  expect(node.faults.requests()).toHaveLength(2);
});

test('slow: the body comes in small pieces, whole in the end', async () => {
  const whole = await (await node.get(latest(eth))).text();
  node.faults.add('slow=5000,route=reportLatest');
  const slow = await node.get(latest(eth));
  let pieces = 0;
  let got = '';
  for await (const chunk of slow.body ?? []) {
    pieces += 1;
    got += Buffer.from(chunk).toString();
  }
  expect(got).toBe(whole);
  expect(pieces).toBeGreaterThan(1);
  expect(slow.headers.get('ETag')).not.toBeNull();
});

test('slow: what is not sent yet goes out at once when the node drains', async () => {
  const draining = await openFaultedNode();
  draining.faults.add('slow=1,route=reportLatest');
  draining.faults.add('latency=60s,route=reportPage');
  const slow = await draining.get(latest(eth));
  const late = draining.get(page(eth, startSecond - 10));
  await expect.poll(() => draining.faults.list().map(({ applied }) => applied)).toEqual([1, 1]);
  const stopped = draining.stop();
  expect(((await slow.json()) as { report: { feedID: string } }).report.feedID).toBe(eth);
  expect((await late).status).toBe(200);
  await stopped;
});

test('missing: bulk is 206 without the chosen streams, and says which', async () => {
  node.faults.add({ kind: 'missing', stream: ['ETH/USD', 'LINK/USD'] });
  const target = bulk([eth, btc, link], startSecond - 1);
  const partial = await node.get(target);
  const body = (await partial.json()) as { reports: { feedID: string }[] };
  expect([partial.status, body.reports.map(({ feedID }) => feedID), Object.keys(body)]).toEqual([
    206,
    [btc],
    ['reports'],
  ]);
  const told = (await (await node.get(`${target}&missing=true`)).json()) as { missing: unknown };
  expect(told.missing).toEqual([eth, link].map((feedID) => ({ feedID, reason: 'no_reports' })));
  expect(await statusOf(bulk([btc], startSecond - 1))).toBe(200);
  const many = await node.get(`/api/v1/reports/latest?feedIDs=${eth},${btc}`);
  expect([many.status, ((await many.json()) as { reports: unknown[] }).reports.length]).toEqual([206, 1]);
});

test('missing: a single stream has no data on any route', async () => {
  node.faults.add('missing,stream=ETH/USD');
  const tag = (await node.get(latest(btc))).headers.get('ETag') ?? '';
  expect(await (await node.get(latest(eth))).json()).toMatchObject({
    code: 'report_not_found',
    reason: 'no_reports',
    message: 'The stream has no report yet.',
  });
  expect(await statusOf(at(eth, startSecond - 1))).toBe(404);
  expect((await node.get(latest(btc), node.reader, { 'If-None-Match': tag })).status).toBe(304);
  node.faults.add('missing,stream=BTC/USD');
  expect((await node.get(latest(btc), node.reader, { 'If-None-Match': tag })).status).toBe(404);
  const empty = await node.get(page(eth, startSecond - 10));
  expect([empty.status, await empty.json()]).toEqual([200, { reports: [] }]);
  expect(empty.headers.get('Link')).toBe(`<${page(eth, startSecond - 10)}>; rel="last"`);
  expect(await statusOf(latest(link))).toBe(200);
});

test('revoked: signed requests of the account are 401, as with a wrong secret', async () => {
  node.faults.add({ kind: 'revoked', account: node.reader.userId });
  const rejected = await node.get(latest(eth));
  expect([rejected.status, ((await rejected.json()) as { code: string }).code]).toEqual([401, 'unauthorized']);
  expect(await statusOf(latest(eth), node.other)).toBe(200);
  expect((await fetch(`${node.url}/time`)).status).toBe(200);
  const error = await client()
    .latest(eth)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(SealpostError);
  expect((error as SealpostError).code).toBe('unauthorized');
});

test.each([
  ['60s', 60],
  ['-60s', -60],
])('clock=%s: /time, Date and the check of signatures are off, in errors too', async (offset, seconds) => {
  node.faults.add({ kind: 'clock', offset });
  const time = await fetch(`${node.url}/time`);
  const { serverTimeMs } = (await time.json()) as { serverTimeMs: number };
  const date = Date.parse(time.headers.get('Date') ?? '');
  for (const ms of [serverTimeMs, date]) expect(Math.abs(ms - Date.now() - seconds * 1_000)).toBeLessThan(30_000);
  const rejected = await node.get(latest(eth));
  expect([rejected.status, ((await rejected.json()) as { code: string }).code]).toEqual([400, 'clock_skew']);
  expect(Math.abs(Date.parse(rejected.headers.get('Date') ?? '') - Date.now() - seconds * 1_000)).toBeLessThan(30_000);
  expect((await client().latest(eth)).report.feedID).toBe(eth); // it corrects its clock
  node.faults.clear();
  expect(await statusOf(latest(eth))).toBe(200);
});

test('origin-down: requests that name the origin are reset, those of the other one are answered', async () => {
  node.faults.add('origin-down=a.example');
  const ask = (origin: string) =>
    openSocket(node.url, `/api/v1/ws?feedIDs=${eth}`, node.reader, Date.now(), { 'X-Cll-Origin': origin });
  expect(await ask('a.example').catch((error) => error.code)).toBe('ECONNRESET');
  const { webSocket } = await ask('b.example');
  webSocket.terminate();
  expect(await statusOf(latest(eth))).toBe(200);
});

test('faults: what is no route of the API is left alone', async () => {
  node.faults.add('status=503');
  expect((await fetch(`${node.url}/nothing`)).status).toBe(404);
  const socket = connect(Number(new URL(node.url).port), '127.0.0.1');
  socket.end('GET //%ff HTTP/1.1\r\nHost: a\r\n\r\n');
  const [chunk] = await once(socket, 'data');
  expect(String(chunk)).toMatch(/^HTTP\/1\.1 400 /);
  expect(node.faults.list()[0]?.matched).toBe(0);
});

test('faults: without any, requests are logged and nothing else', async () => {
  await node.get(`${latest(eth)}&x=%41`);
  await fetch(`${node.url}/nothing?a=1`);
  expect(node.faults.requests()).toMatchObject([
    { route: 'reportLatest', path: '/api/v1/reports/latest', query: { feedID: eth, x: 'A' }, status: 200, faults: [] },
    { route: null, path: '/nothing', query: { a: '1' }, account: null, status: 404 },
  ]);
});
