import { inspect } from 'node:util';
import { errorTable } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { errorBody, type Scripted, scriptedFetch } from '../../tests/support/scripted-fetch.ts';
import { createClient } from './client.ts';
import { SealpostError } from './errors.ts';
import type { ClientOptions } from './options.ts';

const userId = '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f';
const secret = 'a-secret-that-nobody-may-see';
const feedId = `0x0003${'0'.repeat(59)}1`;
const other = `0x0003${'0'.repeat(59)}2`;
const reportOf = (feedID: string, second: number) => ({
  feedID,
  validFromTimestamp: second,
  observationsTimestamp: second,
  fullReport: `0x${second.toString(16).padStart(8, '0')}`,
});

const scripted = (answers: readonly Scripted[], options: Partial<ClientOptions> = {}) => {
  const { fetch, asked } = scriptedFetch(answers);
  const slept: number[] = [];
  const client = createClient({
    baseUrl: 'http://a.test',
    userId,
    secret,
    fetch,
    retries: 0,
    sleep: async (ms) => void slept.push(ms),
    ...options,
  });
  return { client, slept, targets: () => asked.map(({ url }) => url.slice('http://a.test'.length)), asked };
};

const codeOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'no error',
    (error: unknown) => (error instanceof SealpostError ? error.code : error),
  );

test('results include what the headers say', async () => {
  const headers = {
    'X-Request-Id': 'r-7',
    'RateLimit-Limit': '10',
    'RateLimit-Remaining': '9',
    'RateLimit-Reset': '1',
    Date: 'Sat, 15 Nov 2025 09:46:40 GMT',
  };
  const { client } = scripted([
    { status: 200, body: { report: reportOf(feedId, 7) }, headers },
    { status: 200, body: { report: reportOf(feedId, 7) } },
  ]);
  expect((await client.latest(feedId)).details).toEqual({
    status: 200,
    requestId: 'r-7',
    rateLimit: { limit: 10, remaining: 9, resetSeconds: 1 },
    serverTimeMs: 1_763_200_000_000,
  });
  expect((await client.latest(feedId)).details).toEqual({
    status: 200,
    requestId: undefined,
    rateLimit: undefined,
    serverTimeMs: undefined,
  });
});

test('bulk: a 206 has missing, even if the server does not list them', async () => {
  const reports = [reportOf(feedId, 7)];
  const { client, targets } = scripted([
    { status: 206, body: { reports, missing: [{ feedID: other, reason: 'gap' }] } },
    { status: 206, body: { reports } },
    { status: 200, body: { reports: [...reports, reportOf(other, 7)] } },
  ]);
  const ids = [feedId.toUpperCase().replace('0X', '0x'), other, feedId];
  expect((await client.bulk(ids, 7)).missing).toEqual([{ feedID: other, reason: 'gap' }]);
  expect((await client.bulk(ids, 7)).missing).toEqual([{ feedID: other }]);
  expect((await client.bulk(ids, 7)).missing).toEqual([]);
  expect(targets()[0]).toBe(`/api/v1/reports/bulk?feedIDs=${feedId}%2C${other}&timestamp=7&missing=true`);
});

test('page: more comes from the link, nextStartTimestamp from the last report', async () => {
  const headers = { Link: '</api/v1/reports/page?x>; rel="next"' };
  const { client, targets } = scripted([
    { status: 200, body: { reports: [reportOf(feedId, 7), reportOf(feedId, 9)] }, headers },
    { status: 200, body: { reports: [] } },
    { status: 200, body: { reports: [reportOf(feedId, 7)] } },
    { status: 200, body: { reports: [reportOf(feedId, 7)] }, headers: { Link: '</x>; rel="last"' } },
    { status: 200, body: { reports: [reportOf(feedId, 7)] }, headers: { Link: '</x.css>; rel=preload' } },
  ]);
  expect(await client.page(feedId, 5, 2)).toMatchObject({ more: true, nextStartTimestamp: 10 });
  expect(await client.page(feedId, 10)).toMatchObject({ more: false, nextStartTimestamp: 10, reports: [] });
  // A server that does not send the header has not said that this is the last page.
  expect(await client.page(feedId, 5)).toMatchObject({ more: true, nextStartTimestamp: 8 });
  expect(await client.page(feedId, 5)).toMatchObject({ more: false, nextStartTimestamp: 8 });
  expect(await client.page(feedId, 5)).toMatchObject({ more: true, nextStartTimestamp: 8 });
  expect(targets().slice(0, 2)).toEqual([
    `/api/v1/reports/page?feedID=${feedId}&startTimestamp=5&limit=2`,
    `/api/v1/reports/page?feedID=${feedId}&startTimestamp=10`,
  ]);
});

