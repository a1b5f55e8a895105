import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { OpsListener } from '@sealpost/server/ops/ops';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  openPrivateListener,
  openRunningIngest,
  type RunningIngest,
  testStream,
} from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { runCommand } from '../../sample-session.fixture.ts';
import { askPlaces, parseIngestUrl, sendLines } from './remote.ts';

const { report, signerSets } = await createSignedReports();
const [stream, now, token] = [secondStream(1), 1_763_200_000, 'a-token-of-the-test'];
const folder = mkdtempSync(join(tmpdir(), 'sealpost-remote-'));
const tokenFile = join(folder, 'token');
let running: RunningIngest;
let listener: OpsListener;

beforeAll(async () => {
  writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
  running = await openRunningIngest([testStream(stream)], signerSets, () => now * 1_000);
  listener = await openPrivateListener(running.ingest, token);
});
afterAll(async () => {
  await listener.close();
  await running.close();
  rmSync(folder, { recursive: true, force: true });
});

const line = (second: number) =>
  JSON.stringify({ fullReport: `0x${Buffer.from(report(stream, second, second).fullReport).toString('hex')}` });
const lines = (count: number) => `${Array.from({ length: count }, (_, i) => line(now - count + i)).join('\n')}\n`;
const send = (url: string, stdin: string, ...more: string[]) =>
  runCommand(['ingest', '-', '--to', url, ...more], { stdin, env: { SEALPOST_INGEST_TOKEN: token } });

/** What the command says to a server that answers like this. */
const against = async (answer: RequestListener, stdin = 'x\n') => {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  const ran = await send(`http://127.0.0.1:${port}`, stdin);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  return { ...ran, stderr: ran.stderr.replaceAll(`127.0.0.1:${port}`, 'HOST') };
};

test('ingest --to: lines are stored by the server, with the same results as locally', async () => {
  const { code, stdout } = await send(`${listener.url}/`, `${lines(300)}nonsense\n`, '--json');
  const results = stdout
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text));
  expect(code).toBe(1);
  expect(results.length).toBe(302);
  expect(results[0]).toMatchObject({ line: 1, result: 'stored', feedID: stream, observationsTimestamp: now - 300 });
  expect(results[300]).toMatchObject({ line: 301, result: 'refused', code: 'malformed_line' });
  expect(results[301].summary).toMatchObject({
    lines: 301,
    stored: 300,
    duplicate: 0,
    refused: 1,
    refusals: { malformed_line: 1 },
    interrupted: false,
  });
  expect(running.store.reports.latest(stream)?.observationsMs).toBe((now - 1) * 1_000);
});

test('ingest --to: the token may come from a file, and a wrong one is explained however much there is to send', async () => {
  const good = await runCommand(['ingest', '-', '--to', listener.url, '--ingest-token-file', tokenFile], {
    stdin: lines(1),
  });
  expect([good.code, good.stderr]).toEqual([0, '']);
  const env = { SEALPOST_INGEST_TOKEN: 'another-token-than-that' };
  const stdin = 'x'.repeat(1_000).concat('\n').repeat(5_000);
  const wrong = await runCommand(['ingest', '-', '--to', listener.url], { stdin, env });
  expect(wrong).toEqual({
    code: 3,
    stdout: '',
    stderr: `error: The server at ${new URL(listener.url).host} rejected the token. Set the server’s token: --ingest-token-file FILE or SEALPOST_INGEST_TOKEN.\n`,
  });
});

test('ingest: all lines are stored and rejected ones are the exit code, also when nobody reads the results', async () => {
  const stdin = `nonsense\n${lines(900)}`;
  const args = ['ingest', '-', '--json', '--to', listener.url, '--ingest-token-file', tokenFile];
  expect(await runCommand(args, { stdin, isUnread: true })).toEqual({ code: 1, stdout: '', stderr: '' });
  const again = await runCommand(args, { stdin });
  expect(JSON.parse(again.stdout.trim().split('\n').at(-1) ?? '').summary).toMatchObject({ stored: 0, duplicate: 900 });
});

