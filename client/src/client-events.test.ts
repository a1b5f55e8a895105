import { expect, test, vi } from 'vitest';
import { errorBody, type Scripted, scriptedFetch } from '../../tests/support/scripted-fetch.ts';
import { readJson } from '../../tests/support/source-tree.ts';
import { createClient } from './client.ts';
import { type ClientEvent, isolateListener } from './client-events.ts';
import type { ClientOptions } from './options.ts';
import { observeStream } from './stream/stream.ts';
import { clientVersion } from './version.ts';

const feedId = `0x0003${'0'.repeat(59)}1`;
const report = { feedID: feedId, validFromTimestamp: 7, observationsTimestamp: 7, fullReport: '0x00' };
const good: Scripted = { status: 200, body: { report }, headers: { 'X-Request-Id': 'r-7' } };
const away: Scripted = { status: 503, body: errorBody('store_unavailable') };

const open = (answers: readonly Scripted[], options: Partial<ClientOptions> = {}) => {
  const { fetch, asked } = scriptedFetch(answers);
  const events: ClientEvent[] = [];
  const client = createClient({
    baseUrl: 'http://a.test',
    userId: '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f',
    secret: 'secret',
    fetch,
    random: () => 0,
    sleep: async () => {},
    onEvent: (event) => events.push(event),
    ...options,
  });
  return { client, events, asked };
};

test('events: an attempt has status, bytes and duration, a retry has its delay', async () => {
  const { client, events } = open([away, new TypeError('fetch failed'), good]);
  await client.latest(feedId);
  const attempt = {
    kind: 'attempt',
    url: 'http://a.test',
    path: '/api/v1/reports/latest',
    durationMs: expect.any(Number),
  };
  expect(events).toEqual([
    {
      ...attempt,
      attempt: 1,
      status: 503,
      code: 'store_unavailable',
      requestId: undefined,
      bytes: JSON.stringify(errorBody('store_unavailable')).length,
    },
    { kind: 'retry', path: '/api/v1/reports/latest', delayMs: 125, code: 'store_unavailable' },
    { ...attempt, attempt: 2, status: undefined, code: 'network_error', requestId: undefined, bytes: 0 },
    { kind: 'retry', path: '/api/v1/reports/latest', delayMs: 250, code: 'network_error' },
    {
      ...attempt,
      attempt: 3,
      status: 200,
      code: undefined,
      requestId: 'r-7',
      bytes: JSON.stringify({ report }).length,
    },
  ]);
});

test('events: an aborted call and a warning are events', async () => {
  const controller = new AbortController();
  const { client, events, asked } = open(['silence'], { onWarning: () => {} });
  const call = client.latest(feedId, { signal: controller.signal });
  await vi.waitFor(() => expect(asked).toHaveLength(1));
  controller.abort();
  await expect(call).rejects.toMatchObject({ code: 'aborted' });
  expect(events).toMatchObject([{ kind: 'attempt', status: undefined, code: 'aborted' }]);
  const skewed = { status: 400, body: errorBody('clock_skew', { serverTimeMs: 60_000 }) };
  const clock = open([skewed, good], { nowMs: () => 0, onWarning: () => {} });
  await clock.client.latest(feedId);
  expect(clock.events.map(({ kind }) => kind)).toEqual(['attempt', 'attempt', 'warning']);
  expect(clock.events[2]).toMatchObject({ code: 'clock_skew' });
});

test('events: a listener that throws or rejects breaks no call and is reported once', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  const throwing = () => {
    throw new Error('of the listener');
  };
  for (const onEvent of [throwing, async () => throwing()]) {
    warn.mockClear();
    const { client } = open([away, good, good], { onEvent, onWarning: throwing });
    expect((await client.latest(feedId)).report).toEqual(report);
    await client.latest(feedId);
    await new Promise((resolve) => setImmediate(resolve));
    expect(warn.mock.calls).toEqual([['sealpost: onEvent threw; later exceptions are not shown: of the listener']]);
  }
  warn.mockRestore();
});

test('events: listeners of a stream are guarded in the same way, and its states and gaps are events', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  const events: ClientEvent[] = [];
  const throwing = () => {
    throw new Error('of the listener');
  };
  const options = observeStream(['BTC/USD'], { onState: throwing, onGap: throwing }, (event) => events.push(event));
  options.onState?.({ phase: 'live' });
  options.onGap?.({ feedId, from: 1, to: 2 });
  expect(events).toEqual([
    { kind: 'stream', streams: ['BTC/USD'], state: { phase: 'live' } },
    { kind: 'gap', feedId, from: 1, to: 2 },
  ]);
  expect(warn).toHaveBeenCalledTimes(2);
  warn.mockRestore();
  expect(isolateListener('nobody', undefined)(1)).toBeUndefined();
});

test('user agent: name and version of the package, after the caller’s own', async () => {
  expect(clientVersion).toBe((readJson('client/package.json') as { version: string }).version); // as npm's manifest is
  const plain = open([good]);
  await plain.client.latest(feedId);
  expect(plain.asked[0]?.headers['User-Agent']).toBe(`sealpost-client/${clientVersion}`);
  const named = open([good], { userAgent: 'my-service/1.4 (test)' });
  await named.client.latest(feedId);
  expect(named.asked[0]?.headers['User-Agent']).toBe(`my-service/1.4 (test) sealpost-client/${clientVersion}`);
  for (const userAgent of ['', 'a\r\nX: y', ' a', 'ü'])
    expect(() => open([], { userAgent })).toThrow('userAgent is not');
});
