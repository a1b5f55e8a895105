// A whole node, set up by its own commands: what it counts of accounts, reports and the store can be read where operators look.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signRequest, toReportJson } from '@sealpost/protocol';
import { afterAll, expect, test } from 'vitest';
import { runCommand } from '../cli/src/sample-session.fixture.ts';
import { resolveSettings } from '../server/src/config/config.ts';
import { openNode } from '../server/src/node/node.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';

const root = mkdtempSync(join(tmpdir(), 'sealpost-observed-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const env = { SEALPOST_STORE: join(root, 'store'), SEALPOST_KEY_FILE: join(root, 'key') };
const run = async (...args: string[]) => {
  const { code, stdout, stderr } = await runCommand(args, { env });
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
};

/** Sends bytes that are no request and waits for the end of the connection. */
const sendNonsense = async (url: string): Promise<void> => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.resume().end('nonsense\r\n\r\n');
  await once(socket, 'close');
};

test('observed: requests become usage of their account, and every observation a metric', async () => {
  const stream = secondStream(1);
  const { report, signerSets } = await createSignedReports('observed');
  const catalog = join(root, 'catalog.json');
  writeFileSync(catalog, JSON.stringify([testStream(stream)]));
  await run('init');
  await run('stream', 'import', catalog);
  const { userId, secret } = JSON.parse(
    await run('account', 'create', '--name', 'acme', '--entitle', 'public', '--json'),
  );
  const flags = {
    ...{ listen: '127.0.0.1:0', opsListen: '127.0.0.1:0', requestsPerSecond: '3', logLevel: 'silent' },
    eventLoopLagMaxMs: '60000', // what is counted here is not load: a busy machine must not shed a request
  };
  const { values: settings } = resolveSettings({ flags, env, file: undefined });
  const node = await openNode({ settings, version: '1.2.3', ingestToken: undefined });
  const sets = [...signerSets.values()].map((set) => ({ ...set, addedAt: '', retiredAt: null }));
  const reloaded = new Promise<void>((resolve) => void node.write.view.onReload(resolve));
  const act = { atMs: Date.now(), actor: 'test', action: 'set up', detail: {} };
  await node.write.store.admin.update('signerSet', [sets[0]?.configDigest ?? ''], () => sets.slice(0, 1), act);
  await reloaded;
  const now = Math.floor(Date.now() / 1_000);
  const stored = report(stream, now - 5, now - 1);
  const line = toReportJson(stream, stored, `0x${Buffer.from(stored.fullReport).toString('hex')}`);
  const [result] = await node.write.ingest.submit([JSON.stringify(line)], 1);
  expect(result).toMatchObject({ result: 'stored' });

  const ask = async (target: string, as = userId) => {
    const headers = signRequest({ method: 'GET', target, userId: as, timestampMs: Date.now() }, secret);
    return (await fetch(`${node.url}${target}`, { headers: headers as Record<string, string> })).status;
  };
  expect([await ask('/api/v1/feeds'), await ask('/api/v1/feeds')]).toEqual([200, 200]);
  expect(await ask(`/api/v1/reports/latest?feedID=${stream}`)).toBe(200);
  expect(await ask(`/api/v1/reports/latest?feedID=${secondStream(9)}`)).toBe(401);
  expect(await ask('/api/v1/feeds', crypto.randomUUID())).toBe(401);
  await sendNonsense(node.url);

  const metrics = await (await fetch(`${node.opsUrl}/metrics`)).text();
  expect(metrics).toContain('\nsealpost_report_ingest_to_visible_seconds_count 1\n');
  expect(metrics).toContain('\nsealpost_store_commit_seconds_count 1\n');
  expect(metrics).toContain('\nsealpost_store_stale_readers 0\n');
  expect(metrics).toMatch(
    /_failed_requests_total\{http_request_method="_OTHER",http_route="unmatched",http_response_status_code="400"\} 1\n/,
  );
  const { ready, version } = (await (await fetch(`${node.url}/status.json`)).json()) as Record<string, unknown>;
  expect([ready, version]).toEqual([true, '1.2.3']);
  await node.stop('test');

  const [secretShown] = JSON.parse(await run('account', 'show', 'acme', '--json')).secrets;
  const usedAtMs = Date.parse(secretShown.lastUsedAt);
  expect(usedAtMs % 60_000).toBe(0);
  expect(Math.abs(Date.now() - usedAtMs)).toBeLessThan(180_000);
  expect(await run('account', 'show', 'acme')).toMatch(/active, last used \d{4}-\d\d-\d\dT\d\d:\d\dZ$/m);
  const { usage } = JSON.parse(await run('account', 'usage', 'acme', '--json'));
  const counted = usage.map(({ route, requests }: { route: string; requests: number }) => [route, requests]);
  expect(counted).toEqual([
    ['feeds', 2],
    ['reportLatest', 2],
  ]);
});
