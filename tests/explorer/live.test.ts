// The explorer's live prices against the real service: one connection, first values, past reports, changes of what is watched, sign-out.
import { type Signal, signal } from '@preact/signals';
import { createClient } from '@sealpost/client';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createLive, type LiveReport, planOf } from '../../explorer/src/state/live-prices.ts';
import type { CatalogState } from '../../explorer/src/state/user-catalog.ts';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, millisecondStream, type SignedReports, secondStream } from '../support/signed-reports.ts';

const [a, b, slow, empty] = [secondStream(1), secondStream(2), secondStream(3), secondStream(4)];
const exact = millisecondStream(5);
const streams = [a, b, slow, empty, exact];
let signed: SignedReports;
let service: Service;
let reader: Credentials;

beforeAll(async () => {
  signed = await createSignedReports('explorer-live');
  service = await openService(
    streams.map((feedId) => testStream(feedId)),
    signed.signerSets,
    () => Date.now(),
  );
  reader = await service.addAccount(['public']);
});
afterAll(() => service?.close());

const now = (): number => Math.floor(Date.now() / 1_000);
const secondsOf = (reports: readonly LiveReport[]): readonly number[] =>
  reports.map(({ report }) => report.observationsTimestamp);

const opened: Signal<string | undefined>[] = [];
afterEach(() => {
  // Signing out closes what a test has left open.
  for (const userId of opened.splice(0)) userId.value = undefined;
});

const openLive = (readable: readonly string[] = streams, { url } = service, account = reader) => {
  const userId = signal<string | undefined>(account.userId);
  opened.push(userId);
  const asked: string[] = [];
  const observedFetch: typeof fetch = (input, init) => {
    asked.push(String(input));
    return fetch(input, init);
  };
  const client = signal(createClient({ baseUrl: url, ...account, fetch: observedFetch, onWarning: () => {} }));
  const state: CatalogState = { phase: 'ready', streams: [], readable: new Set(readable), hidden: new Set() };
  const session = { client, userId, rateLimit: signal(undefined) };
  return { live: createLive(session, { state: signal(state) }, { nowMs: signal(Date.now()) }), userId, asked };
};

const isLive = (live: ReturnType<typeof createLive>) => expect.poll(() => live.state.value).toBe('live');

test('live: past reports come first, then live ones, each once and in order', async () => {
  const start = now() - 60;
  await service.append([0, 1, 2].map((i) => signed.report(a, start + i, start + i)));
  const { live } = openLive();
  const told: LiveReport[] = [];
  live.watch([a], (report) => told.push(report), start + 1);
  await isLive(live);
  await service.append([3, 4].map((i) => signed.report(a, start + i, start + i)));
  await expect.poll(() => secondsOf(told)).toEqual([1, 2, 3, 4].map((i) => start + i));
  await expect.poll(() => live.latest(a).value?.report.observationsTimestamp).toBe(start + 4);
  expect(live.intervalMs(a).value).toBe(1_000);
});

test('live: a stream in milliseconds has every report of a second', async () => {
  const startMs = (now() - 30) * 1_000;
  const at = (i: number) => signed.report(exact, startMs + i * 250, startMs + i * 250 + 249);
  await service.append([0, 1, 2].map(at));
  const { live } = openLive();
  const told: number[] = [];
  live.watch([exact], ({ observationsMs }) => told.push(observationsMs - startMs), startMs / 1_000);
  await isLive(live);
  await service.append([3, 4, 5].map(at));
  await expect.poll(() => told).toEqual([249, 499, 749, 999, 1_249, 1_499]);
  expect(live.intervalMs(exact).value).toBe(250);
});

test('live: 25 reports per second are shown a few times a second, the last one too, and every one is delivered', async () => {
  const startMs = (now() - 20) * 1_000;
  const { live } = openLive();
  const told: number[] = [];
  live.watch([exact], ({ observationsMs }) => told.push(observationsMs - startMs), startMs / 1_000);
  await isLive(live);
  const startedMs = performance.now();
  let shown = 0;
  const stop = live.latest(exact).subscribe(() => {
    shown += 1;
  });
  const count = 50;
  await service.append(
    Array.from({ length: count }, (_, i) => signed.report(exact, startMs + i * 40, startMs + i * 40 + 39)),
  );
  await expect.poll(() => told).toEqual(Array.from({ length: count }, (_, i) => i * 40 + 39));
  await expect.poll(() => live.latest(exact).value?.observationsMs).toBe(startMs + count * 40 - 1);
  expect(shown).toBeLessThanOrEqual(2 + (performance.now() - startedMs) / 190); // however long they took to arrive
  expect(live.intervalMs(exact).value).toBe(40);
  stop();
});