test.each([
  [[null]],
  [[{ timestamp: 60, open: '1.5', high: '1', low: '1', close: '1', reports: 1 }]],
  [[{ open: '1' }]],
])('candles: %j is unexpected_answer', async (candles) => {
  const { client } = scripted([{ status: 200, body: { candles } }]);
  const call = client.candles(feedId, { from: 60, to: 119, resolution: 60 });
  await expect(call).rejects.toMatchObject({ name: 'SealpostError', code: 'unexpected_answer' });
});

test('candles: prices are exact integers', async () => {
  const candle = { timestamp: 60, open: '1000000000000000001', high: '2', low: '-1', close: '0', reports: 4 };
  const { client } = scripted([{ status: 200, body: { candles: [candle] } }]);
  const { candles } = await client.candles(feedId, { from: 60, to: 119, resolution: 60 });
  expect(candles).toEqual([{ timestamp: 60, open: 10n ** 18n + 1n, high: 2n, low: -1n, close: 0n, reports: 4 }]);
});

test('candlesMany: streams are in the order of the request, whatever the order of the response', async () => {
  const other = `0x0003${'0'.repeat(59)}9`;
  const candle = { timestamp: 60, open: '1', high: '2', low: '-1', close: '0', reports: 4 };
  const entries = [
    { feedID: feedId, candles: [candle] },
    { feedID: other, candles: [] },
  ];
  const { client, targets } = scripted([{ status: 200, body: { streams: entries } }]);
  const { streams } = await client.candlesMany([other, feedId, other], { from: 60, to: 119, resolution: 60 });
  expect(streams).toEqual([
    { feedID: other, candles: [] },
    { feedID: feedId, candles: [{ timestamp: 60, open: 1n, high: 2n, low: -1n, close: 0n, reports: 4 }] },
  ]);
  expect(targets()).toEqual([`/api/v1/reports/candles/bulk?feedIDs=${other}%2C${feedId}&from=60&to=119&resolution=60`]);
});

test.each([[undefined], [[]], [[null]], [[{ feedID: feedId }]], [[{ feedID: feedId, candles: [{ open: '1' }] }]]])(
  'candlesMany: %j is unexpected_answer',
  async (streams) => {
    const { client } = scripted([{ status: 200, body: { streams } }]);
    const call = client.candlesMany([feedId], { from: 60, to: 119, resolution: 60 });
    await expect(call).rejects.toMatchObject({ name: 'SealpostError', code: 'unexpected_answer' });
  },
);

test('arguments: invalid ones throw before anything is sent', async () => {
  const { client, asked } = scripted([]);
  const wrong: readonly [Promise<unknown>, RegExp][] = [
    [client.latest('0x12'), /feedID is "0x12", expected 0x and 64 hex digits/],
    [client.at(feedId, 1_763_200_000_000), /looks like milliseconds: divide by 1000/],
    [client.at(feedId, 1.5), /timestamp is "1.5"/],
    [client.at(feedId, Number.NaN), /timestamp is "NaN"/],
    [client.bulk([], 7), /a list of feed IDs/],
    [client.page(feedId, 7, 1_001), /limit is "1001", expected a whole number from 1 to 1000/],
    [client.candles(feedId, { from: 0, to: 1, resolution: 61 }), /1 or 60 or 300 or 900 or 3600 or 14400 or 86400/],
    [client.discovery({ baseAsset: [] }), /a name or a list of names/],
    [client.discovery({ createdAfter: '2025-02-30' }), /a date, YYYY-MM-DD/],
    // A misspelt filter, which the server would ignore.
    [client.discovery({ baseAssets: 'BTC' } as object), /no filter of this name/], // what a caller without types may pass
  ];
  for (const [call, text] of wrong)
    await expect(call).rejects.toMatchObject({
      name: 'SealpostError',
      code: 'malformed_argument',
      message: expect.stringMatching(text),
    });
  expect(await codeOf(client.latest(feedId, { timeoutMs: 0 }))).toBe('invalid_option');
  expect(asked).toHaveLength(0);
});

