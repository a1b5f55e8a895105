import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { NodeExchange } from '../store/nodes.ts';
import { createSharedLimiter } from './limit-exchange.ts';
import { createLimitSharing, exchangeEveryMs } from './node-limits.ts';

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