test('live: streams that come into view get a value at once, slow ones too', async () => {
  const start = now() - 50;
  await service.append([signed.report(b, start, start), signed.report(slow, start - 600, start - 300)]);
  const { live } = openLive();
  live.watch([b, slow, empty]);
  await expect.poll(() => live.latest(slow).value?.report.observationsTimestamp).toBe(start - 300);
  expect(live.latest(b).value?.report.observationsTimestamp).toBe(start);
  expect(live.latest(empty).value).toBeUndefined();
});

test('live: watching more streams loses and repeats no report', async () => {
  const start = now() - 40;
  const { live } = openLive();
  const told: LiveReport[] = [];
  live.watch([a], (report) => told.push(report), start);
  await isLive(live);
  await service.append([signed.report(a, start, start)]);
  live.watch([b, exact]);
  // Reports arrive while connections change: until the new connection delivers those of b.
  let last = start;
  while (last < start + 10 || live.latest(b).value?.report.observationsTimestamp !== last) {
    last += 1;
    await service.append([signed.report(a, last, last), signed.report(b, last, last)]);
    await expect.poll(() => secondsOf(told).at(-1)).toBe(last);
  }
  expect(secondsOf(told)).toEqual(Array.from({ length: last - start + 1 }, (_, i) => start + i));
});

test('live: streams that may not be read are skipped, and anonymous users send no request', async () => {
  const anonymous = openLive();
  anonymous.userId.value = undefined;
  anonymous.asked.length = 0;
  anonymous.live.watch([a, b]);
  const { live, asked } = openLive([b]);
  live.watch([a, b]);
  await isLive(live);
  expect(asked.some((url) => url.includes(b))).toBe(true);
  expect(asked.filter((url) => url.includes(a))).toEqual([]);
  expect(anonymous.live.state.value).toBe('off');
  expect(anonymous.asked).toEqual([]);
});

test('live: a server that allows fewer streams per connection than wanted delivers those watched last', async () => {
  const few = await openService(
    streams.map((feedId) => testStream(feedId)),
    signed.signerSets,
    () => Date.now(),
    { feedIdsMax: 2 },
  );
  try {
    const { live, userId } = openLive(streams, few, await few.addAccount(['public']));
    live.watch([slow, a, b]);
    await isLive(live);
    await few.append([signed.report(a, now(), now())]);
    await expect.poll(() => live.latest(a).value).toBeDefined();
    expect(live.problem.value).toBeUndefined();
    userId.value = undefined;
  } finally {
    await few.close();
  }
});

test('live: signing out closes the connection and forgets the prices', async () => {
  const { live, userId } = openLive();
  live.watch([b]);
  await isLive(live);
  await expect.poll(() => live.latest(b).value).toBeDefined();
  const ended = service.liveEvents.filter(({ kind }) => kind === 'liveEnded').length;
  userId.value = undefined;
  expect(live.state.value).toBe('off');
  expect(live.latest(b).value).toBeUndefined();
  await expect.poll(() => service.liveEvents.filter(({ kind }) => kind === 'liveEnded').length).toBeGreaterThan(ended);
});

test('live plan: most recently watched first, up to the limit of a connection', () => {
  const ids = Array.from({ length: 150 }, (_, i) => `s${i}`);
  const watch = (feedIds: readonly string[]) => ({ feedIds, onReport: undefined, lastMs: new Map<string, number>() });
  const { feedIds } = planOf([watch(ids), watch(['s149', 'unreadable'])], new Set(ids));
  expect(feedIds).toHaveLength(100);
  expect(feedIds.slice(0, 2)).toEqual(['s149', 's0']);
});

test('live plan: a new connection starts where the slowest watch is', () => {
  const listen = (feedId: string, lastMs: number) => ({
    feedIds: [feedId],
    onReport: () => {},
    lastMs: new Map([[feedId, lastMs]]),
  });
  const watches = [listen('a', 9_000), listen('b', 5_999), listen('c', 1_000)];
  expect(planOf(watches, new Set(['a', 'b']))).toEqual({ feedIds: ['b', 'a'], from: 5 });
  expect(
    planOf([{ ...listen('a', 9_000), onReport: undefined, lastMs: new Map() }], new Set(['a'])).from,
  ).toBeUndefined();
});
