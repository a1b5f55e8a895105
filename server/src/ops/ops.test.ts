import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { exchange, type RawAnswer } from '../../../tests/support/raw-http.ts';
import { openRunningIngest, testStream } from '../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import { createIngestHandler } from '../ingest/sources/listener.ts';
import { createMetrics, renderMetrics } from '../observe/metrics.ts';
import type { Observation } from '../observe/observe.ts';
import { type OpsListener, type OpsOptions, openOpsListener } from './ops.ts';

const opened: OpsListener[] = [];
const observed: Observation[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ close }) => close()));
  observed.splice(0);
});

const open = async (options: Partial<OpsOptions> = {}): Promise<OpsListener> => {
  const listener = await openOpsListener({
    host: '127.0.0.1',
    port: 0,
    checks: {},
    metrics: async () => 'up 1\n',
    observe: (observation) => void observed.push(observation),
    ...options,
  });
  opened.push(listener);
  return listener;
};

test('ops: /livez is 200 even when nothing else works', async () => {
  const { url } = await open({
    checks: { store: () => 'gone' },
    metrics: () => Promise.reject(new Error('gone')),
  });
  const response = await fetch(`${url}/livez`);
  expect([response.status, await response.json()]).toEqual([200, { live: true }]);
  expect(response.headers.get('cache-control')).toBe('no-store');
});

test('ops: /readyz is 200 while every check passes, and 503 with all reasons otherwise', async () => {
  const reasons: Record<string, string | undefined> = { store: undefined, ingest: undefined, draining: undefined };
  const { url } = await open({
    checks: {
      store: async () => reasons.store,
      ingest: () => reasons.ingest,
      draining: () => reasons.draining,
    },
  });
  const ask = async () => {
    const response = await fetch(`${url}/readyz`);
    return [response.status, response.headers.get('content-type'), await response.json()];
  };
  expect(await ask()).toEqual([200, 'application/json', { ready: true, reasons: [] }]);
  Object.assign(reasons, { ingest: '12 s behind', draining: 'SIGTERM' });
  expect(await ask()).toEqual([
    503,
    'application/json',
    { ready: false, reasons: ['ingest: 12 s behind', 'draining: SIGTERM'] },
  ]);
  Object.assign(reasons, { ingest: undefined, draining: undefined });
  expect(await ask()).toEqual([200, 'application/json', { ready: true, reasons: [] }]);
});

test('ops: /readyz stays 200 while a part of the data is damaged, and names it', async () => {
  const { url } = await open({ degraded: () => ['store: tail 00: it does not match its checksum'] });
  const response = await fetch(`${url}/readyz`);
  expect([response.status, await response.json()]).toEqual([
    200,
    { ready: true, reasons: [], degraded: ['store: tail 00: it does not match its checksum'] },
  ]);
});

test('ops: a check that throws or never answers is a reason', async () => {
  const { url } = await open({
    answerMaxMs: 20,
    checks: {
      store: () => {
        throw new Error('The store is closed.');
      },
      writer: () => Promise.reject(new Error('The disk is full.')),
      frozen: () => new Promise(() => {}),
    },
  });
  const response = await fetch(`${url}/readyz`);
  expect([response.status, await response.json()]).toEqual([
    503,
    {
      ready: false,
      reasons: ['store: The store is closed.', 'writer: The disk is full.', 'frozen: no answer within 20 ms'],
    },
  ]);
});

