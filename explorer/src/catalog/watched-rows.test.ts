import { signal } from '@preact/signals';
import { type Client, SealpostError, type StreamOptions } from '@sealpost/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLive } from '../state/live-prices.ts';
import type { CatalogState } from '../state/user-catalog.ts';
import { createWatchedRows, nearestTo, patienceMs, restMs } from './watched-rows.ts';

const ids = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => `s${i}`);
const streamsOf = (feedIds: readonly string[]) => feedIds.map((feedId) => ({ feedId }));
const list = streamsOf(ids(2_000));

/** A server that the test plays: every connection is live after 50 ms, every request takes `tookMs`. */
const createServer = ({ tookMs = 50, failure = undefined as Error | undefined, feedIdsMax = 100 } = {}) => {
  const opened: (readonly string[])[] = [];
  const requested: (readonly string[])[] = [];
  let inFlight = 0;
  let inFlightMax = 0;
  const tooMany = new SealpostError('malformed_argument', 'too many', { status: 400, details: { feedIdsMax } });
  const stream = (feedIds: readonly string[], { onState }: StreamOptions = {}) => {
    opened.push(feedIds);
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    setTimeout(() => onState?.({ phase: 'live' }), 50);
    async function* reports() {
      if (feedIds.length > feedIdsMax) throw tooMany;
      await ended;
      yield* [];
    }
    return Object.assign(reports(), { close: end });
  };
  const latestMany = async (feedIds: readonly string[]) => {
    requested.push(feedIds);
    inFlightMax = Math.max(inFlightMax, ++inFlight);
    await new Promise((resolve) => setTimeout(resolve, tookMs));
    inFlight -= 1;
    if (failure !== undefined) throw failure;
    if (feedIds.length > feedIdsMax) throw tooMany;
    return { reports: [], missing: feedIds.map((feedID) => ({ feedID })) };
  };
  const client = { stream, latestMany } as unknown as Client; // what live prices use of it
  const state: CatalogState = { phase: 'ready', streams: [], readable: new Set(ids(2_000)), hidden: new Set() };
  const session = { client: signal(client), userId: signal<string | undefined>('user') };
  const live = createLive(session, { state: signal(state) }, { nowMs: signal(0) });
  return { live, rows: createWatchedRows(live), opened, requested, inFlightMax: () => inFlightMax };
};

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const frameMs = 16;