test('discovery: filters have the names of the wire', async () => {
  const { client, targets } = scripted([{ status: 200, body: { feeds: [] } }]);
  await client.discovery({
    baseAsset: ['BTC', 'ETH'],
    assetClass: 'Tokenized Asset',
    hidden: true,
    createdAfter: new Date('2025-01-31T12:00:00Z'),
    expectedDecommissionBefore: '2026-01-01',
    status: undefined,
  });
  expect(targets()).toEqual([
    '/api/v1/discovery?base_asset=BTC%2CETH&asset_class=Tokenized%20Asset&hidden=true&created_after=2025-01-31&expected_decommission_before=2026-01-01',
  ]);
});

test('anonymous: public calls are sent unsigned, the others are not sent', async () => {
  const { fetch, asked } = scriptedFetch([
    { status: 200, body: { feeds: [] } },
    { status: 200, body: {} },
    { status: 200, body: { serverTimeMs: 5 } },
    { status: 200, body: { ready: true } },
  ]);
  const client = createClient({ baseUrl: 'http://a.test', fetch });
  await client.discovery();
  await client.signers();
  expect((await client.time()).serverTimeMs).toBe(5);
  await client.status();
  for (const { headers } of asked) expect(headers).toEqual({ 'User-Agent': 'sealpost-client/0.1.0' });
  for (const call of [client.latest(feedId), client.feeds(), client.bulk([feedId], 7)])
    expect(await codeOf(call)).toBe('missing_credentials');
  expect(asked).toHaveLength(4);
});

test.each([
  ['a page of someone else’s', '<html>'],
  ['no report', {}],
  ['null', 'null'],
  ['a report without its blob', { report: { ...reportOf(feedId, 7), fullReport: 7 } }],
  ['a report after what seconds hold', { report: reportOf(feedId, 2 ** 32) }],
  ['another stream’s report', { report: reportOf(other, 7) }],
])('answers: 200 with %s is unexpected_answer', async (_, body) => {
  const { client } = scripted([{ status: 200, body }]);
  expect(await codeOf(client.latest(feedId))).toBe('unexpected_answer');
});

test('page: one that starts too early, is not sorted, or is empty with a link is invalid_page', async () => {
  const headers = { Link: '</api/v1/reports/page?x>; rel="next"' };
  const { client } = scripted([
    { status: 200, body: { reports: [reportOf(feedId, 4), reportOf(feedId, 6)] } },
    { status: 200, body: { reports: [reportOf(feedId, 7), reportOf(feedId, 6)] } },
    { status: 200, body: { reports: [] }, headers },
  ]);
  for (let i = 0; i < 3; i += 1) expect(await codeOf(client.page(feedId, 5))).toBe('invalid_page');
});

test('signers: a body that has no signer sets is unexpected_answer, one without any is not', async () => {
  const bodies = [[], { feeds: [] }, { error: 'not here' }, { '0x00': null }, { '0x00': { f: 1, addresses: 'none' } }];
  for (const body of bodies) {
    const client = createClient({ baseUrl: 'http://a.test', fetch: scriptedFetch([{ status: 200, body }]).fetch });
    expect(await codeOf(client.signers())).toBe('unexpected_answer');
  }
  const sets = { '0x00': { f: 1, addresses: ['0x01'] } };
  for (const body of [{}, sets]) {
    const client = createClient({ baseUrl: 'http://a.test', fetch: scriptedFetch([{ status: 200, body }]).fetch });
    expect((await client.signers()).signers).toEqual(body);
  }
});

