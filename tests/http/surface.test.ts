// What can be reached: every method on every path of the route table, what proxies and browsers add, and paths of the private listener. Only GET, HEAD
// and OPTIONS do anything, nothing tells what software this is, and the program connects to nobody.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { METHODS } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { routes, signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { badCases, goodCases, lostCases, otherCases } from '../raw-requests.ts';
import { countOf, tally } from '../support/full-count.ts';
import { exchange, head, openKeepAlive, type RawAnswer, toLines } from '../support/raw-http.ts';
import { createWorld, processesOf, type Server, startServer, type World } from '../support/real-program.ts';

let world: World;
let server: Server;

beforeAll(async () => {
  world = await createWorld();
  const unlimited = ['--failures-per-second', '0', '--public-requests-per-second', '0'];
  server = await startServer(world, [...unlimited, '--log-level', 'silent']);
});
afterAll(async () => {
  await server.stop();
  world.remove();
});

const sign = (target: string, method = 'GET'): readonly string[] => {
  const { userId, secret } = world;
  return toLines(signRequest({ method, target, userId, timestampMs: Date.now() }, secret));
};

const openAsking = () => {
  let connection = openKeepAlive(connect(server.port, '127.0.0.1'));
  return {
    ask: async (method: string, target: string, ...lines: readonly string[]): Promise<RawAnswer> => {
      const signed = sign(target, method);
      const answer = await connection.ask(head(`${method} ${target} HTTP/1.1`, 'Host: a', ...signed, ...lines));
      if (answer.headers.connection !== 'close') return answer;
      connection.close();
      connection = openKeepAlive(connect(server.port, '127.0.0.1'));
      return answer;
    },
    close: () => connection.close(),
  };
};

const paths = [...new Set(Object.values(routes).map(({ path }) => path))];
// CONNECT is answered before there is a path (tests/raw-sockets.test.ts). Answers to HEAD have a length and no body, which a raw reader waits for.
const others = METHODS.filter((method) => !['GET', 'HEAD', 'OPTIONS', 'CONNECT'].includes(method));

test(`surface: ${others.length} other methods on every path are 405 with Allow, also with a method in a header`, async () => {
  const { ask, close } = openAsking();
  const deviations: string[] = [];
  let asked = 0;
  for (const path of paths)
    for (const method of others)
      for (const lines of [[], ['X-HTTP-Method-Override: GET', 'X-Method-Override: GET', 'X-HTTP-Method: GET']]) {
        const { status, headers } = await ask(method, path, ...lines);
        asked += 1;
        const isTold = headers.allow === undefined || /^(GET, )?HEAD, OPTIONS$/.test(headers.allow);
        if (status !== 405 || headers.allow === undefined || !isTold)
          deviations.push(`${method} ${path}: ${status}, Allow: ${headers.allow}`);
        if ('server' in headers || 'x-powered-by' in headers) deviations.push(`${method} ${path}: names its software`);
      }
  close();
  tally({ 'requests with other methods': asked, deviations: deviations.length });
  expect(deviations).toEqual([]);
});

test('surface: paths of the private listener, and what is often left open, are 404 on the public one', async () => {
  const { ask, close } = openAsking();
  const closed = ['/metrics', '/readyz', '/livez', '/ingest', '/admin', '/debug', '/.env', '/.git/config', '/sandbox'];
  const found = await Promise.resolve(closed).then(async (all) => {
    const statuses: string[] = [];
    for (const path of all) for (const method of ['GET', 'POST']) statuses.push(`${(await ask(method, path)).status}`);
    return statuses;
  });
  close();
  tally({ deviations: found.filter((status) => status !== '404').length });
  expect(found).toEqual(found.map(() => '404'));
});

test('surface: OPTIONS is the same with an origin and without, and headers that proxies add change no answer', async () => {
  const { ask, close } = openAsking();
  const blank = ({ status, headers, body }: RawAnswer) =>
    JSON.stringify([status, { ...headers, date: '', 'x-request-id': '' }, body.replace(/"serverTimeMs":\d+/, '')]);
  const added = [
    'X-Forwarded-For: 10.0.0.1',
    'X-Forwarded-Host: elsewhere.test',
    'X-Forwarded-Proto: http',
    'X-Forwarded-Prefix: /admin',
    'X-Original-URL: /metrics',
    'Forwarded: for=10.0.0.1;host=elsewhere.test',
    'Via: 1.1 elsewhere.test',
  ];
  for (const path of paths) {
    const [plain, withOrigin] = [await ask('OPTIONS', path), await ask('OPTIONS', path, 'Origin: https://evil.test')];
    expect(blank(withOrigin), path).toBe(blank(plain));
    expect(plain.status).toBe(204);
  }
  const latest = `/api/v1/reports/latest?feedID=${world.feedId}`;
  for (const target of [latest, '/time', '/api/v1/feeds', '/nowhere']) {
    const [plain, forwarded] = [await ask('GET', target), await ask('GET', target, ...added)];
    expect(forwarded.status, target).toBe(plain.status);
    expect(Object.keys(forwarded.headers), target).toEqual(Object.keys(plain.headers));
    if (plain.status === 200) expect(blank(forwarded), target).toBe(blank(plain));
  }
  close();
});

const canTrace = (): boolean => {
  try {
    execFileSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false; // absent, or not permitted here
  }
};

const requests = countOf(200, 100_000);

test.skipIf(!canTrace())(
  `surface: during ${requests} requests of every kind the program connects to nobody`,
  async () => {
    const log = join(world.folder, 'connects.txt');
    const pid = server.child.pid ?? 0;
    const traced = processesOf(server.child).flatMap((one) => ['-p', String(one)]);
    const strace = spawn('strace', ['-f', '-e', 'trace=connect,exit_group', '-o', log, ...traced], { stdio: 'ignore' });
    const ended = new Promise((resolve) => strace.once('exit', resolve));
    await expect.poll(() => /TracerPid:\t[1-9]/.test(readFileSync(`/proc/${pid}/status`, 'utf8'))).toBe(true);
    const target = `/api/v1/reports/latest?feedID=${world.feedId}`;
    const cases = [...goodCases, ...badCases, ...lostCases, ...otherCases];
    const urls = ['url=http://127.0.0.1:9/', 'callback=http://169.254.169.254/', 'feedID=http://127.0.0.1:9/'];
    const runOne = async (i: number): Promise<void> => {
      const { bytes } = cases[i % cases.length] as (typeof cases)[number]; // below the length
      const far = `/api/v1/discovery?${urls[i % urls.length]}`;
      const sent = i % 10 === 0 ? head(`GET ${far} HTTP/1.1`, 'Host: a', 'Connection: close') : bytes({ target, sign });
      await exchange(server.port, sent, { halfClose: true });
    };
    for (let i = 0; i < requests; i += 10) await Promise.all(Array.from({ length: 10 }, (_, n) => runOne(i + n)));
    strace.kill('SIGINT');
    await ended;
    const outbound = readFileSync(log, 'utf8').match(/connect\(.*/g) ?? [];
    tally({ 'requests while traced': requests, 'connections to others': outbound.length });
    expect(outbound).toEqual([]);
  },
  3_600_000,
);
