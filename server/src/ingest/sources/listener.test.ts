import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { heldHeapBytes } from '../../../../tests/support/heap.ts';
import {
  openPrivateListener,
  openRunningIngest,
  type RunningIngest,
  testStream,
} from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import type { OpsListener } from '../../ops/ops.ts';
import { StoreError } from '../../store/store.ts';
import type { Ingest } from '../ingest.ts';
import { resumeMirror } from '../mirror.ts';
import { createIngestHandler, readUntil } from './listener.ts';

const { report, signerSets } = await createSignedReports();
const now = 1_763_200_000;
const stream = secondStream(1);
const token = 'a-token-of-the-test';
const rejected: string[] = [];
let running: RunningIngest;
let listener: OpsListener;

beforeAll(async () => {
  running = await openRunningIngest([testStream(stream)], signerSets, () => now * 1_000);
  const { store } = running;
  const context = { store, nowMs: now * 1_000, retentionDays: 1, actor: 'test' };
  listener = await openPrivateListener(running.ingest, token, {
    resume: (request) => resumeMirror(context, request),
    rejected: (address) => void rejected.push(address),
  });
});
afterAll(async () => {
  await listener.close();
  await running.close();
});

const line = (second: number) =>
  `${JSON.stringify({ fullReport: `0x${Buffer.from(report(stream, second, second).fullReport).toString('hex')}` })}\n`;
const send = (body: string | undefined, init: RequestInit & { path?: string } = {}) =>
  fetch(`${listener.url}${init.path ?? '/ingest'}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { body }),
    ...init,
  });

test('listener: each line is answered in order, once it is durable', async () => {
  const response = await send(`${line(now - 3)}nonsense\n${line(now - 2)}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/x-ndjson');
  const results = (await response.text())
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text));
  expect(results.map(({ line: number, result, code }) => [number, result, code])).toEqual([
    [1, 'stored', null],
    [2, 'refused', 'malformed_line'],
    [3, 'stored', null],
  ]);
  expect(Object.keys(results[0])).toEqual(['line', 'result', 'feedID', 'observationsTimestamp', 'code', 'message']);
  expect(running.store.reports.latest(stream)?.observationsMs).toBe((now - 2) * 1_000);
});

test('listener: without the token nothing is ingested', async () => {
  for (const headers of [
    {},
    { Authorization: 'Bearer wrong' },
    { Authorization: token },
    { Authorization: `bearer ${token}` },
  ] as Record<string, string>[]) {
    const response = await send(line(now - 1), { headers });
    expect([response.status, (await response.json()).code]).toEqual([401, 'unauthorized']);
    expect(rejected.splice(0)).toEqual(['127.0.0.1']);
  }
  expect(running.store.reports.latest(stream)?.observationsMs).toBe((now - 2) * 1_000);
});

