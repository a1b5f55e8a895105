// The client's stream against the real service, whose clock tests set: exact streams, many streams, old moments, wrong clocks, ended keys. On our
// server, and on one that has none of our extensions: there events become a WebSocket.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import {
  type ClientOptions,
  createClient,
  type StreamGap,
  type StreamOptions,
  type StreamState,
} from '@sealpost/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Account } from '../../server/src/store/store.ts';
import { execArgvForModules } from '../support/module-for-process.ts';
import { openSpecProxy, type SpecProxy } from '../support/proxies/spec-proxy.ts';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { act, testStream } from '../support/running-ingest.ts';
import { createSignedReports, millisecondStream, type SignedReports, secondStream } from '../support/signed-reports.ts';
import { root } from '../support/source-tree.ts';

/** Over what, and on which server. */
const transports = ['sse', 'websocket', 'sse elsewhere', 'auto elsewhere', 'poll elsewhere'] as const;
type Way = (typeof transports)[number];
const isElsewhere = (way: Way): boolean => way.endsWith('elsewhere');
const transportOf = (way: Way) => way.split(' ')[0] as 'sse' | 'websocket' | 'poll' | 'auto'; // its first word
const exact = millisecondStream(1);
const old = transports.map((_, i) => secondStream(201 + i));
const plain = Array.from({ length: 150 }, (_, i) => secondStream(i + 1));
const nowMs = (): number => Date.now();
const nowSeconds = (): number => Math.floor(nowMs() / 1_000);
let signed: SignedReports;
let service: Service;
let proxy: SpecProxy;
let reader: Credentials;
let second: number;

beforeAll(async () => {
  signed = await createSignedReports('client-live');
  service = await openService(
    [exact, ...old, ...plain].map((feedId) => testStream(feedId)),
    signed.signerSets,
    nowMs,
  );
  proxy = await openSpecProxy(() => service.url, { pageMax: 100 });
  reader = await service.addAccount(['public']);
  second = nowSeconds() - 100_000;
});
afterAll(async () => {
  await proxy?.close();
  await service?.close();
});

/** Seconds that no test has used. */
const nextSecond = (): number => {
  second += 100;
  return second;
};

const open = (
  feedIds: readonly string[],
  way: Way,
  options: StreamOptions = {},
  who: Credentials = reader,
  changes: Partial<ClientOptions> = {},
) => {
  const { url: baseUrl } = isElsewhere(way) ? proxy : service;
  const client = createClient({ baseUrl, ...who, onWarning: () => {}, ...changes });
  const states: StreamState[] = [];
  const reports = client.stream(feedIds, {
    reconnect: { minMs: 10, maxMs: 50 },
    transport: transportOf(way),
    ...options,
    onState: (state) => void states.push(state),
  });
  const take = async (count: number) => {
    const taken = [];
    while (taken.length < count) taken.push((await reports.next()).value);
    return taken;
  };
  return { reports, take, states, live: () => expect.poll(() => reports.state.phase).toBe('live') };
};

test.each(transports)('client stream over %s: a stream in milliseconds has every report', async (way) => {
  const ms = nextSecond() * 1_000;
  const appended = Array.from({ length: 40 }, (_, i) => signed.report(exact, ms + i * 100 - 99, ms + i * 100));
  await service.append(appended.slice(0, 15));
  const { take, reports, live } = open([exact, plain[0] as string], way, { from: ms / 1_000 }); // one for each test
  await live();
  for (const report of appended.slice(15)) await service.append([report]);
  expect((await take(40)).map((report) => report?.fullReport)).toEqual(
    appended.map(({ fullReport }) => `0x${Buffer.from(fullReport).toString('hex')}`),
  );
  reports.close();
});

// Polled one by one, 150 streams take seconds.
const pushing = transports.filter((way) => transportOf(way) !== 'poll');
test.each(pushing)('client stream over %s: more streams than fit into one connection', async (way) => {
  const { take, reports, live } = open(plain, way);
  await live();
  const at = nextSecond();
  await service.append(plain.map((feedId) => signed.report(feedId, at, at)));
  expect((await take(150)).map((report) => report?.feedID).sort()).toEqual(plain);
  reports.close();
});

test.each(transports)(
  'client stream over %s: from before the retention, it starts with the oldest report',
  async (way) => {
    const feedId = old[transports.indexOf(way)] as (typeof old)[number]; // one for each test
    const kept = nowSeconds() - 29 * 86_400;
    await service.append([signed.report(feedId, kept, kept)]);
    const gaps: StreamGap[] = [];
    const from = nowSeconds() - 40 * 86_400;
    const { take, reports } = open([feedId], way, { from, onGap: (gap) => void gaps.push(gap) });
    expect(await take(1)).toMatchObject([{ feedID: feedId, observationsTimestamp: kept }]);
    const at = nextSecond();
    await service.append([signed.report(feedId, at, at)]);
    expect(await take(1)).toMatchObject([{ observationsTimestamp: at }]);
    expect(gaps).toEqual([{ feedId, from, to: expect.any(Number) }]);
    const oldest = nowSeconds() - 30 * 86_400;
    expect(gaps[0]?.to).toBeGreaterThan(oldest - 60);
    expect(gaps[0]?.to).toBeLessThan(oldest + 60);
    reports.close();
  },
);

