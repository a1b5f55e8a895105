import { signatureOf } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { type Asked, errorBody, type Scripted, scriptedFetch } from '../../../tests/support/scripted-fetch.ts';
import { createClient } from '../client.ts';
import type { ClientWarning } from '../client-events.ts';
import { SealpostError } from '../errors.ts';
import { type ClientOptions, readOptions } from '../options.ts';
import { type Sleep, sleepOnTimer } from './call.ts';
import { createRequester } from './requester.ts';

const userId = '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f';
const secret = 'a-secret-that-nobody-may-see';
const feedId = `0x0003${'0'.repeat(59)}1`;
const report = { feedID: feedId, validFromTimestamp: 9, observationsTimestamp: 10, fullReport: '0x00' };
const good: Scripted = { status: 200, body: { report } };
const refused = Object.assign(new TypeError('fetch failed'), {
  cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
});

/** A client that sleeps at once and remembers for how long it would have. */
const scripted = (
  answers: readonly Scripted[] | ((asked: Asked) => Scripted),
  options: Partial<ClientOptions> = {},
) => {
  const { fetch, asked } = scriptedFetch(answers);
  const slept: number[] = [];
  const warnings: ClientWarning[] = [];
  const place = options.baseUrls === undefined ? { baseUrl: 'http://a.test' } : {};
  const client = createClient({
    ...place,
    userId,
    secret,
    fetch,
    random: () => 0,
    sleep: async (ms) => void slept.push(ms),
    onWarning: (warning) => void warnings.push(warning),
    nowMs: () => 1_763_200_000_000,
    ...options,
  });
  return { client, asked, slept, warnings };
};

const failure = async (call: Promise<unknown>): Promise<SealpostError> => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof SealpostError) return error;
  throw new Error(`Expected a SealpostError, got ${String(error)}`);
};

test.each([
  ['500', { status: 500, body: errorBody('internal_error') }],
  ['502 with a proxy’s page', { status: 502, body: '<html>bad gateway</html>' }],
  ['503', { status: 503, body: errorBody('overloaded') }],
  ['504', { status: 504, body: '' }],
  ['a refused connection', refused],
] as const)('retries: %s is tried again with growing pauses until it is answered', async (_, failed) => {
  const { client, asked, slept } = scripted([failed, failed, failed, good]);
  expect((await client.latest(feedId)).report).toEqual(report);
  expect(asked).toHaveLength(4);
  expect(slept).toEqual([125, 250, 500]);
});

test('retries: the upper half of a delay is random', async () => {
  const { client, slept } = scripted([refused, refused, good], { random: () => 0.5 });
  await client.latest(feedId);
  expect(slept).toEqual([188, 375]);
});

test.each([
  [400, 'malformed_argument'],
  [401, 'unauthorized'],
  [401, 'stream_not_accessible'],
  [404, 'report_not_found'],
  [405, 'method_not_allowed'],
  [408, 'request_timeout'],
  [429, 'rate_limited'],
  [431, 'head_too_large'],
] as const)('retries: %i %s is never sent twice', async (status, code) => {
  const { client, asked } = scripted([{ status, body: errorBody(code), headers: { 'Retry-After': '1' } }]);
  expect(await failure(client.latest(feedId))).toMatchObject({ status, code, message: `About ${code}.` });
  expect(asked).toHaveLength(1);
});

test('retries: after the last one the error is the server’s', async () => {
  const failed = { status: 503, body: errorBody('draining') };
  const { client, asked } = scripted([failed, failed], { retries: 1 });
  expect(await failure(client.latest(feedId))).toMatchObject({ code: 'draining', status: 503, retryable: true });
  expect(asked).toHaveLength(2);
});

test('retries: none with retries set to 0', async () => {
  const { client, asked } = scripted([refused], { retries: 0 });
  expect(await failure(client.latest(feedId))).toMatchObject({ code: 'network_error', retryable: true });
  expect(asked).toHaveLength(1);
});

test.each([
  ['seconds', '3', 3_000],
  ['a date', new Date(1_763_200_007_000).toUTCString(), 7_000],
])('retries: Retry-After in %s is waited in full', async (_, value, expected) => {
  const busy = { status: 503, body: errorBody('overloaded'), headers: { 'Retry-After': value } };
  const { client, slept } = scripted([busy, good]);
  await client.latest(feedId);
  expect(slept).toEqual([expected]);
});

test('retries: with retryRateLimited, a 429 is retried after Retry-After', async () => {
  const limited = { status: 429, body: errorBody('rate_limited'), headers: { 'Retry-After': '2' } };
  const { client, slept } = scripted([limited, good], { retryRateLimited: true });
  expect((await client.latest(feedId)).report).toEqual(report);
  expect(slept).toEqual([2_000]);
});

