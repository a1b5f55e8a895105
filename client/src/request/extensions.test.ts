// What the client does on servers that implement the specification and none of our extensions (D96).
import { expect, test } from 'vitest';
import { type Asked, errorBody, type Scripted, scriptedFetch } from '../../../tests/support/scripted-fetch.ts';
import { createClient } from '../client.ts';
import { SealpostError } from '../errors.ts';
import type { ClientOptions } from '../options.ts';

const feedId = `0x0003${'0'.repeat(59)}1`;
const other = `0x0003${'0'.repeat(59)}2`;
const nowMs = 1_763_200_000_000;
const report = { feedID: feedId, validFromTimestamp: 9, observationsTimestamp: 10, fullReport: '0x00' };
const good: Scripted = { status: 200, body: { report } };
const dated = (ms: number) => ({ Date: new Date(ms).toUTCString() });
const notFound: Scripted = { status: 404, body: '404 page not found', headers: dated(nowMs) };

const scripted = (
  answers: readonly Scripted[] | ((asked: Asked) => Scripted),
  options: Partial<ClientOptions> = {},
) => {
  const { fetch, asked } = scriptedFetch(answers);
  const [slept, warnings]: [number[], string[]] = [[], []];
  const client = createClient({
    baseUrl: 'http://a.test',
    userId: '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f',
    secret: 's',
    fetch,
    random: () => 0,
    sleep: async (ms) => void slept.push(ms),
    onWarning: ({ code }) => void warnings.push(code),
    nowMs: () => nowMs,
    ...options,
  });
  const targets = () => asked.map(({ url }) => url.slice('http://a.test'.length));
  return { client, asked, targets, slept, warnings };
};
const failure = (call: Promise<unknown>): Promise<SealpostError> =>
  call.then(
    () => expect.unreachable('It resolved.'),
    (error: unknown) => (error instanceof SealpostError ? error : expect.unreachable(String(error))),
  );

test.each([
  [400, { error: 'feedID is wrong' }, 'bad_request', 'feedID is wrong'],
  [401, { message: 'no such key' }, 'unauthorized', 'no such key'],
  [403, { error: { code: 7, message: 'no such key' } }, 'unauthorized', 'no such key'],
  [404, { title: 'Not found', detail: 'no such path' }, 'not_found', 'no such path'],
  [429, { error: 'slow down' }, 'rate_limited', 'slow down'],
  [500, { error: 'oops' }, 'http_500', 'oops'],
  [400, 'bad request', 'http_400', 'a.test returned 400.'],
  [401, '<html><h1>401</h1></html>', 'http_401', 'a.test returned 401.'],
  [429, '', 'http_429', 'a.test returned 429.'],
  [401, '["no"]', 'http_401', 'a.test returned 401.'],
  [401, '{"error":""}', 'http_401', 'a.test returned 401.'],
])('errors: %i with %j has the code %s', async (status, body, code, message) => {
  const { client } = scripted([{ status, body }], { retries: 0 });
  expect(await failure(client.discovery())).toMatchObject({
    code,
    status,
    message,
    retryable: status === 429 || status >= 500,
  });
});

test('errors: on a report route, a 404 with a message is a missing report, one without is a wrong address', async () => {
  const { client } = scripted([{ status: 404, body: { error: 'no report' } }, notFound]);
  expect(await failure(client.at(feedId, 7))).toMatchObject({
    code: 'report_not_found',
    message: 'no report',
    retryable: true,
  });
  expect(await failure(client.latest(feedId))).toMatchObject({ code: 'http_404', retryable: false });
});

test('errors: the oldest second is read from the specification’s message about retention', async () => {
  const error = 'Timestamp out of bounds. Timestamp must be within the last 30 days.';
  const { client } = scripted([{ status: 400, body: { error }, headers: dated(nowMs + 1_000) }]);
  expect(await failure(client.page(feedId, 7))).toMatchObject({
    code: 'timestamp_out_of_bounds',
    details: { oldestTimestamp: nowMs / 1_000 + 1 - 30 * 86_400 },
  });
});