test.each(transports)('client stream over %s: a clock that is an hour off is corrected once', async (way) => {
  const warned: string[] = [];
  const feedId = plain[3] as (typeof plain)[number]; // one for each test
  const { take, reports, live } = open([feedId], way, { ha: true }, reader, {
    nowMs: () => nowMs() - 3_600_000,
    onWarning: ({ code }) => void warned.push(code),
  });
  await live();
  const at = nextSecond();
  await service.append([signed.report(feedId, at, at)]);
  expect(await take(1)).toMatchObject([{ observationsTimestamp: at }]);
  expect(warned).toEqual(['clock_skew']);
  reports.close();
});

const disabledAt = '2026-01-02T00:00:00.000000Z';
test.each(
  transports.flatMap((way) => [
    [way, 'a disabled account', { disabledAt }, 'unauthorized'] as const,
    [way, 'a stream that may no longer be read', { entitlements: [] }, 'stream_not_accessible'] as const,
  ]),
)('client stream over %s: %s ends it with a typed error', async (way, _, changes, ours) => {
  // A server without codes does not tell the two apart.
  const code = isElsewhere(way) ? 'unauthorized' : ours;
  const who = await service.addAccount(['public']);
  const { reports, live } = open([plain[4] as string], way, {}, who); // one for each test
  await live();
  const next = reports.next();
  const update = ([account]: readonly (Account | undefined)[]) => [{ ...(account as Account), ...changes }]; // there is one
  await Promise.all([
    expect(next).rejects.toMatchObject({ code, status: 401 }),
    service.store.admin.update('account', [who.userId], update, act),
  ]);
  expect(reports.state).toMatchObject({ phase: 'closed', error: { code } });
});

test('client stream over sse: a position of another store is rejected, and nothing is lost', async () => {
  const feedId = plain[5] as (typeof plain)[number]; // one for each test
  const cuts: AbortController[] = [];
  const positions: (string | null)[] = [];
  const cutting: typeof fetch = (url, init) => {
    const headers = new Headers(init?.headers);
    if (!String(url).includes('/reports/stream?')) return fetch(url, init);
    positions.push(headers.get('Last-Event-ID'));
    if (headers.has('Last-Event-ID')) headers.set('Last-Event-ID', '999999999');
    const cut = new AbortController();
    cuts.push(cut);
    return fetch(url, {
      ...init,
      headers,
      signal: AbortSignal.any([cut.signal, ...(init?.signal ? [init.signal] : [])]),
    });
  };
  const { take, reports, live, states } = open([feedId], 'sse', {}, reader, { fetch: cutting });
  await live();
  const at = nextSecond();
  await service.append([signed.report(feedId, at, at)]);
  expect(await take(1)).toMatchObject([{ observationsTimestamp: at }]);
  cuts[0]?.abort();
  await service.append([signed.report(feedId, at + 1, at + 1)]);
  expect(await take(1)).toMatchObject([{ observationsTimestamp: at + 1 }]);
  await expect.poll(() => states.filter(({ phase }) => phase === 'live').length).toBe(2);
  await service.append([signed.report(feedId, at + 2, at + 2)]);
  expect(await take(1)).toMatchObject([{ observationsTimestamp: at + 2 }]);
  expect(positions).toEqual([null, expect.stringMatching(/^[\w-]{22}$/)]);
  reports.close();
});

const program = `
import { createClient } from '@sealpost/client';
const { URL: baseUrl, USER: userId, SECRET: secret, FEED, FROM, TRANSPORT: transport } = process.env;
const open = (secret, options) => createClient({ baseUrl, userId, secret }).stream([FEED], { transport, ...options });
for await (const report of open(secret, { from: Number(FROM) })) {
  console.log(report.observationsTimestamp);
  break;
}
open(secret, { ha: true }).close();
const waiting = open(secret, { onState: ({ phase }) => phase === 'live' && waiting.close() });
console.log((await waiting.next()).done);
await open('wrong').next().catch(({ code }) => console.log(code));
`;

test.each(['sse', 'websocket', 'poll elsewhere'] as const)(
  'client stream over %s: a process whose streams have ended exits by itself',
  async (way) => {
    const feedId = plain[6] as (typeof plain)[number]; // one for each test
    const at = nextSecond();
    await service.append([signed.report(feedId, at, at)]);
    const { url } = isElsewhere(way) ? proxy : service;
    const env = { URL: url, USER: reader.userId, SECRET: reader.secret, FEED: feedId, FROM: String(at) };
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...execArgvForModules, '--input-type=module', '-e', program],
      { cwd: root, env: { PATH: process.env.PATH, ...env, TRANSPORT: transportOf(way) } },
    );
    expect(stdout).toBe(`${at}\ntrue\nunauthorized\n`);
  },
);