test('retries: no wait that is longer than the rest of the time-out', async () => {
  const busy = { status: 503, body: errorBody('draining'), headers: { 'Retry-After': '60' } };
  const { client, slept } = scripted([busy], { timeoutMs: 5_000 });
  expect(await failure(client.latest(feedId))).toMatchObject({ code: 'draining', details: { retryAfterSeconds: 60 } });
  expect(slept).toEqual([]);
});

test('retries: every attempt has a new signature over the target as sent', async () => {
  let nowMs = 1_763_200_000_000;
  const { client, asked } = scripted([refused, good], { nowMs: () => (nowMs += 1_000) });
  await client.latest(feedId);
  const stamps = asked.map(({ headers }) => Number(headers['X-Authorization-Timestamp']));
  expect(stamps[1]).toBeGreaterThan(stamps[0] as number); // two were sent
  for (const { url, headers } of asked) {
    const { pathname, search } = new URL(url);
    const timestampMs = Number(headers['X-Authorization-Timestamp']);
    const target = `${pathname}${search}`;
    expect(headers['X-Authorization-Signature-SHA256']).toBe(
      signatureOf({ method: 'GET', target, userId, timestampMs }, secret),
    );
  }
});

test('attempts: one that receives no byte fails, and the next one starts', async () => {
  const { client, asked } = scripted(['silence', good], { attemptTimeoutMs: 20 });
  expect((await client.latest(feedId)).report).toEqual(report);
  expect(asked).toHaveLength(2);
});

test('streams: no two connections are signed alike, and a clock that is set back is followed', async () => {
  let nowMs = 100_000;
  const requester = createRequester(readOptions({ baseUrl: 'http://a.test', userId, secret, nowMs: () => nowMs }));
  const signedMs = async () => Number((await requester.sign('GET', '/api/v1/ws')).headers['X-Authorization-Timestamp']);
  expect([await signedMs(), await signedMs(), await signedMs()]).toEqual([100_000, 100_001, 100_002]);
  nowMs -= 5;
  expect(await signedMs()).toBe(100_003);
  nowMs -= 50_000;
  expect([await signedMs(), await signedMs()]).toEqual([49_995, 49_996]);
});

test('time-out: ends the whole call, retries included, even if fetch ignores its signal', async () => {
  const unanswered = async (): Promise<Response> => new Promise(() => {});
  const client = createClient({ baseUrl: 'http://a.test', fetch: unanswered });
  expect(await failure(client.time({ timeoutMs: 20 }))).toMatchObject({
    code: 'timeout',
    retryable: true,
    message: 'No answer within 20 ms, retries included.',
  });
});

test('abort: before a call nothing is sent; during a call or a wait it ends the call', async () => {
  const before = scripted([]);
  expect(await failure(before.client.latest(feedId, { signal: AbortSignal.abort('enough') }))).toMatchObject({
    code: 'aborted',
    retryable: false,
    cause: 'enough',
  });
  expect(before.asked).toHaveLength(0);

  const controller = new AbortController();
  const during = scripted(() => {
    queueMicrotask(() => controller.abort());
    return 'silence';
  });
  expect(await failure(during.client.latest(feedId, { signal: controller.signal }))).toMatchObject({ code: 'aborted' });
  expect(during.asked).toHaveLength(1);

  const pausing = new AbortController();
  const { fetch, asked } = scriptedFetch(() => ({ status: 503, headers: { 'Retry-After': '9' } }));
  const sleep: Sleep = (ms, signal) => {
    queueMicrotask(() => pausing.abort());
    return sleepOnTimer(ms, signal);
  };
  const client = createClient({ baseUrl: 'http://a.test', fetch, sleep });
  expect(await failure(client.time({ signal: pausing.signal }))).toMatchObject({ code: 'aborted' });
  expect(asked).toHaveLength(1);
});

const hosts = (asked: readonly Asked[]) => asked.map(({ url }) => new URL(url).host);

test('fail-over: the next base URL is tried at once and kept, with a warning', async () => {
  const { client, asked, slept, warnings } = scripted(
    ({ url }) => (url.startsWith('http://a.test') ? { status: 502 } : good),
    { baseUrls: ['http://a.test', 'http://b.test/', 'http://c.test'] },
  );
  await client.latest(feedId);
  await client.latest(feedId);
  expect(hosts(asked)).toEqual(['a.test', 'b.test', 'b.test']);
  expect(slept).toEqual([]);
  expect(warnings).toEqual([{ code: 'failover', message: 'Failed over to http://b.test.' }]);
});

