import { expect, test } from 'vitest';
import {
  createLimitExchange,
  createSharedLimiter,
  createSharedLimiters,
  type SharedLimiter,
} from './limit-exchange.ts';

const exchangeEveryMs = 50;
const passOnMs = 10;

/** Workers with one limit, on a clock that the test moves millisecond by millisecond. */
const openWorkers = (count: number) => {
  const exchange = createLimitExchange(100);
  const workers = new Map<number, SharedLimiter>();
  let nowMs = 0;
  const start = (id: number): void => {
    const worker = createSharedLimiter(100);
    worker.receive(exchange.join(id, nowMs), nowMs);
    workers.set(id, worker);
  };
  for (let id = 0; id < count; id++) start(id);
  return {
    workers,
    exchange,
    start,
    /** One millisecond: workers tell at moments of their own, what was told is passed on a little later. */
    step: (): void => {
      nowMs += 1;
      for (const [id, worker] of workers)
        if ((nowMs + id * 13) % exchangeEveryMs === 0) exchange.tell(id, worker.drain(), nowMs);
      if (nowMs % passOnMs === 0) for (const [id, worker] of workers) worker.receive(exchange.collect(id), nowMs);
    },
    take: (id: number, limit: number): boolean => workers.get(id)?.take('key', limit, nowMs).allowed ?? false,
  };
};

/** How many of `offered` requests a second are let through in each of two minutes, spread over the workers in turn. */
const twoMinutes = (count: number, limit: number, offered: number): readonly [number, number] => {
  const { step, take } = openWorkers(count);
  const accepted: [number, number] = [0, 0];
  let sent = 0;
  for (let ms = 0; ms < 120_000; ms++) {
    for (; sent * 1_000 < (ms + 1) * offered; sent++) if (take(sent % count, limit)) accepted[ms < 60_000 ? 0 : 1] += 1;
    step();
  }
  return accepted;
};

const within1Percent = (value: number, expected: number): void => {
  expect(value).toBeGreaterThanOrEqual(expected * 0.99);
  expect(value).toBeLessThanOrEqual(expected * 1.01);
};

test.each([
  [2, 10, 20],
  [4, 10, 20],
  [4, 10, 11],
  [4, 10, 2_000],
  [3, 100, 250],
  [4, 1_000, 4_000],
])(
  'limit exchange: %i workers with a limit of %i give it at %i a second, within 1 % in every minute',
  (count, limit, offered) => {
    const [first, second] = twoMinutes(count, limit, offered);
    within1Percent(first, limit * 61); // the first minute begins with a full bucket
    within1Percent(second, limit * 60);
  },
);

test('limit exchange: requests below the limit are never rejected, whichever worker gets them', () => {
  const [first, second] = twoMinutes(4, 10, 9);
  expect([first, second]).toEqual([540, 540]);
});

test('limit exchange: a burst over all workers is repaid before more is granted', () => {
  const { step, take } = openWorkers(4);
  const burst = [0, 1, 2, 3].map((id) => Array.from({ length: 20 }, () => take(id, 10)).filter(Boolean).length);
  expect(burst).toEqual([10, 10, 10, 10]);
  const acceptedAt: number[] = [];
  for (let ms = 0; ms < 4_000; ms++) {
    if (take(ms % 4, 10)) acceptedAt.push(ms);
    step();
  }
  expect(acceptedAt[0]).toBeGreaterThanOrEqual(3_000); // 30 tokens too many, at 10 a second
});

test('limit exchange: a replacement worker starts with the state of the others', () => {
  const { step, take, workers, exchange, start } = openWorkers(2);
  for (let i = 0; i < 10; i++) take(0, 10);
  for (let ms = 0; ms < 60; ms++) step();
  workers.delete(1);
  exchange.leave(1);
  start(2);
  expect(take(2, 10)).toBe(false);
  for (let ms = 0; ms < 100; ms++) step();
  expect(take(2, 10)).toBe(true);
});

test('limit exchange: unlimited keys are not exchanged, and no process gets its own counts', () => {
  const { workers, exchange } = openWorkers(2);
  workers.get(0)?.take('free', 0, 0);
  workers.get(0)?.take('key', 10, 0);
  workers.get(0)?.take('key', 10, 0);
  const spent = workers.get(0)?.drain() ?? [];
  expect(spent).toEqual([['key', 10, 2]]);
  exchange.tell(0, spent, 0);
  expect(exchange.collect(0)).toEqual([]);
  expect(exchange.collect(1)).toEqual([['key', 10, 2]]);
  expect(exchange.collect(1)).toEqual([]);
});

test('limit exchange: what was granted is counted by key, with its cost and the newest limit, up to a number of keys', () => {
  const { take, drain } = createSharedLimiter(2);
  take('a', 10, 0, 3);
  take('a', 20, 0);
  take('b', 1, 0);
  take('b', 1, 0); // rejected
  take('c', 10, 0);
  expect(drain()).toEqual([
    ['a', 20, 4],
    ['b', 1, 1],
  ]);
  expect(drain()).toEqual([]);
});

test('limit exchange: accounts and addresses are exchanged apart', () => {
  const { limiters, drain, receive } = createSharedLimiters();
  limiters.accounts.take('a', 10, 0);
  limiters.addresses.take('b', 10, 0);
  expect(drain()).toEqual({ accounts: [['a', 10, 1]], addresses: [['b', 10, 1]] });
  receive({ accounts: [['c', 1, 2]], addresses: [['d', 1, 2]] });
  const allowed = (table: 'accounts' | 'addresses'): readonly boolean[] =>
    ['c', 'd'].map((key) => limiters[table].state(key, 1, performance.now()).allowed);
  expect([allowed('accounts'), allowed('addresses')]).toEqual([
    [false, true],
    [true, false],
  ]);
  expect(drain()).toEqual({ accounts: [], addresses: [] });
});

test('limit exchange: who has left, or never joined, is told nothing', () => {
  const exchange = createLimitExchange(10);
  expect(exchange.join(1, 0)).toEqual([]);
  exchange.join(2, 0);
  exchange.tell(1, [['a', 10, 4]], 0);
  exchange.leave(2);
  expect([exchange.collect(2), exchange.collect(3)]).toEqual([[], []]);
  expect(exchange.join(2, 100)).toEqual([['a', 10, 3]]);
  expect(exchange.collect(2)).toEqual([]);
});
