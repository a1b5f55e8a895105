// Simulated prices: a random walk that is a pure function of seed, asset and second. It uses only + − × ÷ and sqrt, which IEEE 754
// defines exactly, so every machine computes the same digits.
import { daySeconds } from '@sealpost/protocol';
import type { PriceEffect } from '../scenario/effects.ts';
import type { Asset } from './assets.ts';
import { createPricePath, type NaturalPrice, type PricePath } from './price-path.ts';
import { gaussian, keyOf } from './random.ts';

const anchorSeconds = 2 ** 22;
const yearSeconds = 365 * daySeconds;
const growthFrom = 1_735_689_600; // 2025-01-01, when assets that grow are at their reference price

/** Units of a price per 1: 18 decimals. */
export const priceScale = 10n ** 18n;

/** One asset's walk under one seed. */
export type Walk = { readonly asset: Asset; readonly key: number; readonly path?: PricePath };

/** The walk of an asset; all streams of the asset share it. Effects of a scenario are in the order of their start. */
export function createWalk(seed: string, asset: Asset, effects: readonly PriceEffect[] = []): Walk {
  const walk = { asset, key: keyOf(`${asset.baseAsset}/${asset.quoteAsset}`, keyOf(seed)) };
  return effects.length === 0 ? walk : { ...walk, path: createPricePath(naturalPriceOf(walk), effects) };
}

const naturalPriceOf = (walk: Walk): NaturalPrice => ({
  priceAt: (second) => naturalPriceAt(walk, second),
  displacementAt: (second) => displacementAt(walk, second),
  toFactor,
});

// Lévy's construction of Brownian motion: independent anchors, then each midpoint is the mean of its neighbors plus noise
// with variance interval / 4. A second is a midpoint at one level only, so its own number is the position of its noise.
const displacementAt = ({ asset, key }: Walk, seconds: number): number => {
  const volatility = asset.volatilityPerDay / Math.sqrt(daySeconds);
  const anchorDeviation = volatility * Math.sqrt(anchorSeconds / 2); // two of them differ as much as a walk of their distance
  let start = seconds - (seconds % anchorSeconds);
  let left = anchorDeviation * gaussian(key, start);
  let right = anchorDeviation * gaussian(key, start + anchorSeconds);
  let deviation = (volatility * Math.sqrt(anchorSeconds)) / 2;
  for (let half = anchorSeconds / 2; start !== seconds; half /= 2) {
    const middle = (left + right) / 2 + deviation * gaussian(key, start + half);
    if (seconds < start + half) right = middle;
    else {
      left = middle;
      start += half;
    }
    deviation *= Math.SQRT1_2;
  }
  return left;
};

// x + sqrt(x² + 1) replaces exp: positive everywhere, 1 + x + x²/2 near 0, and f(x) · f(−x) = 1.
const toFactor = (x: number): number => (x < 0 ? 1 / (Math.sqrt(x * x + 1) - x) : Math.sqrt(x * x + 1) + x);

const naturalPriceAt = (walk: Walk, seconds: number): number => {
  const { referencePrice, growthPerYear } = walk.asset;
  const growth = (growthPerYear * (seconds - growthFrom)) / yearSeconds;
  return referencePrice * toFactor(displacementAt(walk, seconds) + growth);
};

/** The price at a second in whole ticks, at least 1. */
export function ticksAt(walk: Walk, seconds: number): number {
  const price = walk.path === undefined ? naturalPriceAt(walk, seconds) : walk.path.priceAt(seconds);
  return Math.max(1, Math.round(price * walk.asset.ticksPerUnit));
}

/** The mean price in whole ticks of `samples` times, evenly spread over the window that ends at a second. */
export function averageTicksAt(walk: Walk, seconds: number, windowSeconds: number, samples: number): number {
  let sum = 0;
  for (let i = 0; i < samples; i += 1) sum += ticksAt(walk, seconds - Math.floor((i * windowSeconds) / samples));
  return Math.round(sum / samples);
}

/** Ticks as a price with 18 decimals. */
export const toPrice = (asset: Asset, ticks: number): bigint =>
  BigInt(ticks) * (priceScale / BigInt(asset.ticksPerUnit));
