// The client's stream against the real service, whose clock tests set: exact streams, many streams, old moments, wrong clocks, ended keys.
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
import type { Account } from '../server/src/store/store.ts';
import { act, testStream } from './door.ts';
import { type Credentials, openService, type Service } from './running-api.ts';
import { createSignedReports, millisecondStream, type SignedReports, secondStream } from './signed-reports.ts';
import { root } from './source-tree.ts';

const transports = ['sse', 'websocket'] as const;
const exact = millisecondStream(1);
const old = [secondStream(201), secondStream(202)] as const;
const plain = Array.from({ length: 150 }, (_, i) => secondStream(i + 1));
const nowMs = (): number => Date.now();
const nowSeconds = (): number => Math.floor(nowMs() / 1_000);
let signed: SignedReports;
let service: Service;
let reader: Credentials;
let second: number;

beforeAll(async () => {
  signed = await createSignedReports('client-live');
  service = await openService(
    [exact, ...old, ...plain].map((feedId) => testStream(feedId)),
    signed.signerSets,
    nowMs,
  );
  reader = await service.addAccount(['public']);
  second = nowSeconds() - 100_000;
});
afterAll(() => service?.close());

/** Seconds that no test has used. */
const nextSecond = (): number => {
  second += 100;
  return second;
};

const open = (
  feedIds: readonly string[],
  options: StreamOptions = {},
  who: Credentials = reader,
  changes: Partial<ClientOptions> = {},
) => {
  const client = createClient({ baseUrl: service.url, ...who, onWarning: () => {}, ...changes });
  const states: StreamState[] = [];
  const reports = client.stream(feedIds, {
    reconnect: { minMs: 10, maxMs: 50 },
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

test.each(transports)('client stream over %s: a stream of milliseconds has every report', async (transport) => {
  const ms = nextSecond() * 1_000;
  const appended = Array.from({ length: 40 }, (_, i) => signed.report(exact, ms + i * 100 - 99, ms + i * 100));
  await service.append(appended.slice(0, 15));
  const { take, reports, live } = open([exact, plain[0] as string], { transport, from: ms / 1_000 });
  await live();
  for (const report of appended.slice(15)) await service.append([report]);
  expect((await take(40)).map((report) => report?.fullReport)).toEqual(
    appended.map(({ fullReport }) => `0x${Buffer.from(fullReport).toString('hex')}`),
  );
  reports.close();
});

test.each(transports)('client stream over %s: more streams than one connection takes', async (transport) => {
  const { take, reports, live } = open(plain, { transport });
  await live();
  const at = nextSecond();
  await service.append(plain.map((feedId) => signed.report(feedId, at, at)));
  expect((await take(150)).map((report) => report?.feedID).sort()).toEqual(plain);
  reports.close();
});

test.each(transports)(
  'client stream over %s: from before what is kept, it goes on with the oldest',
  async (transport) => {
    const feedId = old[transport === 'sse' ? 0 : 1];
    const kept = nowSeconds() - 29 * 86_400;
    await service.append([signed.report(feedId, kept, kept)]);
    const gaps: StreamGap[] = [];
    const from = nowSeconds() - 40 * 86_400;
    const { take, reports } = open([feedId], { transport, from, onGap: (gap) => void gaps.push(gap) });
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

test.each(transports)('client stream over %s: a clock that is an hour off is corrected once', async (transport) => {
  const warned: string[] = [];
  const { take, reports, live } = open([plain[3] as string], { transport, ha: true }, reader, {
    nowMs: () => nowMs() - 3_600_000,
    onWarning: ({ code }) => void warned.push(code),
  });
  await live();
  const at = nextSecond();
  await service.append([signed.report(plain[3] as (typeof plain)[number], at, at)]);
  expect(await take(1)).toMatchObject([{ observationsTimestamp: at }]);
  expect(warned).toEqual(['clock_skew']);
  reports.close();
});

const disabledAt = '2026-01-02T00:00:00.000000Z';
test.each(
  transports.flatMap((transport) => [
    [transport, 'a disabled account', { disabledAt }, 'unauthorized'] as const,
    [transport, 'a stream that may no longer be read', { entitlements: [] }, 'stream_not_accessible'] as const,
  ]),
)('client stream over %s: %s ends it with a typed error', async (transport, _, changes, code) => {
  const who = await service.addAccount(['public']);
  const { reports, live } = open([plain[4] as string], { transport }, who);
  await live();
  const next = reports.next();
  const update = ([account]: readonly (Account | undefined)[]) => [{ ...(account as Account), ...changes }];
  await Promise.all([
    expect(next).rejects.toMatchObject({ code, status: 401 }),
    service.store.admin.update('account', [who.userId], update, act),
  ]);
  expect(reports.state).toMatchObject({ phase: 'closed', error: { code } });
});

test('client stream over sse: a position of another store is missed, and nothing is lost', async () => {
  const feedId = plain[5] as (typeof plain)[number];
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
  const { take, reports, live, states } = open([feedId], { transport: 'sse' }, reader, { fetch: cutting });
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
  expect(positions).toEqual([null, expect.stringMatching(/^\d+$/)]);
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

test.each(transports)(
  'client stream over %s: a process whose streams have ended exits by itself',
  async (transport) => {
    const feedId = plain[6] as (typeof plain)[number];
    const at = nextSecond();
    await service.append([signed.report(feedId, at, at)]);
    const env = { URL: service.url, USER: reader.userId, SECRET: reader.secret, FEED: feedId, FROM: String(at) };
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--conditions=source', '--import', 'tsx', '--input-type=module', '-e', program],
      { cwd: root, env: { PATH: process.env.PATH, ...env, TRANSPORT: transport } },
    );
    expect(stdout).toBe(`${at}\ntrue\nunauthorized\n`);
  },
);
