// Tests of the live consumer, with vitest. The subject is built on the published SDK, which does not know that it talks to a sandbox.
import { type Sandbox, startSandbox } from '@sealpost/sandbox';
import { afterEach, expect, test } from 'vitest';
import { consume } from './live-consumer.ts';

const one = 10n ** 18n;
let sandbox: Sandbox;
let stop = async (): Promise<void> => {};
afterEach(async () => {
  await stop();
  await sandbox.close();
});

/** Starts a consumer and collects its prices. */
const startConsumer = async (ha = false): Promise<bigint[]> => {
  sandbox = await startSandbox({ streams: ['ETH/USD'], ...(ha && { origins: ['001', '002'] }) });
  const prices: bigint[] = [];
  const { url, wsUrl, userId, secret } = sandbox;
  const feedIds = [sandbox.feedId('ETH/USD')];
  stop = await consume({ url, wsUrl, userId, secret, feedIds, ha, onPrice: (_, price) => prices.push(price / one) });
  await sandbox.subscribed('ETH/USD', ha ? 2 : 1);
  return prices;
};

test('live consumer: gets each price once, in order', async () => {
  const prices = await startConsumer();
  for (const price of [1, 2, 3]) await sandbox.push('ETH/USD', price);
  await expect.poll(() => prices).toEqual([1n, 2n, 3n]);
});

test('live consumer: a repeated and a late message do not take the price back', async () => {
  const prices = await startConsumer();
  sandbox.fault('duplicate=3');
  await sandbox.push('ETH/USD', 1);
  sandbox.clearFaults();
  sandbox.fault('reorder,count=1');
  await sandbox.push('ETH/USD', 2);
  await sandbox.push('ETH/USD', 3);
  await sandbox.push('ETH/USD', 4);
  await expect.poll(() => prices.at(-1)).toBe(4n);
  expect(prices).toEqual(prices.toSorted());
  expect(new Set(prices).size).toBe(prices.length);
});

test('live consumer: reconnects after its connection is cut', async () => {
  const prices = await startConsumer();
  await sandbox.push('ETH/USD', 1);
  await expect.poll(() => prices).toEqual([1n]);
  sandbox.fault('close=1006,count=1');
  await expect.poll(() => sandbox.requestsTo('socket').length).toBe(2);
  await sandbox.subscribed('ETH/USD');
  await sandbox.push('ETH/USD', 2);
  await expect.poll(() => prices).toEqual([1n, 2n]);
});

test('live consumer: with two origins, misses nothing while one is down', async () => {
  const prices = await startConsumer(true);
  await sandbox.push('ETH/USD', 1);
  sandbox.fault('origin-down=001');
  await expect
    .poll(() => sandbox.requestsTo('socket').filter(({ status }) => status === null).length)
    .toBeGreaterThan(0);
  for (const price of [2, 3]) await sandbox.push('ETH/USD', price);
  await expect.poll(() => prices).toEqual([1n, 2n, 3n]);
});
