// The specification, heading by heading: a test for each sentence, named by it.
import { type FeedId, signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { at, openService, type Reply, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const now = 1_763_200_000;
let clockMs = now * 1_000 + 123;
const [btc, eth, hidden, forbidden, silent] = [1, 2, 3, 4, 5].map(secondStream) as [
  FeedId,
  FeedId,
  FeedId,
  FeedId,
  FeedId,
];
const unknown = secondStream(99);
let service: Service;
let alice: Awaited<ReturnType<Service['addAccount']>>;
let bob: typeof alice;

const streams = [
  testStream(btc, { name: 'BTC/USD-Streams-CexPrice', baseAsset: 'BTC', createdAt: '2025-01-10T00:00:00.000000Z' }),
  testStream(eth, {
    name: 'ETH/USD-Streams-CexPrice',
    baseAsset: 'ETH',
    status: 'testing',
    createdAt: '2025-03-01T00:00:00.000000Z',
  }),
  testStream(hidden, { name: 'HID/USD-Streams-CexPrice', baseAsset: 'HID', hidden: true }),
  testStream(forbidden, {
    name: 'EUR/USD-Streams-ForexPrice',
    baseAsset: 'EUR',
    assetClass: 'Forex',
    feedType: 'Forex',
    attributeType: 'ForexPrice',
    expectedDecommissionAt: '2026-12-31T00:00:00.000000Z',
  }),
  testStream(silent, {
    name: 'OLD/USD-Streams-CexPrice',
    baseAsset: 'OLD',
    status: 'decommissioned',
    decommissionedAt: '2025-06-01T00:00:00.000000Z',
  }),
];
const btcReports = [
  report(btc, now - 60, now - 51),
  report(btc, now - 50, now - 41),
  report(btc, now - 30, now - 21),
  report(btc, now - 20, now - 11),
  report(btc, now - 10, now - 1),
];
const ethReport = report(eth, now - 50, now - 41);

beforeAll(async () => {
  service = await openService(streams, signerSets, () => clockMs);
  await service.append([
    ...btcReports,
    ethReport,
    report(hidden, now - 5, now - 5),
    report(forbidden, now - 5, now - 5),
  ]);
  alice = await service.addAccount(['filter:asset_class=Crypto', `feed:${hidden}`]);
  bob = await service.addAccount(['public']);
});
afterAll(() => service.close());

const wire = (one: (typeof btcReports)[number]) => ({
  feedID: one.feedId,
  validFromTimestamp: one.validFromMs / 1_000,
  observationsTimestamp: one.observationsMs / 1_000,
  fullReport: `0x${Buffer.from(one.fullReport).toString('hex')}`,
});
const latest = (feedId: string) => `/api/v1/reports/latest?feedID=${feedId}`;
const call = (target: string, options: Parameters<Service['call']>[1] = {}) =>
  service.call(target, { as: alice, ...options });
const names = (reply: Reply) => reply.json.feeds.map(({ name }: { name: string }) => name.split('/')[0]);
const paths = [
  '/api/v1/discovery',
  '/api/v1/feeds',
  at(btc, now - 55),
  latest(btc),
  `/api/v1/reports/bulk?feedIDs=${btc}&timestamp=${now - 55}`,
  `/api/v1/reports/page?feedID=${btc}&startTimestamp=${now - 60}`,
];

describe('What the service does', () => {
  test.each(paths)('every operation is an HTTP GET: %s', async (path) => {
    expect((await call(path)).status).toBe(200);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const reply = await call(path, { method });
      expect([reply.status, reply.headers.allow, reply.json.code]).toEqual([
        405,
        'GET, HEAD, OPTIONS',
        'method_not_allowed',
      ]);
    }
  });

  test.each(paths)('HEAD answers as GET does, without the body: %s', async (path) => {
    const get = await call(path);
    const head = await call(path, { method: 'HEAD' });
    expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', get.headers['content-length']]);
  });

  test('a report belongs to a stream identified by feedID and applies to a span, not to an instant', async () => {
    for (const second of [now - 60, now - 55, now - 51])
      expect((await call(at(btc, second))).json.report).toEqual(wire(btcReports[0] as never));
  });
});

describe('Resources and their fields', () => {
  test('a report has exactly feedID, validFromTimestamp, observationsTimestamp and fullReport, in this order, timestamps as integers', async () => {
    const { text } = await call(latest(btc));
    expect(text).toBe(JSON.stringify({ report: wire(btcReports[4] as never) }));
  });

  test('each catalog entry carries the stream’s ID, its asset pair and its status', async () => {
    const { json } = await call('/api/v1/discovery?base_asset=BTC');
    expect(json.feeds[0]).toEqual({
      feedId: btc,
      name: 'BTC/USD-Streams-CexPrice',
      assetName: 'Test',
      baseAsset: 'BTC',
      quoteAsset: 'USD',
      assetClass: 'Crypto',
      feedType: 'Crypto',
      attributeType: 'CexPrice',
      marketHours: '24/7',
      schemaVersion: 'V3',
      serviceLevel: 'standard',
      networkType: 'testnet',
      status: 'live',
      createdAt: '2025-01-10T00:00:00.000000Z',
      expectedDecommissionAt: null,
      decommissionedAt: null,
    });
  });

  test('a hidden stream is listed only to an authenticated caller whose key is entitled to it and who asks for hidden streams', async () => {
    expect(names(await call('/api/v1/discovery?hidden=true'))).toContain('HID');
    expect(names(await call('/api/v1/discovery'))).not.toContain('HID');
    expect(names(await call('/api/v1/discovery?hidden=false'))).not.toContain('HID');
    expect(names(await call('/api/v1/discovery?hidden=true', { as: bob }))).not.toContain('HID');
    expect(names(await call('/api/v1/discovery?hidden=true', { as: null }))).not.toContain('HID');
  });
});

describe('GET /api/v1/discovery', () => {
  test('authentication is optional; without it only publicly available streams are listed', async () => {
    const reply = await call('/api/v1/discovery', { as: null });
    expect([reply.status, names(reply)]).toEqual([200, ['BTC', 'ETH', 'EUR', 'OLD']]);
    expect(reply.headers).toMatchObject({ 'cache-control': 'public, max-age=300', vary: 'Authorization' });
    expect((await call('/api/v1/discovery')).headers['cache-control']).toBe('no-store');
  });

  test.each([
    ['base_asset=ETH', ['ETH']],
    ['quote_asset=USD&base_asset=btc,eth', ['BTC', 'ETH']],
    ['asset_class=Forex', ['EUR']],
    ['feed_type=Forex', ['EUR']],
    ['attribute_type=ForexPrice', ['EUR']],
    ['status=testing', ['ETH']],
    ['status=decommissioned', ['OLD']],
    ['network_type=TESTNET', ['BTC', 'ETH', 'EUR', 'OLD']],
    ['network_type=mainnet', []],
    ['created_after=2025-02-01', ['ETH']],
    ['created_before=2025-01-10', ['EUR', 'OLD']],
    ['expected_decommission_after=2026-12-30', ['EUR']],
    ['expected_decommission_before=2026-12-31', []],
    ['decommissioned_after=2025-05-31', ['OLD']],
    ['decommissioned_before=2025-06-01', []],
    ['asset_class=Weather', []],
    ['color=red&status=testing', ['ETH']],
  ])('filter %s', async (query, expected) => {
    expect(names(await call(`/api/v1/discovery?${query}`, { as: null }))).toEqual(expected);
  });

  test.each(['hidden=1', 'created_after=today', 'status=live&status=testing', 'status='])(
    'a malformed or repeated filter is 400: %s',
    async (query) => {
      expect((await call(`/api/v1/discovery?${query}`, { as: null })).status).toBe(400);
    },
  );

  test('with any of the three headers all must hold', async () => {
    expect((await call('/api/v1/discovery', { headers: { Authorization: undefined } })).status).toBe(400);
    expect((await call('/api/v1/discovery', { signed: '/else' })).status).toBe(401);
  });
});

describe('GET /api/v1/reports', () => {
  test('the body is an object with one key report', async () => {
    const reply = await call(at(btc, now - 41));
    expect(reply.json).toEqual({ report: wire(btcReports[1] as never) });
    expect(reply.headers['cache-control']).toBe('private, no-cache');
  });

  test.each([
    [now - 35, 'gap', now - 41, now - 21],
    [now, 'not_yet', now - 1, null],
    [now - 100, 'before_first', null, now - 51],
  ])('no report at %i: 404 that says why, with the neighbours', async (second, reason, previous, next) => {
    const reply = await call(at(btc, second));
    expect(reply.status).toBe(404);
    expect(reply.json).toMatchObject({ code: 'report_not_found', reason });
    expect([
      reply.json.previous?.observationsTimestamp ?? null,
      reply.json.next?.observationsTimestamp ?? null,
    ]).toEqual([previous, next]);
  });

  test('a conditional request is answered 304 after all checks', async () => {
    const { headers } = await call(at(btc, now - 55));
    expect(headers.etag).toMatch(/^"[0-9a-f]{32}"$/);
    const again = await call(at(btc, now - 55), { headers: { 'If-None-Match': headers.etag as string } });
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', headers.etag]);
    expect((await call(at(btc, now - 55), { headers: { 'If-None-Match': '"other"' } })).status).toBe(200);
    expect((await call(at(btc, now - 55), { signed: '/x', headers: { 'If-None-Match': '*' } })).status).toBe(401);
  });

  test('a timestamp older than retention is 400 with the documented text', async () => {
    const reply = await call(at(btc, now - 30 * 86_400 - 1));
    expect([reply.status, reply.json.error]).toEqual([
      400,
      'Timestamp out of bounds. Timestamp must be within the last 30 days.',
    ]);
    expect((await call(at(btc, now - 30 * 86_400))).status).toBe(404);
  });
});

describe('GET /api/v1/reports/latest', () => {
  test('the report with the latest timestamp', async () => {
    expect((await call(latest(btc))).json).toEqual({ report: wire(btcReports[4] as never) });
    expect((await call(latest(btc))).headers['cache-control']).toBe('no-store');
  });

  test('no report is 404', async () => {
    const { status, json } = await call(latest(silent));
    expect([status, json.reason, json.previous, json.next]).toEqual([404, 'no_reports', null, null]);
  });

  test('a conditional request is answered 304', async () => {
    const { headers } = await call(latest(btc));
    expect((await call(latest(btc), { headers: { 'If-None-Match': headers.etag as string } })).status).toBe(304);
  });
});

describe('GET /api/v1/reports/bulk', () => {
  const bulk = (ids: readonly string[], second: number, rest = '') =>
    `/api/v1/reports/bulk?feedIDs=${ids.join(',')}&timestamp=${second}${rest}`;

  test('an object with one key reports, in the order asked for, duplicates dropped', async () => {
    const reply = await call(bulk([eth, btc, eth], now - 45));
    expect([reply.status, reply.json]).toEqual([200, { reports: [wire(ethReport), wire(btcReports[1] as never)] }]);
  });

  test('raw and encoded commas mean the same', async () => {
    for (const comma of ['%2C', '%2c'])
      expect(
        (await call(`/api/v1/reports/bulk?feedIDs=${btc}${comma}${eth}&timestamp=${now - 45}`)).json.reports,
      ).toHaveLength(2);
  });

  test('data missing for some stream: only the reports that exist, and status 206, also when there is none', async () => {
    const partial = await call(bulk([btc, eth], now - 55));
    expect([partial.status, Object.keys(partial.json), partial.json.reports]).toEqual([
      206,
      ['reports'],
      [wire(btcReports[0] as never)],
    ]);
    const none = await call(bulk([btc, eth], now - 35));
    expect([none.status, none.json]).toEqual([206, { reports: [] }]);
  });

  test('with missing=true a 206 names the missing streams and why', async () => {
    const { json } = await call(bulk([btc, eth, silent], now - 35, '&missing=true'));
    expect(json.missing).toEqual([
      { feedID: btc, reason: 'gap' },
      { feedID: eth, reason: 'not_yet' },
      { feedID: silent, reason: 'no_reports' },
    ]);
  });

  test('one stream that may not be read fails the whole request', async () => {
    for (const id of [unknown, forbidden])
      expect(await call(bulk([btc, id, eth], now - 55))).toMatchObject({ status: 401, json: { feedID: id } });
  });

  test('more ids than are answered are 400', async () => {
    const many = Array.from({ length: 101 }, (_, i) => secondStream(1_000 + i));
    expect((await call(bulk(many, now))).json).toMatchObject({ code: 'malformed_argument', argument: 'feedIDs' });
  });
});

describe('GET /api/v1/reports/page', () => {
  const page = (start: number, rest = '') => `/api/v1/reports/page?feedID=${btc}&startTimestamp=${start}${rest}`;

  test('sequential reports for the one stream, starting at startTimestamp, oldest first', async () => {
    expect((await call(page(now - 41))).json).toEqual({ reports: btcReports.slice(1).map((one) => wire(one)) });
    expect((await call(page(now - 40, '&limit=1'))).json.reports).toEqual([wire(btcReports[2] as never)]);
    expect((await call(page(now))).json).toEqual({ reports: [] });
  });

  test('limit bounds the number of reports; a link leads on while there is more, and marks the last page', async () => {
    const visited = [];
    let target: string | undefined = page(now - 60, '&limit=2');
    while (target !== undefined) {
      const reply: Reply = await call(target);
      visited.push(...reply.json.reports);
      target = /^<([^>]+)>; rel="next"$/.exec(reply.headers.link ?? '')?.[1];
      if (target === undefined) expect(reply.headers.link).toMatch(/^<[^>]+&limit=2>; rel="last"$/);
    }
    expect(visited).toEqual(btcReports.map((one) => wire(one)));
  });

  test.each(['0', '1001', '-1', '1e9', 'NaN', ''])('limit=%s is 400', async (limit) => {
    expect((await call(page(now - 60, `&limit=${limit}`))).json).toMatchObject({
      code: 'malformed_argument',
      argument: 'limit',
    });
  });
});

describe('Authentication', () => {
  const protectedPaths = paths.slice(1);

  test.each(protectedPaths)('requires authentication: %s', async (path) => {
    const reply = await call(path, { as: null });
    expect([reply.status, reply.json.code, reply.json.header]).toEqual([400, 'missing_header', 'Authorization']);
  });

  test.each(['Authorization', 'X-Authorization-Timestamp', 'X-Authorization-Signature-SHA256'])(
    '%s missing, repeated or incorrect is 400 and named',
    async (header) => {
      for (const value of [undefined, '', 'nonsense', '0x00']) {
        const reply = await call(latest(btc), { headers: { [header]: value } });
        expect([reply.status, reply.json.header]).toEqual([400, header]);
      }
    },
  );

  test.each([0, 4_999, -4_999, 5_000, -5_000])('a clock difference of %i ms is accepted', async (difference) => {
    const { status } = await withClock(difference);
    expect(status).toBe(200);
  });

  test.each([5_001, -5_001, 60_000, -60_000])(
    'a clock difference of %i ms is 400 and told, for unknown users too',
    async (difference) => {
      const reply = await withClock(difference);
      expect([reply.status, reply.json.code, reply.json.skewMs, reply.json.serverTimeMs]).toEqual([
        400,
        'clock_skew',
        difference,
        clockMs,
      ]);
    },
  );

  const withClock = async (difference: number): Promise<Reply> => {
    clockMs += difference;
    const timestamp = clockMs;
    clockMs -= difference;
    const target = latest(btc);
    return call(target, {
      as: null,
      headers: signRequest({ method: 'GET', target, userId: alice.userId, timestampMs: timestamp }, alice.secret),
    });
  };

  test('a signature that does not match fails with 401, and so does an unknown user, with the same body', async () => {
    const wrong = await call(latest(btc), { as: { ...alice, secret: 'wrong' } });
    const stranger = await call(latest(btc), { as: { userId: crypto.randomUUID(), secret: 'x' } });
    expect([wrong.status, stranger.status]).toEqual([401, 401]);
    expect({ ...wrong.json, requestId: '' }).toEqual({ ...stranger.json, requestId: '' });
  });

  test('a request for a stream without permission, hidden or not existing fails with 401, identically', async () => {
    const replies = await Promise.all(
      [unknown, forbidden].map((id) => call(latest(id))).concat([call(latest(hidden), { as: bob })]),
    );
    // The id that was asked for is the caller's own.
    const blank = ({ json }: Reply) => JSON.stringify({ ...json, requestId: '' }).replaceAll(json.feedID, '');
    for (const reply of replies) {
      expect(reply.status).toBe(401);
      expect(blank(reply)).toEqual(blank(replies[0] as Reply));
      expect(Object.keys(reply.headers)).toEqual(Object.keys(replies[0]?.headers ?? {}));
    }
  });

  test('the user id counts in any case, the signature’s hex too', async () => {
    const upper = { ...alice, userId: alice.userId.toUpperCase() };
    expect((await call(latest(btc), { as: upper })).status).toBe(200);
  });

  test('a doubled leading slash is routed like one, signed either way', async () => {
    const target = `/${latest(btc)}`;
    expect((await call(target)).status).toBe(200);
    expect((await call(target, { signed: latest(btc) })).status).toBe(200);
    expect((await call(latest(btc), { signed: target })).status).toBe(401);
  });

  test('feeds lists what the caller may read', async () => {
    const { json } = await call('/api/v1/feeds');
    expect(json.feeds).toEqual([btc, eth, hidden, silent].map((feedID) => ({ feedID })));
  });
});

describe('Errors', () => {
  test.each([
    ['a missing argument', '/api/v1/reports', 400, 'missing_argument'],
    ['a malformed feed id', '/api/v1/reports/latest?feedID=0x12', 400, 'malformed_argument'],
    ['milliseconds', at(btc, now * 1_000), 400, 'malformed_argument'],
    ['a repeated argument', `${latest(btc)}&feedID=${btc}`, 400, 'repeated_argument'],
    ['an unknown path', '/api/v1/nothing', 404, 'route_not_found'],
    ['an encoded path', '/api/v1/%72eports/latest', 404, 'route_not_found'],
    ['dot segments', '/api/v1/x/../reports/latest', 404, 'route_not_found'],
    ['a trailing slash', '/api/v1/feeds/', 404, 'route_not_found'],
    ['a broken percent-encoding', '/api/v1/feeds?x=%zz', 400, 'malformed_target'],
    ['a fragment', '/api/v1/feeds#x', 400, 'malformed_target'],
  ])('%s: the body names code and request id, CORS and no-store are there', async (_, target, status, code) => {
    const reply = await call(target);
    expect(reply.status).toBe(status);
    expect(reply.json).toMatchObject({ code, requestId: reply.headers['x-request-id'], error: expect.any(String) });
    expect(reply.json.error).toBe(reply.json.message);
    expect(reply.headers).toMatchObject({
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
      'content-type': 'application/json',
    });
  });

  test('a body is refused before authentication', async () => {
    expect((await call(latest(btc), { as: null, headers: { 'Content-Length': '2' }, body: '{}' })).json.code).toBe(
      'unexpected_body',
    );
    expect((await call('/api/v1/feeds', { headers: { 'Content-Length': '0' } })).status).toBe(200);
  });

  test('OPTIONS answers browsers', async () => {
    const reply = await call('/api/v1/feeds', { method: 'OPTIONS', as: null });
    expect([reply.status, reply.headers['access-control-max-age']]).toEqual([204, '600']);
    expect(reply.headers['access-control-allow-headers']).toBe(
      'Authorization, X-Authorization-Timestamp, X-Authorization-Signature-SHA256, If-None-Match, Last-Event-ID, X-Cll-Origin',
    );
    expect(reply.headers['access-control-expose-headers']).toContain('Date, X-Cll-Available-Origins');
  });
});

describe('Limits', () => {
  const stopped = () => 0; // no token comes back while the test runs, however long that takes
  const openLimited = (rules: Parameters<typeof openService>[3]) =>
    openService(streams, signerSets, () => clockMs, rules, stopped);

  test('requests are subject to a per-account rate limit per route; exceeding it gives 429 with Retry-After', async () => {
    const limited = await openLimited({ requestsPerSecond: 3 });
    try {
      const replies = await Promise.all(Array.from({ length: 5 }, () => limited.call('/api/v1/feeds')));
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429, 429]);
      const refused = replies.find(({ status }) => status === 429);
      expect(refused?.headers).toMatchObject({
        'retry-after': '1',
        'ratelimit-limit': '3',
        'ratelimit-remaining': '0',
        'ratelimit-reset': '1',
      });
      expect((await limited.call('/api/v1/discovery')).headers['ratelimit-remaining']).toBe('2');
    } finally {
      await limited.close();
    }
  });

  test('failed authentication costs the named account nothing, and an address with too many failures gets 429', async () => {
    const limited = await openLimited({ requestsPerSecond: 5, failuresPerSecond: 4 });
    try {
      const victim = await limited.addAccount(['public']);
      const forged = await Promise.all(
        Array.from({ length: 12 }, () => limited.call('/api/v1/feeds', { as: { ...victim, secret: 'no' } })),
      );
      expect(new Set(forged.map(({ status }) => status))).toEqual(new Set([401, 429]));
      const own = await Promise.all(Array.from({ length: 5 }, () => limited.call('/api/v1/feeds', { as: victim })));
      expect(own.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    } finally {
      await limited.close();
    }
  });
});

describe('Versioning', () => {
  test('all routes are under /api/v1/, or outside /api/ where they are ours', async () => {
    for (const path of ['/time', '/signers.json']) expect((await call(path, { as: null })).status).toBe(200);
    expect((await call('/time', { as: null })).json).toEqual({ serverTimeMs: clockMs });
    expect(Object.keys((await call('/signers.json', { as: null })).json)).toEqual([...signerSets.keys()]);
  });
});