test('listener: other paths and methods are rejected', async () => {
  expect((await send('', { path: '/' })).status).toBe(404);
  expect((await send('', { path: '/ingest/' })).status).toBe(404);
  const response = await send(undefined, { method: 'GET' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
});

test('listener: a compressed upload is rejected as such, and nothing of it goes to quarantine', async () => {
  const before = await running.store.quarantine.count();
  for (const [name, value] of [
    ['Content-Encoding', 'gzip'],
    ['Content-Encoding', 'identity, br'],
    ['Transfer-Encoding', 'gzip, chunked'],
  ] as const) {
    const headers = { Authorization: `Bearer ${token}`, [name]: value };
    const request = httpRequest(`${listener.url}/ingest`, { method: 'POST', headers });
    request.on('error', () => {}).end(gzipSync(line(now - 1)));
    const [response] = await once(request, 'response');
    expect([response.statusCode, response.headers['accept-encoding']]).toEqual([415, 'identity']);
    expect(await json(response)).toEqual({
      error: 'The body is compressed. Send NDJSON without Content-Encoding.',
      code: 'unsupported_encoding',
    });
  }
  expect(await running.store.quarantine.count()).toBe(before);
  const plain = { Authorization: `Bearer ${token}`, 'Content-Encoding': 'Identity' };
  expect((await send('', { headers: plain })).status).toBe(200);
});

test('listener: an empty upload is valid', async () => {
  const response = await send('');
  expect([response.status, await response.text()]).toEqual([200, '']);
});

test.each([
  ['store_disk_full', 507],
  ['store_stopped', 503],
] as const)('listener: %s is %i, with a message that says what it means', async (code, status) => {
  const failing: Ingest = {
    submit: () => Promise.reject(new StoreError(code, 'The disk is full.')),
    leave: () => {},
    close: async () => {},
  };
  const other = await openPrivateListener(failing, token);
  try {
    const response = await fetch(`${other.url}/ingest`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: 'x\n',
    });
    expect([response.status, await response.json()]).toEqual([status, { error: 'The disk is full.', code }]);
  } finally {
    await other.close();
  }
});

/** Sends an upload without end until something is answered; resolves with all that was, once the connection is closed. */
const sendWithoutEnd = (url: string, bearer: string): Promise<string> =>
  new Promise((resolve) => {
    let answer = '';
    const client = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    client.setEncoding('latin1').on('data', (text) => {
      answer += text;
    });
    client.on('close', () => resolve(answer));
    const chunk = `1000\r\n${`${'x'.repeat(63)}\n`.repeat(64)}\r\n`;
    const sendMore = (): void => {
      if (client.destroyed || answer !== '') return void client.end();
      for (let i = 0; i < 100; i++) client.write(chunk);
      setImmediate(sendMore);
    };
    client.write(`POST /ingest HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${bearer}\r\n`);
    client.write('Transfer-Encoding: chunked\r\n\r\n', sendMore);
  });

test('listener: a client that is still sending gets to read why it is rejected', async () => {
  const failing: Ingest = {
    submit: () => Promise.reject(new StoreError('store_disk_full', 'The disk is full.')),
    leave: () => {},
    close: async () => {},
  };
  const other = await openPrivateListener(failing, token);
  try {
    for (let i = 0; i < 10; i++) {
      expect(await sendWithoutEnd(listener.url, 'wrong')).toMatch(/^HTTP\/1\.1 401 .*"code":"unauthorized"\}\n$/s);
      expect(await sendWithoutEnd(other.url, token)).toMatch(/^HTTP\/1\.1 507 .*"code":"store_disk_full"\}\n$/s);
    }
  } finally {
    await other.close();
  }
});

test.each([
  ['wrong', /^HTTP\/1\.1 401 /],
  [token, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /],
])('listener: a client that asks first is told to send its reports only with the token: %s', async (bearer, answer) => {
  const client = connect(Number(new URL(listener.url).port), '127.0.0.1').setEncoding('latin1');
  const head = ['POST /ingest HTTP/1.1', 'Host: a', `Authorization: Bearer ${bearer}`, 'Expect: 100-continue'];
  client.write(`${[...head, 'Connection: close', 'Content-Length: 1'].join('\r\n')}\r\n\r\n`);
  let got = '';
  client.once('data', () => client.write('\n'));
  client.on('data', (text) => {
    got += text;
  });
  await once(client, 'close');
  expect(got).toMatch(answer);
});

const createSignal = () => {
  let resolve = (_: void | Promise<void>): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: (value?: Promise<void>) => resolve(value) };
};

