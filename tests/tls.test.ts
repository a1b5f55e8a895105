// TLS of the real program: which versions are spoken, and that a new certificate comes in without a connection lost.
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type SecureVersion, type TLSSocket } from 'node:tls';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createCertificate } from './support/certificates.ts';
import { head, openKeepAlive, toLines } from './support/raw-http.ts';
import { createWorld, runCommand, type Server, startServer, type World } from './support/real-program.ts';

const first = createCertificate('first');
let world: World;
let serving: Server;
let files: { readonly cert: string; readonly key: string };

beforeAll(async () => {
  world = await createWorld();
  files = { cert: join(world.folder, 'chain.pem'), key: join(world.folder, 'tls-key.pem') };
  install(first);
  serving = await startServer(world, ['--tls-cert', files.cert, '--tls-key', files.key]);
});
afterAll(async () => {
  await serving.stop();
  world.remove();
});

const install = ({ cert, key }: typeof first): void => {
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key, { mode: 0o600 });
};

/** A connection that has shaken hands; rejects with the reason when there is none. Whose certificate it is is looked at, not trusted. */
const handshake = (options: ConnectionOptions = {}): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: serving.port, rejectUnauthorized: false, ...options });
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', reject);
  });

const only = (version: SecureVersion): ConnectionOptions => ({
  minVersion: version,
  maxVersion: version,
  // Our own side refuses old versions too unless it is told otherwise.
  ciphers: 'DEFAULT@SECLEVEL=0',
});

const signed = (target: string): string => {
  const { userId, secret } = world;
  return head(
    `GET ${target} HTTP/1.1`,
    'Host: a',
    ...toLines(signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret)),
  );
};
const latest = (): string => signed(`/api/v1/reports/latest?feedID=${world.feedId}`);

const shownName = async (): Promise<string> => {
  const socket = await handshake();
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
};

test.each(['TLSv1.2', 'TLSv1.3'] as const)('tls: %s is spoken', async (version) => {
  const socket = await handshake(only(version));
  expect(socket.getProtocol()).toBe(version);
  const connection = openKeepAlive(socket);
  expect((await connection.ask(latest())).status).toBe(200);
  connection.close();
});

test.each(['TLSv1', 'TLSv1.1'] as const)('tls: %s is refused by the server', async (version) => {
  // An alert comes from the other side: had ours refused, the code would be another one.
  await expect(handshake(only(version))).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' });
});

test.each([
  ['RSA key exchange', 'AES256-GCM-SHA384'],
  ['CBC with SHA-1', 'ECDHE-ECDSA-AES256-SHA'],
  ['CBC with SHA-256', 'ECDHE-ECDSA-AES128-SHA256'],
  ['CCM with a short tag', 'ECDHE-ECDSA-AES128-CCM8'],
  ['CCM', 'ECDHE-ECDSA-AES256-CCM'],
])('tls: %s is refused', async (_, ciphers) => {
  const options: ConnectionOptions = { maxVersion: 'TLSv1.2', ciphers: `${ciphers}:@SECLEVEL=0` };
  await expect(handshake(options)).rejects.toMatchObject({ code: expect.stringMatching(/HANDSHAKE_FAILURE/) });
});

test.each(['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'])(
  'tls: %s is spoken, and every answer asks for TLS the next time',
  async (ciphers) => {
    const socket = await handshake({ maxVersion: 'TLSv1.2', ciphers });
    const connection = openKeepAlive(socket);
    const other = openKeepAlive(await handshake());
    const answers = [
      await connection.ask(latest()),
      await connection.ask(head('GET /nowhere HTTP/1.1', 'Host: a')),
      await other.ask('nonsense\r\n\r\n'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 400]);
    expect(answers.map(({ headers }) => headers['strict-transport-security'])).toEqual(
      Array(3).fill('max-age=31536000'),
    );
    connection.close();
  },
);

test('tls: renegotiation is refused', async () => {
  const socket = await handshake({ maxVersion: 'TLSv1.2' });
  socket.on('error', () => {});
  const outcome = await new Promise((resolve) => {
    socket.once('close', () => resolve('closed'));
    socket.renegotiate({ rejectUnauthorized: false }, (error) => resolve(error === null ? 'renegotiated' : 'refused'));
  });
  expect(outcome).not.toBe('renegotiated');
  socket.destroy();
});

