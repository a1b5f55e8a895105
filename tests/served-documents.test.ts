// The documents that the service serves of itself: its status, its OpenAPI document, its page; and what of them is nobody's business.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createOpenApi } from '../protocol/src/openapi.ts';
import { openService, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';

const now = 1_763_200_000;
const { report, signerSets } = await createSignedReports('documents');
const [fresh, late, empty, hidden] = [secondStream(1), secondStream(2), secondStream(3), secondStream(4)];
const [foreign, ended, coming] = [secondStream(5), secondStream(6), secondStream(7)];
let [clockMs, elapsedMs] = [now * 1_000, 0];
let service: Service;

beforeAll(async () => {
  const streams = [
    testStream(fresh),
    testStream(late),
    testStream(empty),
    testStream(hidden, { hidden: true }),
    testStream(foreign, { networkType: 'mainnet' }),
    testStream(ended, { status: 'decommissioned', decommissionedAt: '2025-06-01T00:00:00.000000Z' }),
    testStream(coming, { status: 'testing' }),
  ];
  const rules = { version: '1.2.3', requestsPerSecond: 77, feedIdsMax: 5 };
  service = await openService(
    streams,
    signerSets,
    () => clockMs,
    rules,
    () => elapsedMs,
  );
  await service.append([report(fresh, now - 10, now - 2), report(late, now - 200, now - 61)]);
});
afterAll(() => service?.close());

const anonymous = { as: null };
const status = async () => (await service.call('/status.json', anonymous)).json;

test('status: readiness, lag and public streams of this network, for everyone', async () => {
  elapsedMs += 90_500;
  expect(await status()).toEqual({
    ready: true,
    reasons: [],
    network: 'testnet',
    version: '1.2.3',
    serverTimeMs: clockMs,
    uptimeSeconds: 90,
    ingestLagSeconds: 2,
    streams: { total: 5, live: 3, behind: 2, behindFeedIDs: [late, empty] },
    changes: [],
  });
});

test('status: it is worked out once a second, however many ask', async () => {
  const before = await status();
  clockMs += 61_000;
  elapsedMs += 999;
  expect(await status()).toEqual(before);
  elapsedMs += 1;
  expect(await status()).toMatchObject({
    ready: false,
    reasons: ['ingest: the newest report is 63 s old'],
    ingestLagSeconds: 63,
    streams: { behind: 3 },
  });
  clockMs = now * 1_000;
});

test('status: hidden streams show in nothing, neither in the lag nor in readiness', async () => {
  elapsedMs += 1_000;
  const before = await status();
  await service.append([report(hidden, now, now)]);
  elapsedMs += 1_000;
  expect(await status()).toEqual({ ...before, uptimeSeconds: before.uptimeSeconds + 1 });
  expect(before).toMatchObject({ ingestLagSeconds: 2 });
});

test('openapi.json: the document of the tables with the bounds of this deployment', async () => {
  const { status, headers, json } = await service.call('/openapi.json', anonymous);
  const expected = createOpenApi({ bounds: { feedIdsMax: 5, retentionDays: 30, requestsPerSecond: 77 } });
  expect([status, json]).toEqual([200, JSON.parse(JSON.stringify(expected))]);
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'public, max-age=300' });
});

test('docs: without the explorer, a page that loads nothing and names the document', async () => {
  const { status, headers, text } = await service.call('/docs', anonymous);
  expect(status).toBe(200);
  expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'x-content-type-options': 'nosniff' });
  expect(headers['content-security-policy']).toMatch(/^default-src 'none'; /);
  expect([...text.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, target]) => target)).toEqual(['/openapi.json']);
});

test.each(['/status.json', '/openapi.json', '/docs'])('%s answers HEAD, any origin, and GET alone', async (path) => {
  const [get, head] = [await service.call(path, anonymous), await service.call(path, { as: null, method: 'HEAD' })];
  expect([head.status, head.text]).toEqual([200, '']);
  const { date: _, 'x-request-id': __, ...same } = get.headers;
  expect(head.headers).toMatchObject(same);
  expect(get.headers['access-control-allow-origin']).toBe('*');
  expect((await service.call(path, { as: null, method: 'POST' })).status).toBe(405);
});

test('origins: a live connection may name a configured one or none; another is refused, where any are configured', async () => {
  let calls = 0;
  const asked = async (of: Service, origin?: string, path = '/api/v1/ws') => {
    calls += 1; // the clock stands still, and a signature may open one connection
    const target = path.endsWith('ws') ? `${path}?feedIDs=${fresh}&call=${calls}` : path;
    const { status, json } = await of.call(target, { headers: { 'X-Cll-Origin': origin } });
    return [status, json.code, json.message];
  };
  const upgrade = [426, 'upgrade_required', 'This path supports WebSocket only. Send an Upgrade request.'];
  const { signerSets: others } = await createSignedReports('origins');
  const several = await openService([testStream(fresh)], others, () => clockMs, { origins: ['001', '002'] });
  for (const path of ['/api/v1/ws', '/api/v2/ws']) {
    for (const known of ['001', '002', undefined]) expect(await asked(several, known, path)).toEqual(upgrade);
    const message = 'X-Cll-Origin is "003", expected one of 001, 002.';
    expect(await asked(several, '003', path)).toEqual([400, 'unknown_origin', message]);
  }
  expect((await asked(several, '003', '/api/v1/feeds'))[0]).toBe(200);
  expect(await asked(service, '003')).toEqual(upgrade);
  await several.close();
});

test('another network: its streams are listed to nobody and read by nobody, as if they did not exist', async () => {
  const entitled = await service.addAccount(['public', `feed:${foreign}`]);
  const unknown = secondStream(99);
  const feeds = async (target: string) => (await service.call(target, { as: entitled })).text;
  for (const target of ['/api/v1/discovery?hidden=true', '/api/v1/discovery?network_type=mainnet', '/api/v1/feeds'])
    expect(await feeds(target)).not.toContain(foreign);
  const [refused, missing] = await Promise.all(
    [foreign, unknown].map((feedId) => service.call(`/api/v1/reports/latest?feedID=${feedId}`, { as: entitled })),
  );
  expect(refused?.status).toBe(401);
  // Alike but for the stream that was asked for, which each names.
  const withoutNames = ({ text = '', feedId }: { text?: string | undefined; feedId: string }) =>
    text.replaceAll(feedId, 'FEED').replace(/"requestId":"[^"]*"/, '');
  expect(withoutNames({ text: refused?.text, feedId: foreign })).toBe(
    withoutNames({ text: missing?.text, feedId: unknown }),
  );
});
