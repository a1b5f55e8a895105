import { expect, test } from 'vitest';
import type { UsageRow, UsageStore } from '../store/store.ts';
import { createUsageCounter, type UsageCounterOptions, usageDay } from './usage.ts';

const noonMs = Date.parse('2025-11-15T12:00:00Z');
const request = (userId: string | null, route: string | null = 'feeds', code: string | null = null) => ({
  kind: 'request',
  userId,
  route,
  code,
});

/** A counter whose store keeps what it is given, or fails while `state.broken`. Only `flush` flushes. */
const open = (options: Partial<UsageCounterOptions> = {}) => {
  const state = { broken: false, nowMs: noonMs };
  const added: UsageRow[][] = [];
  const troubles: string[] = [];
  const usage: UsageStore = {
    add: async (rows) => {
      if (state.broken) throw new Error('disk full');
      added.push([...rows]);
    },
    list: async () => [],
  };
  const counter = createUsageCounter({
    usage,
    nowMs: () => state.nowMs,
    onTrouble: (message) => void troubles.push(message),
    flushEveryMs: 1_000_000,
    ...options,
  });
  return { ...counter, state, added, troubles };
};
const row = (userId: string, requests: number, route = 'feeds', day = '2025-11-15') => ({
  userId,
  day,
  route,
  requests,
});

test('usage: a day is that of UTC', () => {
  expect([usageDay(noonMs), usageDay(noonMs, 15)]).toEqual(['2025-11-15', '2025-10-31']);
  expect(usageDay(Date.parse('2025-11-15T23:59:59.999Z'))).toBe('2025-11-15');
});

test('usage: requests are counted by account, route and day, refused ones too, and stored together', async () => {
  const { observe, flush, state, added } = open();
  for (const code of [null, null, 'report_not_found', 'stream_not_accessible']) observe(request('a', 'reportAt', code));
  observe(request('a', 'feeds'));
  observe(request('b', 'feeds'));
  state.nowMs += 12 * 3_600_000;
  observe(request('b', 'feeds'));
  await flush();
  expect(added).toEqual([[row('a', 4, 'reportAt'), row('a', 1), row('b', 1), row('b', 1, 'feeds', '2025-11-16')]]);
});

test('usage: what is over a limit, not let in, without a route or no request at all counts for nobody', async () => {
  const { observe, flush, added } = open();
  observe(request('a', 'feeds', 'rate_limited'));
  observe(request(null, 'feeds', 'unauthorized'));
  observe(request('a', null, 'route_not_found'));
  observe({ kind: 'warning', code: 'trim_failed' });
  await flush();
  expect(added).toEqual([]);
});

test('usage: counts that cannot be stored are kept and told of once, until storing works again', async () => {
  const { observe, flush, state, added, troubles } = open();
  state.broken = true;
  observe(request('a'));
  await flush();
  observe(request('a'));
  await flush();
  expect(troubles).toEqual(['The usage of accounts could not be stored. It is kept in memory and tried again.']);
  state.broken = false;
  await flush();
  expect(added).toEqual([[row('a', 2)]]);
  state.broken = true;
  observe(request('a'));
  await flush();
  expect(troubles).toHaveLength(2);
});

test('usage: no more is held than there is room for, and that is told', async () => {
  const { observe, stop, added, troubles } = open({ countsMax: 2 });
  for (const user of ['a', 'b', 'c', 'd', 'a']) observe(request(user));
  expect(troubles).toEqual(['More accounts ask than can be counted. Some requests are missing in their usage.']);
  await stop();
  expect(added).toEqual([[row('a', 2), row('b', 1)]]);
});

test('usage: it is stored by itself now and then, and stopping waits for all of it', async () => {
  let arrived = (): void => {};
  const first = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const added: UsageRow[] = [];
  const usage: UsageStore = {
    add: async (rows) => {
      await new Promise((resolve) => setImmediate(resolve));
      added.push(...rows);
      arrived();
    },
    list: async () => [],
  };
  const { observe, stop, flush } = open({ usage, flushEveryMs: 1 });
  observe(request('a'));
  await first;
  observe(request('b'));
  void flush();
  await stop();
  expect(added).toEqual([row('a', 1), row('b', 1)]);
});