test.each([
  [400, 60_000],
  [401, -3_600_000],
])('clock: a %i without a code is signed again with the time of the Date header, %i ms off', async (status, skewMs) => {
  const refusal = { status, body: { error: 'No.' }, headers: dated(nowMs + skewMs) };
  const { client, asked, warnings } = scripted([refusal, good, good]);
  await client.latest(feedId);
  await client.latest(feedId);
  const signed = asked.map(({ headers }) => Number(headers['X-Authorization-Timestamp']) - nowMs);
  // The header has whole seconds: the middle of that second is off by half a second at most.
  expect(signed).toEqual([0, skewMs + 500, skewMs + 500]);
  expect(warnings).toEqual(['clock_skew']);
});

test('clock: a Date header that does not help is forgotten', async () => {
  const refusal = { status: 401, body: { error: 'No.' }, headers: dated(nowMs + 60_000) };
  const { client, asked, warnings } = scripted([refusal, refusal, good]);
  expect(await failure(client.latest(feedId))).toMatchObject({ code: 'unauthorized', message: 'No.' });
  await client.latest(feedId);
  const signed = asked.map(({ headers }) => Number(headers['X-Authorization-Timestamp']) - nowMs);
  expect(signed).toEqual([0, 60_500, 0]);
  expect(warnings).toEqual([]);
});

test.each([
  ['the clocks agree', { status: 401, body: { error: 'No.' }, headers: dated(nowMs + 1_000) }],
  ['there is no Date', { status: 400, body: { error: 'No.' } }],
  ['the server gives a code', { status: 401, body: errorBody('unauthorized'), headers: dated(nowMs + 60_000) }],
  ['it is no refusal', { status: 404, body: { error: 'No.' }, headers: dated(nowMs + 60_000) }],
])('clock: nothing is signed again if %s', async (_, refusal) => {
  const { client, asked } = scripted([refusal]);
  await failure(client.latest(feedId));
  expect(asked).toHaveLength(1);
});

const bulk = (target: string) => target.startsWith('/api/v1/reports/bulk?');

test.each([
  ['400 in JSON', { status: 400, body: { error: 'unknown parameter: missing' } }],
  ['400 in text', { status: 400, body: 'unknown parameter' }],
  ['401', { status: 401, body: { error: 'No.' } }],
  ['404', notFound],
])('bulk: a server that rejects missing=true with %s gets requests without it from then on', async (_, refusal) => {
  const { client, targets } = scripted(({ url }) =>
    url.includes('missing=') ? refusal : { status: 206, body: { reports: [report] } },
  );
  for (let i = 0; i < 2; i += 1)
    expect(await client.bulk([feedId, other], 10)).toMatchObject({ reports: [report], missing: [{ feedID: other }] });
  expect(
    targets()
      .filter(bulk)
      .map((target) => target.endsWith('&missing=true')),
  ).toEqual([true, false, false]);
});

test('bulk: if the request without the parameter fails too, that is the error, and the parameter is sent again', async () => {
  const { client, targets } = scripted([
    { status: 401, body: { error: 'First.' } },
    { status: 401, body: { error: 'Second.' } },
    { status: 200, body: { reports: [report] } },
  ]);
  expect(await failure(client.bulk([feedId], 10))).toMatchObject({ code: 'unauthorized', message: 'Second.' });
  expect((await client.bulk([feedId], 10)).missing).toEqual([]);
  expect(targets().map((target) => target.endsWith('&missing=true'))).toEqual([true, false, true]);
});

test('bulk: an error with a Sealpost code is not about the parameter', async () => {
  const { client, asked } = scripted([{ status: 401, body: errorBody('stream_not_accessible') }]);
  expect(await failure(client.bulk([feedId], 10))).toMatchObject({ code: 'stream_not_accessible' });
  expect(asked).toHaveLength(1);
});