test('ingest --to: the flag of a token file precedes the variable of a token', async () => {
  const env = { SEALPOST_INGEST_TOKEN: 'another-token-than-that' };
  const args = ['ingest', '-', '--to', listener.url, '--ingest-token-file', tokenFile];
  expect((await runCommand(args, { stdin: lines(1), env })).code).toBe(0);
});

test('ingest --to: without a token, or with an invalid address, nothing is sent', async () => {
  expect(await runCommand(['ingest', '-', '--to', listener.url])).toMatchObject({
    code: 2,
    stderr: 'error: --to needs the server’s ingest token. Set --ingest-token-file FILE or SEALPOST_INGEST_TOKEN.\n',
  });
  for (const address of ['127.0.0.1:7402', 'http://user:canary@127.0.0.1:1x'])
    expect((await send(address, '')).stderr).toBe(
      'error: --to is not the address of a server’s private listener. Expected an address such as http://127.0.0.1:7402.\n',
    );
  expect((await send('http://user:canary@127.0.0.1:7402', '')).stderr).toBe(
    'error: --to has a user name or password, which the private listener does not use. Leave them out.\n',
  );
});

test('ingest --to: a server that takes everything and says nothing is given up', async () => {
  const silent = createTcpServer((socket) => socket.on('error', () => {}).resume());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as AddressInfo; // it listens on a port
  const source = (async function* () {
    yield Buffer.from('x\n');
  })();
  const results = sendLines(parseIngestUrl(`http://127.0.0.1:${port}`, token), source, undefined, { silenceMs: 200 });
  await expect(results.next()).rejects.toThrow('the server did not respond in time');
  silent.close();
});

test('ingest --to: a quiet source keeps its connection, and the numbers of its lines', async () => {
  let bytes = 0;
  const server = createServer((request, response) => {
    const upstream = httpRequest(`${listener.url}/ingest`, { method: 'POST', headers: request.headers }, (answer) =>
      answer.pipe(response),
    );
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.pipe(upstream);
  });
  server.setTimeout(400); // our own listener: 60 s
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  const first = `\n${line(now - 2)}\n`;
  const second = `${line(now - 1)}\n`;
  const source = (async function* () {
    yield Buffer.from(first);
    await setTimeout(1_200);
    yield Buffer.from(second);
  })();
  const target = parseIngestUrl(`http://127.0.0.1:${port}`, token);
  const numbers: number[] = [];
  for await (const results of sendLines(target, source, undefined, { heartbeatMs: 100 }))
    numbers.push(...results.map(({ line: number }) => number));
  expect(numbers).toEqual([2, 3]);
  expect(bytes).toBeGreaterThan(first.length + second.length + 3);
  await new Promise((resolve) => server.close(resolve));
});

test.each([
  [507, 'The server at HOST is out of disk space: Full. Then run the command again: stored reports are recognized.'],
  [
    503,
    'The server at HOST cannot accept reports now: Full. Wait a moment. Then run the command again: stored reports are recognized.',
  ],
  [
    404,
    'HOST does not accept reports. Use the address of the server’s private listener (opsListen), and start the server with an ingest token.',
  ],
  [500, 'The server at HOST failed: Full. Check its log. Then run the command again: stored reports are recognized.'],
])('ingest --to: an answer of %i is explained', async (status, text) => {
  const ran = await against((_, response) =>
    response.writeHead(status).end('{"error":"Full.","code":"store_disk_full"}'),
  );
  expect(ran).toEqual({ code: 3, stdout: '', stderr: `error: ${text}\n` });
});

/** Answers with a status and a body without an end: silent after its first bytes, or as much as the client reads. */
const endless =
  (status: number, isFlood: boolean): RequestListener =>
  (_, response) => {
    const chunk = 'x'.repeat(isFlood ? 65_536 : 1);
    const write = (): void => {
      while (isFlood && !response.destroyed && response.write(chunk)); // a full buffer ends it; `drain` continues
    };
    response.writeHead(status).write(chunk);
    response.on('drain', write);
    write();
  };