const busyFor = (seconds: number): Scripted => ({ status: 503, headers: { 'Retry-After': String(seconds) } });

test('fail-over: if all fail, there is one delay per round; a Retry-After is kept by its server, and delays no other', async () => {
  const { client, asked, slept } = scripted([busyFor(60), refused, refused, good], {
    baseUrls: ['http://a.test', 'http://b.test'],
    timeoutMs: 5_000,
  });
  await client.latest(feedId);
  expect(hosts(asked)).toEqual(['a.test', 'b.test', 'b.test', 'b.test']);
  expect(slept).toEqual([125, 250]);
});

test('fail-over: if all send Retry-After, the one is asked that is free first; after its delay the other, too', async () => {
  const { client, asked, slept } = scripted([busyFor(4), busyFor(3), busyFor(1), refused, good], {
    baseUrls: ['http://a.test', 'http://b.test'],
  });
  await client.latest(feedId);
  expect(hosts(asked)).toEqual(['a.test', 'b.test', 'b.test', 'a.test', 'b.test']);
  expect(slept).toEqual([3_000, 1_000]);
});

test('retries: a Retry-After of less than a millisecond is waited, too', async () => {
  const busy = { status: 503, body: errorBody('overloaded', { retryAfterSeconds: 0.0001 }) };
  const { client, slept } = scripted([busy, good]);
  await client.latest(feedId);
  expect(slept).toEqual([1]);
});

test('fail-over: a 4xx is final, and no other base URL is tried', async () => {
  const { client, asked } = scripted([{ status: 401, body: errorBody('unauthorized') }], {
    baseUrls: ['http://a.test', 'http://b.test'],
  });
  expect(await failure(client.latest(feedId))).toMatchObject({ code: 'unauthorized' });
  expect(hosts(asked)).toEqual(['a.test']);
});

const skewed = (serverTimeMs: number): Scripted => ({
  status: 400,
  body: errorBody('clock_skew', { serverTimeMs, skewMs: 1 }),
});

test('clock: corrected from the response, with a warning, and kept for later calls', async () => {
  const { client, asked, warnings, slept } = scripted([skewed(1_763_200_060_000), good, good]);
  await client.latest(feedId);
  await client.latest(feedId);
  expect(asked.map(({ headers }) => headers['X-Authorization-Timestamp'])).toEqual([
    '1763200000000',
    '1763200060000',
    '1763200060000',
  ]);
  expect(slept).toEqual([]);
  expect(warnings).toEqual([
    {
      code: 'clock_skew',
      message:
        'The clock of this machine is 60000 ms behind the server’s. Requests are signed with the server’s time; synchronize the clock.',
    },
  ]);
});

test('clock: corrected once per call, never in a loop', async () => {
  const { client, asked, warnings } = scripted([skewed(1_763_200_060_000), skewed(1_763_200_120_000)]);
  expect(await failure(client.latest(feedId))).toMatchObject({ code: 'clock_skew', status: 400 });
  expect(asked).toHaveLength(2);
  expect(warnings).toHaveLength(1);
});

test('clock: concurrent calls that are rejected warn once', async () => {
  const { client, warnings } = scripted(({ headers }) =>
    headers['X-Authorization-Timestamp'] === '1763200000000' ? skewed(1_763_200_060_000) : good,
  );
  await Promise.all(Array.from({ length: 5 }, () => client.latest(feedId)));
  expect(warnings).toHaveLength(1);
});

test('clock: not corrected without the server’s time', async () => {
  const { client, asked } = scripted([{ status: 401, body: errorBody('clock_skew', { serverTimeMs: 'soon' }) }]);
  expect(await failure(client.latest(feedId))).toMatchObject({ code: 'clock_skew' });
  expect(asked).toHaveLength(1);
});

test('redirects are not followed: the signed headers go to no other server', async () => {
  const { client, asked } = scripted([{ status: 307, headers: { Location: 'http://elsewhere.test/' } }]);
  expect(await failure(client.latest(feedId))).toMatchObject({
    code: 'unexpected_answer',
    status: 307,
    message: 'a.test redirects to http://elsewhere.test/ (307).',
    details: { location: 'http://elsewhere.test/' },
  });
  expect(asked).toHaveLength(1);
});

test('redirects: an address with control characters, or a long one, is shown in one short line', async () => {
  const told = async (location: string) => {
    const { client } = scripted([{ status: 301, headers: { Location: location } }]);
    return String(Object(await failure(client.latest(feedId))).message);
  };
  expect(await told('https://a.test/\u0007\u001b[2J')).toMatch(/^[ -~…�]*$/);
  expect((await told(`https://a.test/${'x'.repeat(9_000)}`)).length).toBeLessThan(600);
});
