// Every response belongs to its request: over plain HTTP, TLS, workers and proxies, with pipelining, slow readers, aborted requests, errors and shed load.
import { execFileSync } from 'node:child_process';
import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { Server as HttpServer, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openHttpServer } from '../../server/src/http/server.ts';
import { openStore } from '../../server/src/store/open.ts';
import { createCertificate } from '../support/certificates.ts';
import { findDebianProgram } from '../support/debian-programs.ts';
import { countOf, inFull, isFull, tally, tallyControl } from '../support/full-count.ts';
import { deployedProxies, startDeployedProxy } from '../support/proxies/deployed-proxy.ts';
import { createWorld, startServer, type World } from '../support/real-program.ts';
import { act, testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { checkResponses, createChoice, createQuestions, type KnownReports, rightOf } from './response-checker.ts';

let world: World;
let known: KnownReports;

beforeAll(async () => {
  world = await createWorld();
  const from = Math.floor(Date.now() / 1_000) - 3_600;
  const { report } = await createSignedReports();
  const feeds = [2, 3, 4, 5].map(secondStream);
  known = new Map(
    feeds.map((feedId, n) => {
      const windows = Array.from({ length: n === 0 ? 90 : 180 }, (_, i) => from + 2 * i + n);
      const last = (windows.at(-1) ?? 0) + 3; // a second after the one before, so that there is a gap
      return [feedId, [...windows, last].map((at) => report(feedId, at, at + 1, BigInt(at) * 10n ** BigInt(n)))];
    }),
  );
  const store = await openStore(world.store, 'write');
  await store.admin.update('stream', feeds, () => feeds.map((feedId) => testStream(feedId)), act);
  await store.reports.append([...known.values()].flat());
  await store.close();
});
afterAll(() => world.remove());

const connections = countOf(50, 5_000);

const check = async (url: string): Promise<void> => {
  const choose = createChoice(1);
  const nextQuestion = createQuestions(known, world, choose).any;
  const findings = await checkResponses({ url, nextQuestion, choose, clients: 20, connections, pipelined: 6 });
  const right = rightOf(findings);
  const { wrong, cut, shed, unanswered } = findings;
  tally({ responses: right, 'of other requests': wrong.length, cut, shed, 'left by their clients': unanswered });
  expect(wrong).toEqual([]);
  expect(cut).toBe(0);
  expect(findings.right.size).toBe(13); // every kind of question
  expect(right).toBeGreaterThan((connections * 6) / 2);
};

const tlsArgs = (): readonly string[] => {
  const { cert, key } = createCertificate('responses');
  const [certPath, keyPath] = ['chain.pem', 'tls-key.pem'].map((name) => join(world.folder, name)) as [string, string]; // two names
  writeFileSync(certPath, cert);
  writeFileSync(keyPath, key, { mode: 0o600 });
  return ['--tls-cert', certPath, '--tls-key', keyPath];
};

/** A pipelined request waits for those before it, for seconds on a busy machine. */
const patient = ['--skew-max-ms', '60000'];

test.each([
  ['plain HTTP, overloaded', () => ['--event-loop-lag-max-ms', '20']],
  ['TLS, two workers', () => [...tlsArgs(), '--workers', '2']],
] as const)('responses: every response belongs to its request, %s', async (_, argsOf) => {
  const server = await startServer(world, [...patient, ...argsOf()]);
  try {
    await check(server.url);
  } finally {
    await server.stop();
  }
});

test.each(deployedProxies.filter(({ program }) => program === 'nginx' || (isFull && program === 'haproxy')))(
  'responses: every response belongs to its request, behind $program',
  async (proxy) => {
    const found = findDebianProgram(proxy.program);
    if ('missing' in found) throw new Error(found.missing);
    const server = await startServer(world, [...patient, '--trusted-proxies', '127.0.0.1']);
    const { url, child } = await startDeployedProxy(proxy, found.path, world.folder, server);
    try {
      await check(url);
    } finally {
      child.kill('SIGTERM');
      await server.stop();
    }
  },
);

inFull('responses: Node loses pipelined requests over TLS, unless it parses what the stream emits', () => {
  const program = fileURLToPath(new URL('node-tls-pipelining.mjs', import.meta.url));
  const run = (...args: readonly string[]) =>
    JSON.parse(execFileSync(process.execPath, [program, ...args], { encoding: 'utf8' }));
  const { errors } = run();
  tallyControl({ 'requests lost': errors.HPE_PAUSED ?? 0 });
  // Once this fails, Node is fixed, and `parseFromStream` can go.
  expect(errors).toHaveProperty('HPE_PAUSED');
  expect(run('stream')).toMatchObject({ asked: 1_200, answered: 1_200, errors: {} });
});

test('responses: a request that is parsed after one that was lost is not answered, and the connection ends in its turn', async () => {
  const started = channel('http.server.request.start');
  const servers = new Set<HttpServer>();
  const note = (message: unknown): void => void servers.add((message as { server: HttpServer }).server); // as documented
  started.subscribe(note);
  const waiting: ServerResponse[] = [];
  const answerLater = (_: unknown, response: ServerResponse): void => void waiting.push(response);
  const listener = await openHttpServer({ host: '127.0.0.1', port: 0 }, answerLater, () => 'id');
  const client = connect(Number(new URL(listener.url).port), '127.0.0.1');
  const received: Buffer[] = [];
  client.on('data', (chunk: Buffer) => received.push(chunk));
  const ended = once(client, 'close');
  const ask = (path: string): void => void client.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  ask('/first');
  ask('/second');
  await expect.poll(() => waiting.length).toBe(1);
  await setImmediate();
  const lost = Object.assign(new Error('Pause in the parser'), { code: 'HPE_PAUSED' });
  for (const server of servers) server.emit('clientError', lost, waiting[0]?.socket as Socket); // it has its turn
  ask('/third');
  await setImmediate();
  waiting[0]?.end('answer to the first');
  await expect.poll(() => waiting.length).toBe(2);
  waiting[1]?.end('answer to the second');
  await ended;
  started.unsubscribe(note);
  await listener.close(0);
  const text = Buffer.concat(received).toString();
  expect(text.match(/answer to the (first|second|third)/g)).toEqual(['answer to the first', 'answer to the second']);
  expect(waiting.length).toBe(2);
});
