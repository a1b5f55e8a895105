import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { NodeExchange } from '../store/nodes.ts';
import { createSharedLimiter, type SpentByTable } from './limit-exchange.ts';
import { createLimitSharing, exchangeEveryMs } from './node-limits.ts';
import type { SpentTokens } from './rate-limit.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Messages that every node gets once, in memory. */
const createPost = () => {
  const boxes = new Map<number, Uint8Array[]>();
  const join = (id: number): NodeExchange => {
    boxes.set(id, []);
    return {
      exchange: async (told) => {
        if (told !== undefined) for (const [other, box] of boxes) if (other !== id) box.push(told);
        return boxes.get(id)?.splice(0) ?? [];
      },
    };
  };
  return { join };
};

const silence: NodeExchange = { exchange: async () => [] };

/** Requests that nodes allow in a minute, when each is asked for all of the limit twice over. */
const allowedInAMinute = async (exchanges: readonly NodeExchange[], limit: number): Promise<number> => {
  const nodes = exchanges.map((exchange) => {
    const [accounts, addresses] = [createSharedLimiter(100), createSharedLimiter(100)];
    const stop = createLimitSharing(exchange, () => {})({
      collect: () => ({ accounts: accounts.drain(), addresses: addresses.drain() }),
      receive: (spent) => {
        accounts.receive(spent.accounts, performance.now());
        addresses.receive(spent.addresses, performance.now());
      },
    });
    return { accounts, stop };
  });
  const offeredEveryMs = 1_000 / (2 * limit);
  let allowed = 0;
  for (let ms = 0; ms < 60_000; ms += offeredEveryMs) {
    for (const { accounts } of nodes)
      if (accounts.take('latest someone', limit, performance.now()).allowed) allowed += 1;
    await vi.advanceTimersByTimeAsync(offeredEveryMs);
  }
  for (const { stop } of nodes) await stop();
  return allowed;
};

const limit = 20;
/** What one node alone allows: the rate, and the bucket that was full at first. */
const rightful = limit * 61;

test.each([2, 5])('node limits: %i nodes allow together what one may, within a tenth', async (count) => {
  const post = createPost();
  const allowed = await allowedInAMinute(
    Array.from({ length: count }, (_, i) => post.join(i)),
    limit,
  );
  expect(allowed).toBeGreaterThan(rightful * 0.9);
  expect(allowed).toBeLessThan(rightful * 1.1);
});

test('node limits: control: nodes that do not exchange each allow the whole limit', async () => {
  expect(await allowedInAMinute([silence, silence], limit)).toBeGreaterThan(rightful * 1.9);
});

test('node limits: a failing exchange is reported once until one works, and its counts are dropped', async () => {
  const told: (string | undefined)[] = [];
  let isAway = true;
  const nodes: NodeExchange = {
    exchange: async (news) => {
      if (isAway) throw new Error('away');
      told.push(news && Buffer.from(news).toString());
      return [];
    },
  };
  const troubles: string[] = [];
  const limiter = createSharedLimiter(10);
  const stop = createLimitSharing(nodes, (_, error) => troubles.push(String(error)))({
    collect: () => ({ accounts: limiter.drain(), addresses: [] }),
    receive: () => {},
  });
  limiter.take('during', 10, 0);
  await vi.advanceTimersByTimeAsync(3 * exchangeEveryMs);
  expect(troubles).toEqual(['Error: away']);
  isAway = false;
  limiter.take('after', 10, 0);
  await vi.advanceTimersByTimeAsync(2 * exchangeEveryMs);
  expect(told).toEqual(['{"accounts":[["after",10,1]],"addresses":[]}', undefined]);
  isAway = true;
  await vi.advanceTimersByTimeAsync(exchangeEveryMs);
  expect(troubles).toHaveLength(2);
  await stop();
});

test('node limits: tokens granted while an exchange was stuck are dropped, not published later', async () => {
  const told: (string | undefined)[] = [];
  let release = (): void => {};
  let stuck: Promise<void> | undefined = new Promise((resolve) => {
    release = resolve;
  });
  const nodes: NodeExchange = {
    exchange: async (news) => {
      told.push(news && Buffer.from(news).toString());
      await stuck;
      return [];
    },
  };
  const limiter = createSharedLimiter(10);
  const stop = createLimitSharing(nodes, () => {})({
    collect: () => ({ accounts: limiter.drain(), addresses: [] }),
    receive: () => {},
  });
  await vi.advanceTimersByTimeAsync(exchangeEveryMs);
  for (let second = 0; second < 20; second += 1) {
    limiter.take('meanwhile', 10, performance.now());
    await vi.advanceTimersByTimeAsync(1_000);
  }
  stuck = undefined;
  release();
  await vi.advanceTimersByTimeAsync(exchangeEveryMs);
  limiter.take('after', 10, performance.now());
  await vi.advanceTimersByTimeAsync(exchangeEveryMs);
  expect(told).toEqual([undefined, undefined, '{"accounts":[["after",10,1]],"addresses":[]}']);
  await stop();
});

