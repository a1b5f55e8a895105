// The curl lines of `sealpost conformance`, run in bash with the real program: they send the requests that checks send, and contain no secret.
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { toCurl } from '../cli/src/commands/conformance/curl.ts';
import type { RequestToSend } from '../conformance/src/exchange.ts';
import { root } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-curl-'));
const [userId, secret] = ['4c9a8d1e-2f6b-4b7a-9c3d-5e8f7a6b1c2d', 'a-secret-of-this-test'];
const stranger = { userId: '00000000-0000-4000-8000-000000000000', secret: 'not-the-secret' };
const received: IncomingMessage[] = [];
const server = createServer((request, response) => {
  received.push(request);
  response.end();
});
server.on('upgrade', (request, socket) => {
  received.push(request);
  socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
});

beforeAll(async () => {
  const command = join(folder, 'sealpost');
  writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} ${join(root, 'cli/bin/sealpost.js')} "$@"\n`);
  chmodSync(command, 0o755);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the line of a request; returns what the server got. */
const reproduce = async (request: Partial<RequestToSend>): Promise<IncomingMessage> => {
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`); // it listens on a port
  const whole: RequestToSend = { method: 'GET', target: '/', signed: {}, headers: {}, ...request };
  const line = toCurl(whole, { url, wsUrl: url, userId, signFlags: [] });
  expect(line).not.toContain(secret);
  const env = {
    PATH: `${folder}:${process.env.PATH}`,
    HOME: folder,
    SEALPOST_USER_ID: userId,
    SEALPOST_SECRET: secret,
  };
  await promisify(execFile)('bash', ['-c', line], { cwd: folder, env });
  return received.at(-1) as IncomingMessage; // one was made
};

const signatureOf = ({ headers }: IncomingMessage) => headers['x-authorization-signature-sha256'];
const expected = (
  request: IncomingMessage,
  method: string,
  target: string,
  who = { userId, secret },
  body?: string,
) => {
  const timestampMs = Number(request.headers['x-authorization-timestamp']);
  return signRequest(
    { method, target, userId: who.userId, timestampMs, ...(body !== undefined && { body }) },
    who.secret,
  )['X-Authorization-Signature-SHA256'];
};

test('conformance: a curl line sends a signed request, with a clock that is off and another body signed', async () => {
  const target = "/api/v1/reports/bulk?feedIDs=0xa%2C0xb&x='{y}&timestamp=1";
  const request = await reproduce({ target, signed: { skewMs: -8_000, body: 'x' } });
  expect([request.method, request.url]).toEqual(['GET', target]);
  expect(signatureOf(request)).toBe(expected(request, 'GET', target, undefined, 'x'));
  expect(Number(request.headers['x-authorization-timestamp'])).toBeLessThan(Date.now() - 7_900);
});

test('conformance: a curl line sends another target and method than it signs, as another user', async () => {
  const [target, other] = ['/api/v1/reports?a=1&b=2', '/api/v1/reports?b=2&a=1'];
  const request = await reproduce({ target, signed: { target: other, method: 'POST', asOtherUser: true } });
  expect([request.method, request.url, request.headers.authorization]).toEqual(['GET', target, stranger.userId]);
  expect(signatureOf(request)).toBe(expected(request, 'POST', other, stranger));
});

test('conformance: a curl line signs in the name of another user with the secret of the shell', async () => {
  const request = await reproduce({ target: '/x', signed: { inOtherName: true } });
  expect(request.headers.authorization).toBe(stranger.userId);
  expect(signatureOf(request)).toBe(expected(request, 'GET', '/x', { userId: stranger.userId, secret }));
});

test('conformance: a curl line leaves out, replaces and adds headers, and sends names in lower case', async () => {
  const headers = {
    'X-Authorization-Timestamp': undefined,
    Authorization: 'a|b&c',
    'X-More': 'it"s',
    'User-Agent': undefined,
  };
  const { headers: sent, rawHeaders } = await reproduce({ target: '/x', headers, lowerCaseNames: true });
  expect(sent).toMatchObject({ authorization: 'a|b&c', 'x-more': 'it"s' });
  expect([sent['x-authorization-timestamp'], sent['user-agent']]).toEqual([undefined, undefined]);
  expect(rawHeaders).toContain('x-authorization-signature-sha256');
});

test('conformance: a curl line opens a WebSocket, and sends HEAD without a signature', async () => {
  const socket = await reproduce({ target: '/api/v1/ws?feedIDs=0xa', isUpgrade: true });
  expect([socket.headers.upgrade, socket.url]).toEqual(['websocket', '/api/v1/ws?feedIDs=0xa']);
  expect(signatureOf(socket)).toBe(expected(socket, 'GET', '/api/v1/ws?feedIDs=0xa'));
  const head = await reproduce({ method: 'HEAD', target: '/y', signed: false });
  expect([head.method, head.url, signatureOf(head)]).toEqual(['HEAD', '/y', undefined]);
});