test('listener: an upload ends when its client has left, even if its answers were not read', async () => {
  const stored = createSignal();
  const begun = createSignal();
  const waiting: Ingest = {
    submit: async (lines, firstLine) => {
      begun.resolve();
      await stored.promise;
      return running.ingest.submit(lines, firstLine);
    },
    leave: () => {},
    close: async () => {},
  };
  const ended = createSignal();
  const handle = createIngestHandler({
    ingest: waiting,
    token,
    rejected: () => {},
    resume: async () => [],
    stopping: new AbortController().signal,
  });
  const server = createServer((request, response) => {
    response.once('close', () => stored.resolve()); // results come when nobody is left to read them
    ended.resolve(handle(request, response));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  const client = connect(port, '127.0.0.1').on('error', () => {});
  const body = 'nonsense\n'.repeat(3_000);
  client.write(
    `POST /ingest HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  client.write(body);
  await begun.promise;
  client.destroy();
  await ended.promise;
  server.close();
});

const resume = (body: unknown, headers: Record<string, string> = { Authorization: `Bearer ${token}` }) =>
  fetch(`${listener.url}/ingest/resume`, { method: 'POST', headers, body: JSON.stringify(body) });

test('listener: with the token, a mirror learns where each stream resumes', async () => {
  await send(line(now - 2));
  const other = secondStream(7);
  const request = { source: 'streams.example.com', feedIDs: [other, stream], from: now - 10 };
  expect((await resume(request, {})).status).toBe(401);
  const response = await resume(request);
  expect([response.status, await response.json()]).toEqual([
    200,
    {
      streams: [
        { feedID: other, status: null, from: null, start: null, until: null },
        { feedID: stream, status: 'live', from: now - 10, start: now - 10, until: now - 3 },
      ],
    },
  ]);
  const filled = await resume({ ...request, filled: { [stream]: now - 3 } });
  expect((await filled.json()).streams[1]).toMatchObject({ from: now - 10, start: now - 1, until: null });
});

test.each([
  [{ feedIDs: [stream] }, 'source'],
  [{ source: 'x', feedIDs: [] }, 'feedIDs'],
  [{ source: 'x', feedIDs: Array(10_001).fill(stream) }, 'feedIDs'],
  [{ source: 'x', feedIDs: ['0x1'] }, 'feedIDs'],
  [{ source: 'x', feedIDs: [stream], from: -1 }, 'from'],
  [{ source: 'x', feedIDs: [stream], restart: 1 }, 'restart'],
  [{ source: 'x', feedIDs: [stream], filled: { [stream]: 'x' } }, 'filled'],
  [{ source: 'x', feedIDs: [stream], filled: [] }, 'filled'],
  [[], 'The body'],
  ['x'.repeat(2_097_153), 'The body'],
])('listener: a malformed resume is 400 and names the field (%#)', async (body, name) => {
  const response = await resume(body);
  const { error, code } = await response.json();
  expect([response.status, code]).toEqual([400, 'malformed_argument']);
  expect(error).toContain(name);
});

test('listener: a resume that is nested too deeply to be printed is 400', async () => {
  const response = await fetch(`${listener.url}/ingest/resume`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: `{"source":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
  });
  expect([response.status, (await response.json()).code]).toEqual([400, 'malformed_argument']);
});

test('listener: a node that stops answers for what an open upload sent, and ends it', async () => {
  const stopping = new AbortController();
  const other = await openPrivateListener(running.ingest, token, { stopping: stopping.signal });
  const body = new ReadableStream({ start: (sink) => sink.enqueue(Buffer.from(line(now - 60))) }); // never ends
  const init = { method: 'POST', headers: { Authorization: `Bearer ${token}` }, body, duplex: 'half' };
  const response = await fetch(`${other.url}/ingest`, init as RequestInit); // `duplex` is not in the types of Node 20
  stopping.abort();
  const lines = (await response.text()).trim().split('\n');
  expect(lines.map((text) => JSON.parse(text))).toMatchObject([{ result: 'stored' }, { code: 'store_stopped' }]);
  await other.close();
});

test('listener: a node that stops in the middle of a line leaves that line to be sent again', async () => {
  const stopping = new AbortController();
  const begin = (text: string) => new ReadableStream({ start: (sink) => sink.enqueue(Buffer.from(text)) }); // never ends
  const upload = async (url: string, text: string) =>
    fetch(`${url}/ingest`, {
      ...{ method: 'POST', headers: { Authorization: `Bearer ${token}` }, body: begin(text), duplex: 'half' },
    } as RequestInit); // `duplex` is not in the types of Node 20
  const other = await openPrivateListener(running.ingest, token, { stopping: stopping.signal });
  const response = await upload(other.url, `${line(now - 59)}${line(now - 58).slice(0, 40)}`);
  stopping.abort();
  const lines = (await response.text()).trim().split('\n');
  expect(lines.map((text) => JSON.parse(text))).toMatchObject([{ result: 'stored' }, { code: 'store_stopped' }]);
  const refused = await upload(other.url, line(now - 58).slice(0, 40));
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'store_stopped' }]);
  await other.close();
});

test('listener: an upload that stays open for days keeps no memory of earlier chunks', async () => {
  async function* bring(count: number): AsyncGenerator<Uint8Array> {
    const chunk = new Uint8Array(1);
    for (let i = 0; i < count; i += 1) yield chunk;
  }
  const heldAfter = async (count: number): Promise<number> => {
    let [seen, heldBytes] = [0, 0];
    for await (const _ of readUntil(bring(count), new AbortController().signal)) {
      seen += 1;
      if (seen < count) continue;
      heldBytes = heldHeapBytes();
    }
    return heldBytes;
  };
  await heldAfter(1_000);
  const before = await heldAfter(1_000);
  expect((await heldAfter(100_000)) - before).toBeLessThan(4_000_000); // 40 bytes a chunk; a handler is more than 100
});