test.each([false, true])(
  'ingest --to: an error answer without an end is explained by its status (flood: %j)',
  async (isFlood) => {
    const text =
      'The server at HOST cannot accept reports now: It returned 503. Wait a moment. Then run the command again: stored reports are recognized.';
    expect(await against(endless(503, isFlood))).toEqual({ code: 3, stdout: '', stderr: `error: ${text}\n` });
  },
);

test('ingest --to: a result without an end is not read to the end of memory', async () => {
  const { code, stderr } = await against(endless(200, true));
  expect([code, stderr]).toEqual([3, expect.stringContaining('http://HOST/ingest did not return ingest results.')]);
});

test.each([
  [401, false, /rejected the token/],
  [401, true, /rejected the token/],
  [200, true, /did not return the positions of a mirror/],
])('resume: an answer of %i without an end is explained (flood: %j)', async (status, isFlood, text) => {
  const server = createServer(endless(status, isFlood));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  const target = parseIngestUrl(`http://127.0.0.1:${port}`, token);
  const request = { source: 'x', feedIds: [stream] };
  await expect(askPlaces(target, request, new AbortController().signal)).rejects.toThrow(text);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('ingest --to: the address of the public API is explained', async () => {
  const ran = await against((_, response) =>
    response.writeHead(400).end('{"error":"This API reads no request body. Send none.","code":"unexpected_body"}'),
  );
  const text =
    'HOST does not accept reports. Use the address of the server’s private listener (opsListen), and start the server with an ingest token.';
  expect(ran).toEqual({ code: 3, stdout: '', stderr: `error: ${text}\n` });
});

const stored = `${JSON.stringify({ line: 1, result: 'stored', feedID: stream, observationsTimestamp: now, code: null, message: null })}\n`;

test('ingest --to: if the server fails midway, the error comes with what was stored before', async () => {
  const ran = await against((_, response) =>
    response.end(`${stored}{"error":"The disk is full.","code":"store_disk_full"}\n`),
  );
  expect(ran.code).toBe(3);
  expect(ran.stdout).toMatch(/^ {2}stored {15}1$/m);
  expect(ran.stderr).toBe(
    'error: The server at HOST failed during ingest: The disk is full. Then run the command again: stored reports are recognized.\n',
  );
});

test('ingest --to: if the connection is lost, the error comes with what was stored before', async () => {
  const ran = await against((request, response) => {
    response.write(stored);
    request.once('data', () => response.destroy());
  });
  expect([ran.code, ran.stdout.includes('stored               1')]).toEqual([3, true]);
  expect(ran.stderr).toBe(
    'error: The connection to HOST was lost: aborted. Then run the command again: stored reports are recognized.\n',
  );
});

test.each([
  ['nothing', ''],
  ['one of two lines', stored],
])('ingest --to: an answer that ends with a result for %s is a failure', async (_, body) => {
  const ran = await against((request, response) => {
    request.resume().once('end', () => response.end(body));
  }, '{}\n\n{}\n \n');
  expect(ran).toMatchObject({
    code: 3,
    stderr:
      'error: The server at HOST did not acknowledge every line. Check that --to is the address of its private listener. Then run the command again: stored reports are recognized.\n',
  });
});

test('ingest --to: another kind of server is recognized', async () => {
  const ran = await against((_, response) => response.end('<html>\n'));
  expect(ran.stderr).toBe(
    'error: http://HOST/ingest did not return ingest results. Use the address of the private listener.\n',
  );
});

test('ingest --to: https to a listener without TLS is one line that says so', async () => {
  const { host } = new URL(listener.url);
  expect(await send(`https://${host}`, 'x\n')).toEqual({
    code: 3,
    stdout: '',
    stderr: `error: The server at ${host} does not use TLS. Use http://, on one machine or inside a tunnel.\n`,
  });
});

test('ingest --to: if no server is listening, the error says so', async () => {
  const { code, stderr } = await send('http://127.0.0.1:1', 'x\n');
  expect([code, stderr]).toEqual([3, 'error: No server at 127.0.0.1:1 (ECONNREFUSED). Start it, or check --to.\n']);
});