test('discovery and feeds: entries without a feed ID are unexpected_answer', async () => {
  const { client } = scripted([
    { status: 200, body: { feeds: [{ name: 'ETH/USD' }] } },
    { status: 200, body: { feeds: [null] } },
    { status: 200, body: { feeds: [{ feedID: 7 }] } },
    { status: 200, body: { feeds: [null] } },
  ]);
  for (const call of [client.discovery, client.discovery, client.feeds, client.feeds])
    expect(await codeOf(call())).toBe('unexpected_answer');
});

test('errors: code, status, request ID, details and advice are those of the response', async () => {
  const around = { reason: 'gap', previous: null, next: null };
  const { client } = scripted([
    { status: 404, body: errorBody('report_not_found', around), headers: { 'X-Request-Id': 'r-9' } },
    { status: 418, body: errorBody('of_a_later_release') },
    { status: 503, body: '<html>proxy</html>' },
  ]);
  const errors = await Promise.all(
    [1, 2, 3].map((second) => client.at(feedId, second).catch((error: unknown) => error)),
  );
  expect(JSON.parse(JSON.stringify(errors[0]))).toEqual({
    name: 'SealpostError',
    message: 'About report_not_found.',
    code: 'report_not_found',
    status: 404,
    requestId: 'r-9',
    advice: 'details.reason says why, details.previous and details.next are the nearest reports.',
    retryable: true,
    details: around,
  });
  expect(errors[1]).toMatchObject({ code: 'of_a_later_release', status: 418, retryable: false, requestId: 'r-1' });
  expect(errors[2]).toMatchObject({ code: 'http_503', retryable: true, message: 'a.test returned 503.' });
});

test('errors: retryable agrees with the server’s error table', () => {
  for (const [code, { status, retry }] of Object.entries(errorTable))
    expect([code, new SealpostError(code, 'text', { status }).retryable]).toEqual([code, retry]);
});

/** Everything that a program could print of a value. */
const printed = (value: unknown): string =>
  [
    inspect(value, { showHidden: true, depth: Number.POSITIVE_INFINITY, getters: true, showProxy: true }),
    JSON.stringify(value),
    String(value),
    value instanceof Error ? String(value.stack) : '',
    ...Object.values(Object(value)).map(String),
  ].join('\n');

test('secrets: neither the client nor its results and errors show the secret', async () => {
  const { client } = scripted([
    { status: 200, body: { report: reportOf(feedId, 7) } },
    { status: 401, body: errorBody('unauthorized') },
    new TypeError('fetch failed'),
  ]);
  const results = [
    client,
    await client.latest(feedId),
    client.pages(feedId, { from: 0 }),
    ...(await Promise.all([client.latest(feedId), client.latest(feedId)].map((call) => call.catch((error) => error)))),
  ];
  expect(results.filter((one) => one instanceof SealpostError)).toHaveLength(2);
  for (const one of results) expect(printed(one)).not.toContain(secret);
});

test.each([
  ['user ID and secret the wrong way round', { userId: secret, secret: userId }],
  ['a secret without a user ID', { userId: undefined, secret }],
  ['a user ID without a secret', { userId, secret: undefined }],
])('secrets: %s is rejected, and not repeated', (_, credentials) => {
  const make = () => createClient({ baseUrl: 'http://a.test', ...credentials });
  expect(make).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  try {
    make();
  } catch (error) {
    expect(printed(error)).not.toContain(secret);
  }
});

test.each([{ timeoutMs: -1 }, { timeoutMs: 2 ** 31 }, { attemptTimeoutMs: 0.5 }, { retries: 11 }])(
  'options: %o is rejected when the client is created',
  (options) => {
    expect(() => createClient({ baseUrl: 'http://a.test', ...options })).toThrow(/expected a whole number from/);
  },
);