test.each([
  ['signers', [], 'Pass a signer set to verify, from a file that you keep.'],
  ['status', [], 'Read a report with latest() to see whether the service works.'],
  ['feeds', [], 'List the catalog with discovery(), and keep your own list of readable streams.'],
  ['coverage', [feedId, { from: 1, to: 2 }], 'Read the time range with pages() and compare the windows.'],
  ['coverageMany', [[feedId], { from: 1, to: 2 }], 'Read each stream with coverage().'],
  ['candles', [feedId, { from: 1, to: 2, resolution: 60 }], 'Read the time range with pages() and decode the prices.'],
  ['candlesMany', [[feedId], { from: 1, to: 2, resolution: 60 }], 'Read each stream with candles().'],
] as const)('%s: a server without it is an error that says what to do', async (name, args, advice) => {
  for (const answer of [notFound, { status: 405 }, { status: 404, body: errorBody('route_not_found') }]) {
    const { client } = scripted([answer]);
    const call = client[name] as (...values: readonly unknown[]) => Promise<unknown>; // each with its own arguments
    expect(await failure(call(...args))).toMatchObject({ code: 'not_supported', retryable: false, advice });
  }
});

test('time: without the route, the time is the Date header', async () => {
  const { client } = scripted([notFound, { status: 404 }]);
  expect(await client.time()).toMatchObject({ serverTimeMs: nowMs, details: { status: 404 } });
  expect(await failure(client.time())).toMatchObject({ code: 'not_supported' });
});

test('pages: a 429 without rate-limit headers is retried, and does not end the range', async () => {
  const page = (start: number): Scripted => ({
    status: 200,
    body: { reports: start > 12 ? [] : [{ ...report, validFromTimestamp: start, observationsTimestamp: start }] },
  });
  let asked = 0;
  const { client, slept } = scripted(({ url }) => {
    asked += 1;
    return asked % 2 === 0
      ? { status: 429, body: { error: 'slow down' } }
      : page(Number(/startTimestamp=(\d+)/.exec(url)?.[1]));
  });
  const seconds: number[] = [];
  for await (const { reports } of client.pages(feedId, { from: 10 }))
    seconds.push(...reports.map((one) => one.observationsTimestamp));
  expect(seconds).toEqual([10, 11, 12]);
  expect(slept).toHaveLength(3);
});

test('pages: a rate limit that is shorter than the search for the largest page does not start it over', async () => {
  const limits: (string | undefined)[] = [];
  const { client } = scripted(({ url }) => {
    const limit = /limit=(\d+)/.exec(url)?.[1];
    limits.push(limit);
    if (limits.length % 4 === 0) return { status: 429, body: { error: 'slow down' } };
    return Number(limit ?? 10) > 100
      ? { status: 400, body: { error: 'limit' } }
      : { status: 200, body: { reports: [] } };
  });
  const read = () => client.pages(feedId, { from: 10, retryRateLimited: false }).next();
  expect(await failure(read())).toMatchObject({ status: 429 });
  expect(await read()).toMatchObject({ done: true });
  expect(limits).toEqual(['1000', undefined, '500', '100', '100']);
});

test('reports: feed IDs match the request in any case', async () => {
  const mixed = `0x0003${'0'.repeat(58)}aB`;
  const { client } = scripted([{ status: 200, body: { report: { ...report, feedID: mixed } } }]);
  expect((await client.latest(mixed)).report.feedID).toBe(mixed.toLowerCase());
});

test('lists: null is an empty list', async () => {
  const { client } = scripted([
    { status: 206, body: { reports: null } },
    { status: 200, body: { reports: null } },
    { status: 200, body: { feeds: null } },
    { status: 200, body: { feeds: null } },
  ]);
  expect((await client.bulk([feedId], 10)).missing).toEqual([{ feedID: feedId }]);
  expect(await client.page(feedId, 10)).toMatchObject({ reports: [], more: false });
  expect((await client.feeds()).feeds).toEqual([]);
  expect((await client.discovery()).feeds).toEqual([]);
});
