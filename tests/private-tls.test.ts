// The private listener of the real program over TLS, and ingest at its own address.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createCertificate } from './support/certificates.ts';
import { createWorld, runCommand, startServer } from './support/real-program.ts';
import { createSignedReports } from './support/signed-reports.ts';

const token = 'the-token-of-the-test';

/** Runs the image's health check, against another port than the default one. */
const checkHealth = ({ port }: URL) => {
  const [, line = ''] = /^HEALTHCHECK .*\n +CMD (.*)$/m.exec(readFileSync('deploy/Dockerfile', 'utf8')) ?? [];
  const [, ...args] = JSON.parse(line) as string[];
  return promisify(execFile)(
    process.execPath,
    args.map((arg) => arg.replaceAll('7402', port)),
  );
};

/** Status and body of a request over TLS, and whose certificate answered. */
const ask = (url: string, ca: string, headers: Record<string, string> = {}) =>
  new Promise<{ status: number | undefined; body: string; name: string }>((resolve, reject) => {
    const sent = request(
      url,
      { ca, headers, servername: '', checkServerIdentity: () => undefined, agent: false },
      (response) => {
        const socket = response.socket as unknown as { getPeerCertificate: () => { subject: { CN: string } } }; // over TLS it has one
        const name = socket.getPeerCertificate().subject.CN;
        text(response).then((body) => resolve({ status: response.statusCode, body, name }), reject);
      },
    );
    sent.once('error', reject).end();
  });

test('private listener: TLS of its own, renewed on SIGHUP, and ingest at another address', async () => {
  const world = await createWorld();
  const files = { cert: join(world.folder, 'ops.pem'), key: join(world.folder, 'ops-key.pem') };
  const install = ({ cert, key }: ReturnType<typeof createCertificate>): void => {
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key, { mode: 0o600 });
  };
  const [first, second] = [createCertificate('first'), createCertificate('second')];
  install(first);
  const tls = ['--ops-tls-cert', files.cert, '--ops-tls-key', files.key];
  const server = await startServer(world, [...tls, '--ingest-listen', '127.0.0.1:0'], { SEALPOST_INGEST_TOKEN: token });
  try {
    const [, ingestUrl = ''] = await server.printed(/"ingestUrl":"([^"]+)"/);
    expect([server.url, server.opsUrl, ingestUrl].map((url) => new URL(url).protocol)).toEqual([
      'http:',
      'https:',
      'https:',
    ]);
    expect(await ask(`${server.opsUrl}/livez`, first.cert)).toMatchObject({ status: 200, name: 'first' });
    await expect(fetch(`${server.opsUrl.replace('https', 'http')}/livez`)).rejects.toThrow();
    await checkHealth(new URL(server.opsUrl));
    await expect(checkHealth(new URL(server.url))).rejects.toThrow(); // it has no /livez
    // Each answers its own paths, and neither a page of the web.
    expect((await ask(`${server.opsUrl}/ingest`, first.cert)).status).toBe(404);
    expect((await ask(`${ingestUrl}/livez`, first.cert)).status).toBe(404);
    for (const url of [`${server.opsUrl}/livez`, `${ingestUrl}/ingest`]) {
      expect((await ask(url, first.cert, { Origin: 'https://example.com' })).status).toBe(403);
      expect((await ask(url, first.cert, { Host: 'rebound.example.com' })).status).toBe(403);
    }
    const { report } = await createSignedReports();
    const now = Math.floor(Date.now() / 1_000);
    const fullReport = `0x${Buffer.from(report(world.feedId, now, now).fullReport).toString('hex')}`;
    const lines = join(world.folder, 'lines.ndjson');
    writeFileSync(lines, `${JSON.stringify({ fullReport })}\n`);
    const env = { SEALPOST_INGEST_TOKEN: token, NODE_EXTRA_CA_CERTS: files.cert };
    const sent = await runCommand(['ingest', lines, '--to', ingestUrl], world.folder, env);
    expect([sent.code, sent.stdout + sent.stderr]).toEqual([0, expect.stringMatching(/stored +1\n/)]);

    install(second);
    server.child.kill('SIGHUP');
    await server.printed(
      /"event":"reloaded","settings":\["opsTlsCert","opsTlsKey"\],"certificate":\{"names":"[^"]*second/,
    );
    expect((await ask(`${ingestUrl}/ingest`, second.cert)).name).toBe('second');
    const { body, name } = await ask(`${server.opsUrl}/metrics`, second.cert);
    expect(name).toBe('second');
    expect(body).toMatch(/^sealpost_ready 1$/m);
    const [, end] = /^sealpost_tls_certificate_end_seconds (\d+)$/m.exec(body) ?? [];
    expect(Number(end) - now).toBeGreaterThan(80_000);
    install({ cert: first.cert, key: second.key });
    server.child.kill('SIGHUP');
    await server.printed(/tls_reload_failed/);
    expect((await ask(`${server.opsUrl}/livez`, second.cert)).name).toBe('second');
  } finally {
    expect((await server.stop()).code).toBe(0);
    world.remove();
  }
});

test('private listener: half of TLS, an address twice, and ingest without a token are wrong usage', async () => {
  const world = await createWorld();
  try {
    const where = ['serve', '--store', world.store, '--key-file', world.keyFile, '--listen', '127.0.0.1:0'];
    const failing = async (args: readonly string[]) => {
      const { code, stderr } = await runCommand([...where, ...args], world.folder);
      return [code, stderr];
    };
    expect(await failing(['--ops-tls-cert', 'a'])).toEqual([
      2,
      expect.stringContaining('both --ops-tls-cert and --ops-tls-key'),
    ]);
    expect(await failing(['--ingest-listen', '127.0.0.1:7402'])).toEqual([
      2,
      expect.stringContaining('opsListen and ingestListen'),
    ]);
    expect(await failing(['--ops-listen', '127.0.0.1:0', '--ingest-listen', '127.0.0.1:0'])).toEqual([
      2,
      expect.stringContaining('needs an ingest token'),
    ]);
  } finally {
    world.remove();
  }
});
