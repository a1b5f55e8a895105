import { expect, test } from 'vitest';
import type { SecretUse, UsageRow, UsageStore } from '../store/store.ts';
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
  const used: SecretUse[][] = [];
  const troubles: string[] = [];
  const usage: UsageStore = {
    add: async (rows, uses = []) => {
      if (state.broken) throw new Error('disk full');
      if (rows.length > 0) added.push([...rows]);
      if (uses.length > 0) used.push([...uses]);
    },
    list: async () => [],
    lastUses: async () => [],
  };
  const counter = createUsageCounter({
    usage,
    nowMs: () => state.nowMs,
    onTrouble: (message) => void troubles.push(message),
    flushEveryMs: 1_000_000,
    ...options,
  });
  return { ...counter, state, added, used, troubles };
};
const row = (userId: string, requests: number, route = 'feeds', day = '2025-11-15') => ({
  userId,
  day,
  route,
  requests,
});

test('usage: days are in UTC', () => {
  expect([usageDay(noonMs), usageDay(noonMs, 15)]).toEqual(['2025-11-15', '2025-10-31']);
  expect(usageDay(Date.parse('2025-11-15T23:59:59.999Z'))).toBe('2025-11-15');
});

test('usage: requests are counted by account, route and day, rejected ones too, and stored together', async () => {
  const { observe, flush, state, added } = open();
  for (const code of [null, null, 'report_not_found', 'stream_not_accessible']) observe(request('a', 'reportAt', code));
  observe(request('a', 'feeds'));
  observe(request('b', 'feeds'));
  state.nowMs += 12 * 3_600_000;
  observe(request('b', 'feeds'));
  await flush();
  expect(added).toEqual([[row('a', 4, 'reportAt'), row('a', 1), row('b', 1), row('b', 1, 'feeds', '2025-11-16')]]);
});

test('usage: requests over a limit, not authenticated or without a route do not count', async () => {
  const { observe, flush, added } = open();
  observe(request('a', 'feeds', 'rate_limited'));
  observe(request(null, 'feeds', 'unauthorized'));
  observe(request('a', null, 'route_not_found'));
  observe({ kind: 'warning', code: 'trim_failed' });
  await flush();
  expect(added).toEqual([]);
});

test('usage: counts that cannot be stored are kept, with one warning until storing works again', async () => {
  const { observe, flush, state, added, troubles } = open();
  state.broken = true;
  observe(request('a'));
  await flush();
  observe(request('a'));
  await flush();
  expect(troubles).toEqual(['The usage of accounts could not be stored. It is kept in memory and retried.']);
  state.broken = false;
  await flush();
  expect(added).toEqual([[row('a', 2)]]);
  state.broken = true;
  observe(request('a'));
  await flush();
  expect(troubles).toHaveLength(2);
});

test('usage: that there are too many accounts does not hide that counts cannot be stored, and is reported once for as long as it lasts', async () => {
  const { observe, flush, state, troubles } = open({ countsMax: 1 });
  const tooMany = 'Too many accounts to count. Some requests are missing from usage.';
  const overflow = () => {
    for (const user of ['a', 'b']) observe(request(user));
  };
  for (let i = 0; i < 5; i += 1) {
    overflow();
    await flush();
  }
  expect(troubles).toEqual([tooMany]);
  state.broken = true;
  overflow();
  await flush();
  expect(troubles.slice(1)).toEqual(['The usage of accounts could not be stored. It is kept in memory and retried.']);
  state.broken = false;
  await flush();
  await flush();
  overflow();
  expect(troubles.slice(2)).toEqual([tooMany]);
});

test('usage: counts in memory are bounded, with a warning beyond the bound', async () => {
  const { observe, stop, added, troubles } = open({ countsMax: 2 });
  for (const user of ['a', 'b', 'c', 'd', 'a']) observe(request(user));
  expect(troubles).toEqual(['Too many accounts to count. Some requests are missing from usage.']);
  await stop();
  expect(added).toEqual([[row('a', 2), row('b', 1)]]);
});

test('usage: counts are stored periodically, and stopping waits until all are', async () => {
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
    lastUses: async () => [],
  };
  const { observe, stop, flush } = open({ usage, flushEveryMs: 1 });
  observe(request('a'));
  await first;
  observe(request('b'));
  void flush();
  await stop();
  expect(added).toEqual([row('a', 1), row('b', 1)]);
});

const use = (secretId: string, minutes: number) => ({ userId: 'a', secretId, usedAtMs: noonMs + minutes * 60_000 });

test('usage: the last use of a secret is stored by the minute, once a minute however often it signs', async () => {
  const { noteSecret, flush, used } = open();
  for (const ms of [0, 1, 59_999]) noteSecret('a', 's1', noonMs + ms);
  noteSecret('a', 's2', noonMs + 30_000);
  await flush();
  noteSecret('a', 's1', noonMs + 59_999);
  await flush();
  noteSecret('a', 's1', noonMs + 60_000);
  await flush();
  expect(used).toEqual([[use('s1', 0), use('s2', 0)], [use('s1', 1)]]);
});

test('usage: the last use of a secret that could not be stored is stored later, and a later one replaces it', async () => {
  const { noteSecret, flush, state, used } = open();
  state.broken = true;
  noteSecret('a', 's1', noonMs);
  noteSecret('a', 's2', noonMs);
  await flush();
  noteSecret('a', 's1', noonMs + 120_000);
  await flush();
  state.broken = false;
  await flush();
  expect(used.flat().sort((a, b) => (a.secretId < b.secretId ? -1 : 1))).toEqual([use('s1', 2), use('s2', 0)]);
});

test('usage: a secret is in use for as long as a connection that it opened is open', async () => {
  const connections = [
    { userId: 'a', secretId: 's1' },
    { userId: 'a', secretId: undefined },
  ];
  const { flush, state, used } = open({ secretsInUse: () => connections });
  await flush();
  await flush();
  state.nowMs = noonMs + 60_000;
  await flush();
  connections.length = 0;
  state.nowMs = noonMs + 120_000;
  await flush();
  expect(used).toEqual([[use('s1', 0)], [use('s1', 1)]]);
});