test('node limits: values of another release that this one does not understand are ignored', async () => {
  const strange = { accounts: [['a', 10, 1], ['b', '10', 1], ['c', 10, -1], 'd', null, [7, 1, 1]], sockets: [1] };
  const heard: unknown[] = [];
  const nodes: NodeExchange = { exchange: async () => [Buffer.from(JSON.stringify(strange))] };
  const stop = createLimitSharing(nodes, () => {})({
    collect: () => ({ accounts: [], addresses: [] }),
    receive: (spent) => heard.push(spent),
  });
  await vi.advanceTimersByTimeAsync(exchangeEveryMs);
  await stop();
  expect(heard).toEqual([{ accounts: [['a', 10, 1]], addresses: [] }]);
});

/** What a node publishes of these counts, and what it takes of what others published. */
const exchangeOnce = async (spent: SpentByTable, told: unknown = { accounts: [], addresses: [] }) => {
  const sent: unknown[] = [];
  const received: SpentByTable[] = [];
  const nodes: NodeExchange = {
    exchange: async (news) => {
      sent.push(news && JSON.parse(Buffer.from(news).toString()));
      return [Buffer.from(JSON.stringify(told))];
    },
  };
  const stop = createLimitSharing(nodes, (message) => sent.push(message))({
    collect: () => spent,
    receive: (one) => received.push(one),
  });
  await vi.advanceTimersByTimeAsync(exchangeEveryMs);
  await stop();
  return { sent, received };
};

test('node limits: either table alone is published, each up to 10,000 buckets', async () => {
  const rows = Array.from({ length: 10_001 }, (_, i): SpentTokens => [`k${i}`, 10, 1]);
  const [one] = rows;
  expect((await exchangeOnce({ accounts: [], addresses: rows.slice(0, 1) })).sent).toEqual([
    { accounts: [], addresses: [one] },
  ]);
  const { sent } = await exchangeOnce({ accounts: rows, addresses: rows });
  expect(sent).toEqual([{ accounts: rows.slice(0, 10_000), addresses: rows.slice(0, 10_000) }]);
});

test('node limits: amounts above zero and up to a billion count, in both tables', async () => {
  const good = [
    ['a', 1e9, 1],
    ['b', 0.1, 1e9],
  ];
  const bad = [
    ['c', 0, 1],
    ['d', 1, 0],
    ['e', 1e9 + 1, 1],
    ['f', 1, 1e9 + 1],
    ['g', 1],
    ['h', 1, '1'],
    { 0: 'i', 1: 1, 2: 1 },
  ];
  const { received } = await exchangeOnce(
    { accounts: [], addresses: [] },
    { accounts: [...bad, ...good], addresses: [...good, ...bad] },
  );
  expect(received).toEqual([{ accounts: good, addresses: good }]);
});

test('node limits: the message says what follows, and a stop waits for the exchange under way', async () => {
  const troubles: string[] = [];
  let [fail, exchanges] = [(): void => {}, 0];
  const nodes: NodeExchange = {
    exchange: () => {
      exchanges += 1;
      return new Promise((_, reject) => {
        fail = () => reject(new Error('away'));
      });
    },
  };
  const stop = createLimitSharing(nodes, (message) => troubles.push(message))({
    collect: () => ({ accounts: [], addresses: [] }),
    receive: () => {},
  });
  await vi.advanceTimersByTimeAsync(3 * exchangeEveryMs);
  expect([exchanges, exchangeEveryMs]).toEqual([1, 200]);
  let isStopped = false;
  const stopped = stop().then(() => {
    isStopped = true;
  });
  await vi.advanceTimersByTimeAsync(3 * exchangeEveryMs);
  expect([isStopped, exchanges]).toEqual([false, 1]);
  fail();
  await stopped;
  expect(troubles).toEqual(['Rate limits could not be exchanged with other nodes. Each node applies the whole limit.']);
});

test.each([
  [1_000, [['a', 10, 1]]],
  [1_200, undefined],
])('node limits: what was granted in the %i ms since the last exchange is published as %j', async (ms, expected) => {
  const sent: unknown[] = [];
  let release = (): void => {};
  const nodes: NodeExchange = {
    exchange: async (news) => {
      sent.push(news && JSON.parse(Buffer.from(news).toString()).accounts);
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return [];
    },
  };
  const stop = createLimitSharing(nodes, () => {})({
    collect: () => ({ accounts: [['a', 10, 1]], addresses: [] }),
    receive: () => {},
  });
  await vi.advanceTimersByTimeAsync(exchangeEveryMs);
  await vi.advanceTimersByTimeAsync(ms - 50);
  release();
  await vi.advanceTimersByTimeAsync(50);
  release();
  await stop();
  expect(sent).toEqual([[['a', 10, 1]], expected]);
});
