// Servers that are broken or mean harm: each run gives a clear result and ends.

import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createCertificate } from '../../../../../tests/support/certificates.ts';
import { against } from '../../reading-sample.fixture.ts';
import { runCommand } from '../../sample-session.fixture.ts';

const secret = 'a-secret-that-must-not-show';
const env = { SEALPOST_USER_ID: '11111111-2222-4333-8444-555555555555', SEALPOST_SECRET: secret };
const bounds = ['--requests-per-second', '1000', '--timeout', '1', '--live-seconds', '1', '--time-limit', '30'];

const check = async (url: string, ...args: readonly string[]) => {
  const ran = await runCommand(['conformance', url, ...bounds, '--json', ...args], { env });
  expect(`${ran.stdout}${ran.stderr}`).not.toContain(secret);
  const report = JSON.parse(ran.stdout);
  type Row = { readonly id: string; readonly result: string; readonly actual?: string; readonly reason?: string };
  const rows: readonly Row[] = report.checks;
  const row = (id: string) => rows.find((one) => one.id === id);
  return { ...ran, report, row, failed: rows.filter(({ result }) => result === 'failed').map(({ id }) => id) };
};

/** Runs `act` with the address of a server that treats each connection like this. */
const againstBytes = async <T>(serve: (socket: Socket) => void, act: (url: string) => Promise<T>): Promise<T> => {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await act(`http://127.0.0.1:${(server.address() as AddressInfo).port}`); // it listens on a port
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
};

const repeat = (socket: Socket, text: string, everyMs: number): void => {
  const timer = setInterval(() => socket.write(text), everyMs);
  socket.on('close', () => clearInterval(timer));
};

test.each<[string, (socket: Socket) => void, RegExp]>([
  ['never answers', () => {}, /no answer within 1000 ms/],
  ['resets every connection', (socket) => socket.resetAndDestroy(), /reset before an answer/],
  ['answers with garbage', (socket) => socket.end('\u0000\u0001 not HTTP at all\r\n\r\n'), /Parse Error/],
  [
    'sends endless headers',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      repeat(socket, `X-More: ${'x'.repeat(1_000)}\r\n`, 1);
    },
    /Header overflow|no answer within/,
  ],
])(
  'conformance: a server that %s did not answer, and the exit code is 3',
  async (_, serve, reason) => {
    const { code, stderr, row, failed, report } = await againstBytes(serve, (url) => check(url));
    expect([code, report.complete]).toEqual([3, false]);
    expect(stderr).toMatch(/^error: 127\.0\.0\.1:\d+ /);
    expect(failed).toContain('service.answers');
    expect(row('service.answers')?.actual).toMatch(reason);
    expect(row('latest.shape')?.result).toBe('skipped');
  },
  30_000,
);

test.each<[string, string, (socket: Socket) => void, RegExp]>([
  [
    'sends a byte now and then',
    'service.answers',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
      repeat(socket, ' ', 100);
    },
    /only \d+ bytes of the body within 1000 ms/,
  ],
  [
    'sends without end',
    'service.whole-answers',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const fill = (): void => {
        while (socket.writable && socket.write(Buffer.alloc(1 << 20, 'x')));
      };
      socket.on('drain', fill);
      fill();
    },
    /more than 16777216 bytes/,
  ],
  [
    'breaks off its answers',
    'service.whole-answers',
    (socket) => {
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{"feeds"');
    },
    /ended after 8 bytes/,
  ],
])(
  'conformance: a server that %s fails %s',
  async (_, id, serve, actual) => {
    const { code, row } = await againstBytes(serve, (url) => check(url));
    expect(code).toBe(3);
    expect(row(id)?.actual).toMatch(actual);
  },
  30_000,
);

test('conformance: redirects are not followed, and fail their check', async () => {
  const { code, row } = await against(
    (_, response) => void response.writeHead(302, { Location: 'http://127.0.0.1:9/' }).end(),
    (url) => check(url),
  );
  expect(code).toBe(1);
  expect(row('service.redirects')?.actual).toMatch(/^\d+ of \d+ answers: 302 without a body$/);
  expect(row('signing.accepted')?.result).toBe('failed');
}, 30_000);

test('conformance: a web page is not JSON, and what the server repeats has no secret', async () => {
  const page = `<!doctype html><title>${secret}</title>\u001b[31m`;
  const { code, row, stdout } = await against(
    (_, response) => void response.writeHead(200, { 'Content-Type': 'text/html' }).end(page),
    (url) => check(url),
  );
  expect(code).toBe(1);
  expect(row('service.json')?.actual).toMatch(/^text\/html: <!doctype html><title>\(secret\)/);
  expect(row('discovery.anonymous')?.result).toBe('failed');
  expect(stdout).not.toContain('\u001b');
}, 30_000);

test('conformance: a self-signed certificate is an error that says what to do', async () => {
  const server = createTlsServer(createCertificate('localhost'), (_, response) => void response.end('{}'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  try {
    const { code, stderr, row } = await check(`https://127.0.0.1:${port}`);
    expect(code).toBe(3);
    expect(stderr).toMatch(/has an invalid certificate \(DEPTH_ZERO_SELF_SIGNED_CERT\)\. .*NODE_EXTRA_CA_CERTS/);
    expect(row('service.answers')?.result).toBe('failed');
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}, 30_000);