/** Scrolls by some rows per frame, 16 of them in view, up and down the list. */
const scroll = async (
  rows: ReturnType<typeof createWatchedRows>,
  rowsPerFrame: number,
  ms: number,
): Promise<number> => {
  const turn = list.length - 16;
  let first = 0;
  for (let frame = 0; frame * frameMs < ms; frame += 1) {
    const way = Math.floor(frame * rowsPerFrame) % (2 * turn);
    first = way < turn ? way : 2 * turn - way;
    rows.show({ streams: list, inView: [first, first + 16], watchedMax: 48 });
    await pass(frameMs);
  }
  return first;
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('watched rows: those in view first, then the nearest, as many as allowed', () => {
  const streams = streamsOf(ids(10));
  const nearest = (inView: readonly [number, number], watchedMax: number) =>
    nearestTo({ streams, inView, watchedMax }).join(' ');
  expect(nearest([4, 6], 6)).toBe('s4 s5 s6 s7 s3 s2');
  expect(nearest([0, 2], 6)).toBe('s0 s1 s2 s3 s4 s5');
  expect(nearest([8, 10], 6)).toBe('s8 s9 s7 s6 s5 s4');
  expect(nearest([2, 6], 2)).toBe('s2 s3 s4 s5');
  expect(nearest([0, 10], 100).split(' ')).toHaveLength(10);
});

test('watched rows: scrolling through 2,000 rows at once makes a connection and a request per second', async () => {
  const { live, rows, opened, requested, inFlightMax } = createServer();
  const first = await scroll(rows, 4, 10_000);
  expect(opened.length).toBeLessThanOrEqual(11);
  expect(requested.length).toBeLessThanOrEqual(22);
  await pass(patienceMs);
  expect(inFlightMax()).toBe(1);
  for (const { feedId } of list.slice(first, first + 16)) {
    expect(opened.at(-1)).toContain(feedId);
    expect(live.isCurrent(feedId)).toBe(true);
  }
});

test('watched rows: someone who scrolls slowly and never rests sees live rows', async () => {
  const { live, rows, opened, requested } = createServer();
  const first = await scroll(rows, 0.1, 60_000);
  const current = list.slice(first, first + 16).filter(({ feedId }) => live.isCurrent(feedId));
  expect(current.length).toBeGreaterThan(8);
  // 375 rows, of which a connection has 32 more than are in view.
  expect(opened.length).toBeLessThanOrEqual(26);
  expect(requested.length).toBeLessThanOrEqual(52);
});

test('watched rows: rows that scroll by too fast to read make no connection and no request, and the last ones are live soon after', async () => {
  const { live, rows, opened, requested } = createServer();
  rows.show({ streams: list, inView: [0, 16], watchedMax: 32 });
  for (let first = 0; first < 1_900; first += 10) {
    rows.show({ streams: list, inView: [first, first + 16], watchedMax: 32, isFast: true });
    await pass(frameMs);
  }
  expect([opened, requested]).toEqual([[], []]);
  rows.show({ streams: list, inView: [1_900, 1_916], watchedMax: 32, isFast: false });
  await pass(500);
  expect(opened).toHaveLength(1);
  expect(ids(2_000).slice(1_900, 1_916).every(live.isCurrent)).toBe(true);
});

test('watched rows: a scroll within the rows that are watched, or another order of them, needs neither connection nor request', async () => {
  const { rows, opened, requested } = createServer();
  rows.show({ streams: list, inView: [100, 116], watchedMax: 48 });
  await pass(patienceMs);
  const before = requested.length;
  rows.show({ streams: list, inView: [110, 126], watchedMax: 48 });
  await pass(patienceMs);
  rows.show({ streams: list.slice(84, 132).toReversed(), inView: [0, 16], watchedMax: 48 });
  await pass(patienceMs);
  expect(opened).toHaveLength(1);
  expect(requested).toHaveLength(before);
});

test('watched rows: a row that comes back into view gets its newest report at once, though one is known', async () => {
  const { rows, requested } = createServer();
  rows.show({ streams: list, inView: [0, 16], watchedMax: 16 });
  await pass(patienceMs);
  rows.show({ streams: list, inView: [1_000, 1_016], watchedMax: 16 });
  await pass(60_000);
  requested.length = 0;
  rows.show({ streams: list, inView: [0, 16], watchedMax: 16 });
  await pass(restMs + 10);
  expect(requested.flat()).toEqual(ids(16));
});

test('watched rows: streams out of view are loaded again only when they are old, and after those in view', async () => {
  const { live, rows, requested } = createServer();
  live.refresh(ids(2_000));
  await pass(10_000);
  expect(requested.map(({ length }) => length)).toEqual(Array.from({ length: 20 }, () => 100));
  live.refresh(ids(2_000).slice(1_900)); // still current
  await pass(100);
  expect(requested).toHaveLength(20);
  await pass(20_000);
  live.refresh(ids(2_000));
  rows.show({ streams: list, inView: [1_900, 1_916], watchedMax: 16 });
  await pass(restMs + 10);
  expect(requested.at(-1)).toEqual(ids(2_000).slice(1_900, 1_916));
  expect(requested).toHaveLength(22);
  await pass(20_000);
  expect(requested.slice(20).flat().length).toBeLessThanOrEqual(2_000 + 16);
  expect(ids(2_000).slice(100, 200).every(live.isCurrent)).toBe(false); // loaded 18 s ago
});

test('watched rows: a server that fails, or answers after 5 s, gets few requests, however one scrolls', async () => {
  const failing = createServer({ failure: new Error('gone') });
  await scroll(failing.rows, 4, 20_000);
  expect(failing.requested.length).toBeLessThanOrEqual(11);
  const slow = createServer({ tookMs: 5_000 });
  await scroll(slow.rows, 4, 20_000);
  expect(slow.requested.length).toBeLessThanOrEqual(5);
  expect(slow.inFlightMax()).toBe(1);
});

test('watched rows: a server that allows fewer streams per connection and request gets as many as it allows', async () => {
  const { live, rows, opened } = createServer({ feedIdsMax: 20 });
  rows.show({ streams: list, inView: [0, 16], watchedMax: 48 });
  await pass(3_000);
  expect(opened.map(({ length }) => length)).toEqual([48, 20]);
  expect(opened[1]?.slice(0, 16)).toEqual(ids(16));
  expect(live.state.value).toBe('live');
  expect(live.problem.value).toBeUndefined();
  expect(ids(48).every(live.isCurrent)).toBe(true);
});

test('watched rows: nothing is watched or requested after the list is closed', async () => {
  const { rows, opened, requested } = createServer();
  rows.show({ streams: list, inView: [0, 16], watchedMax: 48 });
  rows.close();
  await pass(10_000);
  expect([opened, requested]).toEqual([[], []]);
});