test('ops: /metrics is the text that Prometheus reads', async () => {
  const readings = {
    activeRequests: () => 0,
    silences: () => [],
    isReady: async () => true,
    certificateEndMs: () => 0,
    storeMapBytes: () => 1,
  };
  const metrics = createMetrics({ readings });
  const { url } = await open({ metrics: async () => renderMetrics(await metrics.values()) });
  const response = await fetch(`${url}/metrics?name=any`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(await response.text()).toContain('# TYPE sealpost_http_server_request_duration_seconds histogram\n');
});

test.each([
  ['fails', () => Promise.reject(new Error('a worker is gone'))],
  ['never answers', () => new Promise<string>(() => {})],
])('ops: metrics whose source %s are 500, and the cause is logged, not returned', async (_, metrics) => {
  const { url } = await open({ metrics, answerMaxMs: 20 });
  const response = await fetch(`${url}/metrics`);
  expect([response.status, (await response.json()).code]).toEqual([500, 'internal_error']);
  expect(observed).toMatchObject([{ kind: 'warning', code: 'ops_failed', message: '/metrics could not be answered.' }]);
});

test('ops: an unknown path is 404, another method 405 with Allow', async () => {
  const { url } = await open();
  for (const path of ['/', '/livez/', '/metrics/x', '/__proto__', '/ingest', '/api/v1/feeds']) {
    const response = await fetch(`${url}${path}`);
    expect([path, response.status, (await response.json()).code]).toEqual([path, 404, 'route_not_found']);
  }
  for (const path of ['/livez', '/readyz', '/metrics']) {
    const response = await fetch(`${url}${path}`, { method: 'POST', body: 'x' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await response.json()).code).toBe('method_not_allowed');
  }
  const head = await fetch(`${url}/livez`, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
});

test('ops: /ingest accepts reports with the token, on the same listener as the probes', async () => {
  const { report, signerSets } = await createSignedReports();
  const stream = secondStream(1);
  const nowSeconds = 1_763_200_000;
  const running = await openRunningIngest([testStream(stream)], signerSets, () => nowSeconds * 1_000);
  try {
    const ingest = createIngestHandler({
      ingest: running.ingest,
      token: 'a-token-of-the-test',
      rejected: () => {},
      resume: async () => [],
      stopping: new AbortController().signal,
    });
    const { url } = await open({ ingest });
    const { fullReport } = report(stream, nowSeconds, nowSeconds);
    const body = `${JSON.stringify({ fullReport: `0x${Buffer.from(fullReport).toString('hex')}` })}\nnonsense\n`;
    expect((await fetch(`${url}/ingest`, { method: 'POST', body })).status).toBe(401);
    const headers = { Authorization: 'Bearer a-token-of-the-test' };
    const response = await fetch(`${url}/ingest`, { method: 'POST', headers, body });
    const results = (await response.text()).trim().split('\n');
    expect(results.map((line) => JSON.parse(line).result)).toEqual(['stored', 'refused']);
    const other = await fetch(`${url}/ingest`);
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST']);
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  } finally {
    await running.close();
  }
});

const everyPath = ['/livez', '/readyz', '/metrics', '/ingest', '/ingest/resume', '/more', '/more/events', '/no'];

/** What the listener answers on every path to a request with these lines of the head: each status and code once. */
const askEverywhere = async (
  options: Partial<OpsOptions>,
  ...lines: readonly string[]
): Promise<readonly unknown[]> => {
  const handler = async (_: unknown, response: ServerResponse) => void response.end('{}');
  const { url } = await open({ ingest: handler, further: { path: '/more', handle: handler }, ...options });
  const answers: RawAnswer[] = [];
  for (const path of everyPath) {
    const head = [`POST ${path} HTTP/1.1`, ...lines, 'Connection: close', 'Content-Length: 2', '', '{}'];
    answers.push(...(await exchange(Number(new URL(url).port), head.join('\r\n'))).answers);
  }
  expect(answers.length).toBe(everyPath.length);
  return [...new Set(answers.map(({ status, body }) => (status === 403 ? JSON.parse(body).code : 'let in')))];
};

test.each([
  ['another origin', 'Host: 127.0.0.1:7402', 'Origin: https://example.com'],
  ['a file', 'Host: 127.0.0.1:7402', 'Origin: null'],
  ['a browser, for another site', 'Host: localhost:7402', 'Sec-Fetch-Site: cross-site'],
  ['a browser, for a page of this address', 'Host: localhost:7402', 'Sec-Fetch-Site: same-origin'],
])('ops: a request from a web page, by %s, is rejected on every path', async (_, ...lines) => {
  expect(await askEverywhere({}, ...lines)).toEqual(['forbidden']);
});

test('ops: a public name that a web page points here is rejected on every path, and the setting and the log say so', async () => {
  for (const host of ['rebound.example.com', 'localhost.example.com:7402', '127.0.0.1.example.com', 'localhost.'])
    expect(await askEverywhere({}, `Host: ${host}`), host).toEqual(['unknown_host']);
  const { url } = await open();
  const sent = 'GET /readyz HTTP/1.1\r\nHost: Node1.example.com:7402\r\nConnection: close\r\n\r\n';
  const { answers } = await exchange(Number(new URL(url).port), sent);
  expect(JSON.parse(answers[0]?.body ?? '')).toEqual({
    code: 'unknown_host',
    error:
      'The private listener does not answer for the host node1.example.com. Use an IP address or a local name, or add it to the setting opsHosts.',
  });
});

test('ops: rejected hosts are logged once a minute at most', async () => {
  await askEverywhere({}, 'Host: node1.example.com:7402');
  expect(observed).toEqual([
    {
      kind: 'warning',
      code: 'ops_host_rejected',
      message:
        'The private listener does not answer for the host node1.example.com. Use an IP address or a local name, or add it to the setting opsHosts.',
    },
  ]);
});

test('ops: addresses, local names and the names of the settings are answered, also those that a person types into a browser', async () => {
  const options = { host: 'localhost', hosts: ['Node1.example.com', 'b.example.com'] };
  for (const host of ['127.0.0.1:7402', '[::1]:7402', '10.1.2.3', 'localhost:7402', 'sealpost:7402', 'SEALPOST'])
    expect(await askEverywhere({}, `Host: ${host}`), host).toEqual(['let in']);
  for (const host of ['host.docker.internal:7402', 'sealpost.prod.svc.cluster.local', 'a.localhost:7402'])
    expect(await askEverywhere({}, `Host: ${host}`), host).toEqual(['let in']);
  for (const host of ['node1.example.com', 'NODE1.example.com:80', 'b.example.com:7402'])
    expect(await askEverywhere(options, `Host: ${host}`), host).toEqual(['let in']);
  expect(await askEverywhere({}, 'Host: localhost:7402', 'Sec-Fetch-Site: none')).toEqual(['let in']);
});

test('ops: a request with a body closes the connection', async () => {
  const { url } = await open();
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write('GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nslow');
  const answer = await text(socket);
  expect(answer.slice(0, 17)).toBe('HTTP/1.1 200 OK\r\n');
  expect(answer).toContain('\r\nConnection: close\r\n');
  expect(answer.endsWith('\r\n\r\n{"live":true}\n')).toBe(true);
});

test('ops: closing cuts what is still open at its deadline', async () => {
  const { url, close } = await open({ closeMaxMs: 20, ingest: async (request) => void request.resume() });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const ended = text(socket).catch(() => '');
  socket.write('POST /ingest HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  await close();
  await ended;
  await expect(fetch(`${url}/livez`)).rejects.toThrow();
});

test('ops: opening fails on a port that is in use', async () => {
  const { url } = await open();
  await expect(open({ port: Number(new URL(url).port) })).rejects.toThrow('EADDRINUSE');
});

test('ops: a listener that could not open leaves no timer', async () => {
  const { url } = await open();
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  await expect(open({ port: Number(new URL(url).port) })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect(vi.getTimerCount()).toBe(0);
});

test('ops: metrics are rendered at most ten times a second', async () => {
  let rendered = 0;
  const { url } = await open({ metrics: async () => `renderings ${++rendered}\n` });
  const answers = await Promise.all(Array.from({ length: 20 }, async () => (await fetch(`${url}/metrics`)).text()));
  expect(answers.every((answer) => /^renderings \d+\n$/.test(answer))).toBe(true);
  expect(rendered).toBeLessThan(20);
  await expect.poll(async () => (await fetch(`${url}/metrics`)).text()).not.toBe(answers.at(-1));
});

test.each([
  ['what is no HTTP', 'nonsense\r\n\r\n', 400, 'malformed_target'],
  ['a head over 16 KB', `GET /livez HTTP/1.1\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'head_too_large'],
  ['no Host', 'GET /livez HTTP/1.1\r\n\r\n', 400, 'malformed_target'],
  ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 405, 'method_not_allowed'],
])('ops: %s is answered with a code, and the connection ends', async (_, sent, status, code) => {
  const { url } = await open();
  const { answers, rest } = await exchange(Number(new URL(url).port), sent);
  expect(answers.map((answer) => [answer.status, JSON.parse(answer.body).code])).toEqual([[status, code]]);
  expect(answers[0]?.headers).toMatchObject({ connection: 'close', ...(status === 405 && { allow: 'GET, HEAD' }) });
  expect(rest).toBe('');
});

test('ops: what follows a request that is being answered, and is no HTTP, ends the connection after the answer', async () => {
  const { url } = await open({ metrics: () => sleep(200, 'slow 1\n') });
  const sent = 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n';
  const { answers, rest } = await exchange(Number(new URL(url).port), sent);
  expect([answers.map(({ status, body }) => [status, body]), rest]).toEqual([[[200, 'slow 1\n']], '']);
});

test('ops: a body whose chunks are broken ends the connection with an error, and its reader', async () => {
  const read = vi.fn();
  const { url } = await open({
    ingest: async (request, response) => {
      await text(request).then(
        () => response.end('read'),
        () => read('broken off'),
      );
    },
  });
  const sent = 'POST /ingest HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n';
  const { answers } = await exchange(Number(new URL(url).port), sent);
  expect(answers.map((answer) => [answer.status, JSON.parse(answer.body).code])).toEqual([[400, 'malformed_target']]);
  await expect.poll(() => read.mock.calls).toEqual([['broken off']]);
});

test('ops: a request with an expectation that nobody knows is answered', async () => {
  const { url } = await open();
  const sent = 'GET /livez HTTP/1.1\r\nHost: a\r\nExpect: more\r\nConnection: close\r\n\r\n';
  const { answers } = await exchange(Number(new URL(url).port), sent);
  expect(answers.map(({ status, body }) => [status, JSON.parse(body)])).toEqual([[200, { live: true }]]);
});
