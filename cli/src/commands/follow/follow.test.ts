// The command `follow` against servers other than Sealpost, and targets that reject it.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toSignerSetsJson } from '@sealpost/protocol';
import { openStore } from '@sealpost/server/store/open';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSpecProxy, type SpecProxy } from '../../../../tests/support/proxies/spec-proxy.ts';
import { openService, type Service } from '../../../../tests/support/running-api.ts';
import { openPrivateListener, testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../../../tests/support/signed-reports.ts';
import { runCommand } from '../../sample-session.fixture.ts';

const { report, signerSets } = await createSignedReports();
const folder = mkdtempSync(join(tmpdir(), 'sealpost-follow-'));
const [seconds, fine] = [secondStream(1), millisecondStream(2)];
const streams = [testStream(seconds), testStream(fine)];
const start = Math.floor(Date.now() / 1_000) - 2_000;
const [catalog, signers] = [join(folder, 'catalog.json'), join(folder, 'signers.json')];
let source: Service;
let bare: SpecProxy;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  source = await openService(streams, signerSets, Date.now);
  bare = await openSpecProxy(() => source.url, { pageMax: 7, limitMax: 50, push: false });
  const { userId, secret } = await source.addAccount(['public']);
  env = { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret };
  writeFileSync(catalog, JSON.stringify({ feeds: streams }));
  writeFileSync(signers, JSON.stringify(toSignerSetsJson(signerSets)));
});
afterAll(async () => {
  await bare.close();
  await source.close();
  rmSync(folder, { recursive: true, force: true });
});

test('follow: a server that has only the specification is mirrored by polling, in small pages', async () => {
  const at = (i: number) => start + i * 10;
  await source.append(Array.from({ length: 15 }, (_, i) => report(seconds, at(i), at(i))));
  const ms = Array.from({ length: 13 }, (_, i) => (start + Math.floor(i / 5)) * 1_000 + (i % 5) * 50);
  await source.append(ms.map((observed) => report(fine, observed, observed)));
  const store = join(folder, 'copy');
  const stop = new AbortController();
  const args = ['follow', bare.url, seconds, fine, '--catalog', catalog, '--signers', signers, '--from', String(start)];
  const command = runCommand([...args, '--store', store], { env, interruption: stop.signal });
  const count = async () => {
    const copy = await openStore(store, 'read').catch(() => undefined);
    const pages = copy && (await Promise.all([seconds, fine].map((feedId) => copy.reports.page(feedId, 0, 100))));
    await copy?.close();
    return pages?.map(({ reports }) => reports.length);
  };
  await expect.poll(count, { interval: 500 }).toEqual([15, 13]);
  const isRefused = () => bare.answered.some(([path, status]) => path.startsWith('/api/v2/ws') && status === 404);
  await expect.poll(isRefused).toBe(true);
  await source.append([report(seconds, at(15), at(15)), report(fine, (start + 7) * 1_000, (start + 7) * 1_000)]);
  await expect.poll(count, { interval: 500 }).toEqual([16, 14]);
  stop.abort('SIGINT');
  expect((await command).code).toBe(130);
  const served = bare.answered.filter(([, status]) => status === 200).map(([target]) => target.split('?')[0]);
  expect([...new Set(served)].sort()).toEqual(['/api/v1/reports/latest', '/api/v1/reports/page']);
});

test.each([
  [['--adopt'], 'does not publish its signer sets. Use --signers FILE.'],
  [['--signers', signers], 'No stream is registered at the target'],
])('follow: the error names the flag for what such a server does not publish (%j)', async (flags, text) => {
  const store = join(folder, `without-${flags[0]}`);
  const { code, stderr } = await runCommand(['follow', bare.url, seconds, ...flags, '--store', store], { env });
  expect([code, stderr, existsSync(store)]).toEqual([1, expect.stringContaining(text), false]);
});

test('follow: where a mirror fails at once, no store is left behind that was not there', async () => {
  const store = join(folder, 'never');
  const follow = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
    runCommand(['follow', source.url, ...args, '--store', store], { env: { ...env, ...more } });
  for (const [args, text] of [
    [[], 'No stream is registered at the target'],
    [['--catalog', catalog], 'No signer set is registered'],
    [['--adopt', '--network', 'mainnet'], 'but this deployment serves mainnet'],
  ] as const) {
    const { code, stderr } = await follow(args);
    expect([code, stderr, existsSync(store)]).toEqual([1, expect.stringContaining(text), false]);
  }
  const wrong = await follow(['--adopt'], { SEALPOST_SECRET: 'wrong' });
  expect([wrong.code, wrong.stderr, existsSync(store)]).toEqual([1, expect.stringContaining('unauthorized'), false]);
});

test('follow: with a server that lists no streams, the error asks for feed IDs or a catalog', async () => {
  const empty = createServer((_, response) => void response.writeHead(404).end('nothing here'));
  await new Promise<void>((resolve) => empty.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(empty.address() as AddressInfo).port}`; // it listens on a port
  for (const feeds of [[], ['BTC/USD']]) {
    const store = join(folder, 'empty');
    const { code, stderr } = await runCommand(['follow', url, ...feeds, '--store', store], { env });
    expect(existsSync(store)).toBe(false);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('does not list its streams. Pass feed IDs, or use --catalog FILE.'),
    ]);
  }
  empty.close();
});

test('follow --to: a wrong token, a public listener, and a store that is not the server’s are reported', async () => {
  const refusing = {
    submit: () => Promise.reject(new Error('nothing is sent here')),
    leave: () => {},
    close: async () => {},
  };
  const listener = await openPrivateListener(refusing, 'the-right-token-of-it');
  const follow = (to: string, ...more: string[]) =>
    runCommand(['follow', source.url, '--to', to, '--store', join(folder, 'nowhere'), ...more], {
      env: { ...env, SEALPOST_INGEST_TOKEN: 'another-token-entirely' },
    });
  expect(await follow(listener.url)).toMatchObject({ code: 3, stderr: expect.stringContaining('rejected the token') });
  expect(await follow(source.url)).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('Use the address of the server’s private listener'),
  });
  expect(await follow(listener.url, '--adopt')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Set it with --store, or import them there'),
  });
  await listener.close(0);
});
