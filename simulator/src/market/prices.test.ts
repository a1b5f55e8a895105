import { expect, test } from 'vitest';
import { assets } from './assets.ts';
import { averageTicksAt, createWalk, ticksAt, toPrice } from './prices.ts';

const day = 86_400;
const start = 1_735_689_600; // 2025-01-01
const btc = createWalk('demo', assets['BTC/USD']);

const deviationOf = (values: readonly number[]): number => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
};

const returnsOf = (stepSeconds: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_, i) => {
    const at = start + i * stepSeconds;
    return ticksAt(btc, at + stepSeconds) / ticksAt(btc, at) - 1;
  });

// Computed by a second implementation, in another language.
test('a price is a pure function of seed, asset and second', () => {
  expect(ticksAt(btc, start + 12_345)).toBe(131_525_949);
  expect(ticksAt(createWalk('demo', assets['BTC/USD']), start + 12_345)).toBe(131_525_949);
  expect(ticksAt(createWalk('other', assets['BTC/USD']), start + 12_345)).not.toBe(131_525_949);
});

test('returns deviate as the asset says, over a day as over a second', () => {
  expect(deviationOf(returnsOf(day, 700))).toBeGreaterThan(0.022 * 0.85);
  expect(deviationOf(returnsOf(day, 700))).toBeLessThan(0.022 * 1.15);
  const perSecond = 0.022 / Math.sqrt(day);
  expect(deviationOf(returnsOf(1, 5_000))).toBeGreaterThan(perSecond * 0.9);
  expect(deviationOf(returnsOf(1, 5_000))).toBeLessThan(perSecond * 1.1);
});

test('prices are continuous at anchors', () => {
  const anchor = 2 ** 22 * 414;
  const step = Math.abs(ticksAt(btc, anchor) / ticksAt(btc, anchor - 1) - 1);
  expect(step).toBeLessThan(0.001);
});

test('no asset falls to zero or runs away over ten years', () => {
  for (const asset of Object.values(assets)) {
    const walk = createWalk('demo', asset);
    for (let at = start - 365 * day; at < start + 9 * 365 * day; at += 7 * day + 1) {
      const ratio = ticksAt(walk, at) / asset.ticksPerUnit / asset.referencePrice;
      if (ratio < 1 / 6 || ratio > 6) expect.fail(`${asset.assetName} is at ${ratio} of its reference price at ${at}`);
    }
  }
});

test('a violent asset stays above zero', () => {
  const walk = createWalk('demo', { ...assets['BTC/USD'], volatilityPerDay: 5 });
  const seconds = Array.from({ length: 12_000 }, (_, i) => start + i * 10_007);
  expect(Math.min(...seconds.map((at) => ticksAt(walk, at)))).toBeGreaterThanOrEqual(1);
});

test('an asset that accrues interest never falls without volatility', () => {
  const walk = createWalk('demo', assets['wstETH/ETH']);
  for (let at = start; at < start + 365 * day; at += day) {
    expect(ticksAt(walk, at + day)).toBeGreaterThan(ticksAt(walk, at));
  }
});

test('the average of a window lies between its extremes', () => {
  const seconds = Array.from({ length: 600 }, (_, i) => ticksAt(btc, start - i));
  const average = averageTicksAt(btc, start, 600, 60);
  expect(average).toBeGreaterThan(Math.min(...seconds));
  expect(average).toBeLessThan(Math.max(...seconds));
});

test('ticks become prices with 18 decimals, without a float on the way', () => {
  expect(toPrice(assets['BTC/USD'], 104_500_123)).toBe(104_500_123_000_000_000_000_000n);
  expect(toPrice(assets['wstETH/ETH'], 1)).toBe(1_000_000_000n);
});