test('tls: plain HTTP on the port is no way in, and is not redirected', async () => {
  await expect(fetch(`http://127.0.0.1:${serving.port}/time`)).rejects.toThrow();
  expect(await shownName()).toBe('first');
});

test('tls: SIGHUP brings a new certificate to new connections, open ones go on; a broken one changes nothing and is complained of', async () => {
  const open = openKeepAlive(await handshake());
  expect((await open.ask(latest())).status).toBe(200);

  install(createCertificate('second'));
  serving.child.kill('SIGHUP');
  await expect.poll(shownName).toBe('second');
  await serving.printed(
    /"event":"reloaded","settings":\["tlsCert","tlsKey"\],"certificate":\{"names":"[^"]*second[^"]*","validTo":"20[^"]+Z"\}/,
  );
  expect((await open.ask(latest())).status).toBe(200);

  writeFileSync(files.cert, 'not a certificate\n');
  serving.child.kill('SIGHUP');
  await serving.printed(/tls_reload_failed/);
  expect(await shownName()).toBe('second');
  expect((await open.ask(latest())).status).toBe(200);

  // A certificate whose key is another one's is as unusable, and nothing is half taken over.
  install({ cert: createCertificate('third').cert, key: first.key });
  serving.child.kill('SIGHUP');
  await serving.printed(/tls_reload_failed[\s\S]*tls_reload_failed/);
  expect(await shownName()).toBe('second');

  // Neither is a key that others may read.
  install(createCertificate('fourth'));
  chmodSync(files.key, 0o644);
  serving.child.kill('SIGHUP');
  await serving.printed(/tls_reload_failed[^\n]*accessible to other users/);
  expect(await shownName()).toBe('second');

  chmodSync(files.key, 0o600);
  serving.child.kill('SIGHUP');
  await expect.poll(shownName).toBe('fourth');
  expect((await open.ask(latest())).status).toBe(200);
  open.close();
  await serving.printed(/"reloaded"[\s\S]*"reloaded"/);
  expect(serving.output().match(/"event":"reloaded"/g)).toHaveLength(2);
  expect(serving.output()).not.toContain('PRIVATE KEY');
});

test('tls: a certificate that cannot be used at the start is a refusal with a reason', async () => {
  const args = ['serve', '--store', join(world.folder, 'other'), '--key-file', world.keyFile];
  const ports = ['--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];
  const run = (...tls: readonly string[]) => runCommand([...args, ...ports, ...tls], world.folder);
  const foreign = join(world.folder, 'foreign-key.pem');
  writeFileSync(foreign, createCertificate('other').key, { mode: 0o600 });
  const open = join(world.folder, 'open-key.pem');
  writeFileSync(open, first.key, { mode: 0o644 });
  const [half, mismatched, opened] = await Promise.all([
    run('--tls-cert', files.cert),
    run('--tls-cert', files.cert, '--tls-key', foreign),
    run('--tls-cert', files.cert, '--tls-key', open),
  ]);
  expect([half.code, half.stderr]).toEqual([2, 'error: TLS needs both --tls-cert and --tls-key.\n']);
  expect([mismatched.code, mismatched.stderr]).toEqual([
    2,
    expect.stringMatching(/^error: Cannot use certificate [^\n]+\n$/),
  ]);
  expect(mismatched.stderr).toContain(foreign);
  expect([opened.code, opened.stderr]).toEqual([
    2,
    `error: ${open} contains a private key but is accessible to other users. Run: chmod 600 ${open}. If a group must read it, give it to root: chown root ${open} && chmod 640 ${open}\n`,
  ]);
});

test('tls: a WebSocket opens over it, and a drain ends it', async () => {
  const { userId, secret, feedId } = world;
  const target = `/api/v1/ws?feedIDs=${feedId}`;
  const headers = signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret);
  const socket = new WebSocket(`${serving.url.replace('https', 'wss')}${target}`, {
    headers,
    rejectUnauthorized: false,
  });
  await once(socket, 'open');
  const closed = once(socket, 'close');
  expect((await serving.stop()).code).toBe(0);
  expect((await closed)[0]).toBe(1001);
});
