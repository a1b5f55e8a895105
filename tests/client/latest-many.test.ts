// GET /api/v1/reports/latest?feedIDs=…, an extension: bulk's rules with the newest report of each stream (D99).
import { routes } from '@sealpost/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

const { report, signerSets } = await createSignedReports('latest-many');
const now = 1_763_200_000;
const [btc, eth, silent] = [secondStream(1), secondStream(2), secondStream(3)];
const [old, forbidden, unknown] = [secondStream(4), secondStream(5), secondStream(6)];
const secondsOld = 31 * 86_400;
let clock = now * 1_000;
let service: Service;
let alice: Credentials;

beforeAll(async () => {
  const streams = [btc, eth, silent, old].map((feedId) => testStream(feedId));
  const known = [...streams, testStream(forbidden, { hidden: true })];
  service = await openService(known, signerSets, () => clock, { feedIdsMax: 5 });
  clock = (now - secondsOld) * 1_000;
  await service.append([report(old, now - secondsOld - 9, now - secondsOld)]);
  clock = now * 1_000;
  const newest = [btc, eth, forbidden].map((feedId) => report(feedId, now - 10, now - 1));
  await service.append([report(btc, now - 20, now - 11), ...newest]);
  alice = await service.addAccount(['public']);
});
afterAll(() => service.close());

const many = (ids: readonly string[], rest = '') => `${routes.reportLatestMany.path}?feedIDs=${ids.join(',')}${rest}`;
const call = (target: string, options: Parameters<Service['call']>[1] = {}) =>
  service.call(target, { as: alice, ...options });
const one = async (feedId: string) => (await call(`/api/v1/reports/latest?feedID=${feedId}`)).json.report;

describe('GET /api/v1/reports/latest?feedIDs', () => {
  test('the newest reports in the order asked for, duplicates dropped, as each stream’s own answer has them', async () => {
    const reply = await call(many([eth, btc, eth.toUpperCase().replace('0X', '0x')]));
    expect(reply.status).toBe(200);
    expect(reply.text).toBe(JSON.stringify({ reports: [await one(eth), await one(btc)] }));
    expect(reply.headers).toMatchObject({ 'cache-control': 'no-store', 'access-control-allow-origin': '*' });
    expect(reply.headers).not.toHaveProperty('etag');
  });

  test('the argument’s name and its commas may be percent-encoded', async () => {
    for (const query of [`feedIDs=${btc}%2C${eth}`, `feed%49Ds=${btc},${eth}`, `x=%20&feedIDs=${btc},${eth}`])
      expect((await call(`/api/v1/reports/latest?${query}`)).json.reports).toHaveLength(2);
  });

  test('a stream without a report, or with none within retention, is left out and the status is 206', async () => {
    const partial = await call(many([silent, btc, old]));
    expect([partial.status, partial.json]).toEqual([206, { reports: [await one(btc)] }]);
    const none = await call(many([silent]));
    expect([none.status, none.json]).toEqual([206, { reports: [] }]);
  });

  test('with missing=true a 206 names the missing streams and why, a 200 names none', async () => {
    const { json } = await call(many([silent, btc, old], '&missing=true'));
    expect(json.missing).toEqual([
      { feedID: silent, reason: 'no_reports' },
      { feedID: old, reason: 'no_reports' },
    ]);
    expect(Object.keys((await call(many([btc], '&missing=true'))).json)).toEqual(['reports']);
  });

  test('one stream that may not be read fails the whole request, and all of them alike', async () => {
    for (const id of [unknown, forbidden]) {
      const reply = await call(many([btc, id, silent]));
      expect([reply.status, reply.json.code]).toEqual([401, 'stream_not_accessible']);
    }
  });

  test('feedID together with feedIDs, an empty item, a repeated argument, and too many feed IDs are 400', async () => {
    const rows = [
      [many([btc], `&feedID=${btc}`), 'malformed_argument', 'feedID'],
      [`/api/v1/reports/latest?feedID=${btc}&feedIDs=`, 'malformed_argument', 'feedID'],
      [many([]), 'malformed_argument', 'feedIDs'],
      [many([btc, '']), 'malformed_argument', 'feedIDs'],
      [many([btc], `&feedIDs=${eth}`), 'repeated_argument', 'feedIDs'],
      [many([11, 12, 13, 14, 15, 16].map((n) => secondStream(n))), 'malformed_argument', 'feedIDs'],
      [many([btc], '&missing=yes'), 'malformed_argument', 'missing'],
    ] as const;
    expect((await call(many([btc], `&feedID=${btc}`))).json.error).toBe(
      'feedID and feedIDs are both given. Send one of them.',
    );
    for (const [target, code, argument] of rows) {
      const { status, json } = await call(target);
      expect([target, status, json.code, json.argument]).toEqual([target, 400, code, argument]);
    }
  });

  test('the single form is unchanged: errors, ETag and 304 as before', async () => {
    const target = `/api/v1/reports/latest?feedID=${btc}`;
    const plain = await call(target);
    expect((await call(`${target}&x=feedIDs&feedids=1&FEEDIDS=2&feedIDs2=3`)).text).toBe(plain.text);
    expect((await call(target, { headers: { 'If-None-Match': plain.headers.etag } })).status).toBe(304);
    const { status, json } = await call('/api/v1/reports/latest?missing=true');
    expect([status, json.error]).toEqual([400, 'feedID is missing. Stream to read.']);
  });

  test('If-None-Match is ignored, even *', async () => {
    const reply = await call(many([btc]), { headers: { 'If-None-Match': '*' } });
    expect(reply.status).toBe(200);
  });

  test('HEAD answers like GET, OPTIONS lists the methods, others are 405', async () => {
    const [get, head] = [await call(many([btc, silent])), await call(many([btc, silent]), { method: 'HEAD' })];
    expect([head.status, head.text, head.headers['content-length']]).toEqual([206, '', get.headers['content-length']]);
    const options = await call(many([btc]), { method: 'OPTIONS', as: null });
    expect([options.status, options.headers.allow]).toEqual([204, 'GET, HEAD, OPTIONS']);
    expect((await call(many([btc]), { method: 'POST' })).status).toBe(405);
  });

  test('without credentials it says no more than any path: 400 for what is missing, before the query is looked at', async () => {
    for (const target of [many([btc]), many(['nonsense']), many([btc], `&feedID=${btc}`)])
      expect((await call(target, { as: null })).json.code).toBe('missing_header');
  });

  test('a large answer is compressed for those who ask', async () => {
    const reply = await call(many([btc, eth]), { headers: { 'Accept-Encoding': 'gzip' } });
    expect(reply.status).toBe(200);
    expect(reply.headers['content-encoding'] === 'gzip').toBe(
      Number((await call(many([btc, eth]))).headers['content-length']) >= 8_192,
    );
  });
});

test('latest of several: has its own rate limit and name', async () => {
  const limits = { reportLatest: 3, reportLatestMany: 2 };
  const bob = await service.addAccount(['public'], { rateLimits: limits });
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await call(many([btc]), { as: bob })).status);
  expect(statuses).toEqual([200, 200, 429]);
  const single = await call(`/api/v1/reports/latest?feedID=${btc}`, { as: bob });
  expect([single.status, single.headers['ratelimit-limit']]).toEqual([200, '3']);
  const routesTold = service.events.slice(-2).map(({ route }) => route);
  expect(routesTold).toContain('reportLatest');
});
