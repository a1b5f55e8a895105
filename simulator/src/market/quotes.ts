// The market of a stream at a second: price, bid, ask, volumes, session. A closed market has the prices of its last open second.
import type { MarketEffect, PriceEffect } from '../scenario/effects.ts';
import type { SimulatedStream } from '../streams.ts';
import type { Asset } from './assets.ts';
import { lastOpenAt, type MarketHours, type MarketSession, sessionAt } from './market-hours.ts';
import { averageTicksAt, createWalk, ticksAt, toPrice, type Walk } from './prices.ts';
import { keyOf, uniform } from './random.ts';

/** A market at one second. Prices have 18 decimals; bid ≤ price ≤ ask, and the last trade is between bid and ask. */
export type Quote = {
  readonly observedAt: number;
  /** The second of the prices, the last open one; `observedAt` while the market is open. */
  readonly settledAt: number;
  readonly session: MarketSession;
  readonly price: bigint;
  readonly bid: bigint;
  readonly ask: bigint;
  readonly lastTradedPrice: bigint;
  /** Whole lots on offer. */
  readonly bidLots: number;
  readonly askLots: number;
  /** The price at `observedAt`, open or not. */
  readonly priceAroundTheClock: () => bigint;
  /** The mean price over the window that ends at `settledAt`. */
  readonly averageOver: (windowSeconds: number) => bigint;
};

/** A stream bound to a seed. */
export type Market = SimulatedStream & {
  readonly walk: Walk;
  readonly overrides: readonly MarketEffect[];
  readonly noiseKeys: { readonly [N in (typeof noiseNames)[number]]: number };
};

const noiseNames = ['bid', 'ask', 'trade', 'bidLots', 'askLots'] as const;
const lotsMax = 40;
const averageSamples = 30;

/** Binds a stream to a seed, and to the effects of a scenario in the order of their start. */
export function createMarket(
  seed: string,
  simulated: SimulatedStream,
  prices: readonly PriceEffect[] = [],
  overrides: readonly MarketEffect[] = [],
): Market {
  const streamKey = keyOf(simulated.stream.name, keyOf(seed));
  const noiseKeys = Object.fromEntries(noiseNames.map((name) => [name, keyOf(name, streamKey)]));
  return {
    ...simulated,
    walk: createWalk(seed, simulated.asset, prices),
    overrides,
    noiseKeys: noiseKeys as Market['noiseKeys'], // built from the same list of names
  };
}

// Half the spread, ± 50 %; at least one tick.
const distanceOf = (asset: Asset, ticks: number, noise: number): number =>
  Math.ceil(ticks * (asset.spreadBps / 20_000) * (0.5 + noise));

/** The quote at a second. */
export function quoteAt({ asset, hours, walk, noiseKeys, overrides }: Market, observedAt: number): Quote {
  const settledAt = lastOpenUnder(hours, overrides, observedAt);
  const noiseAt = walk.path?.stillAt(settledAt) ?? settledAt;
  const noise = (name: (typeof noiseNames)[number]) => uniform(noiseKeys[name], noiseAt);
  const ticks = ticksAt(walk, settledAt);
  const bid = Math.max(1, ticks - distanceOf(asset, ticks, noise('bid')));
  const ask = ticks + distanceOf(asset, ticks, noise('ask'));
  return {
    observedAt,
    settledAt,
    session: sessionUnder(hours, overrides, observedAt),
    price: toPrice(asset, ticks),
    bid: toPrice(asset, bid),
    ask: toPrice(asset, ask),
    lastTradedPrice: toPrice(asset, bid + Math.floor(noise('trade') * (ask - bid + 1))),
    bidLots: 1 + Math.floor(noise('bidLots') * lotsMax),
    askLots: 1 + Math.floor(noise('askLots') * lotsMax),
    priceAroundTheClock: () => toPrice(asset, ticksAt(walk, observedAt)),
    averageOver: (windowSeconds) => toPrice(asset, averageTicksAt(walk, settledAt, windowSeconds, averageSamples)),
  };
}

// Markets that a scenario opens or closes whatever their hours say.

/** The last second, up to and including this one, at which the market was open: by its hours, or by overrides in the order of their start. */
const lastOpenUnder = (hours: MarketHours, overrides: readonly MarketEffect[], second: number): number => {
  const state = overrideAt(overrides, second)?.state;
  if (state === 'open') return second;
  // Since this second nothing began or ended, so that one rule decides.
  const edge = Math.max(
    ...overrides.flatMap(({ from, to }) => [from - 1, to - 1]).filter((one) => one < second),
    Number.NEGATIVE_INFINITY,
  );
  const byHours = state === 'closed' ? Number.NEGATIVE_INFINITY : lastOpenAt(hours, second);
  return byHours > edge ? byHours : lastOpenUnder(hours, overrides, edge);
};

/** The session at a second. An override opens the regular session where the hours have none. */
const sessionUnder = (hours: MarketHours, overrides: readonly MarketEffect[], second: number): MarketSession => {
  const state = overrideAt(overrides, second)?.state;
  if (state === 'closed') return 'closed';
  const session = sessionAt(hours, second);
  return state === 'open' && session === 'closed' ? 'regular' : session;
};

/** The latest override that is in force; undefined where the hours decide. */
const overrideAt = (overrides: readonly MarketEffect[], second: number): MarketEffect | undefined => {
  const found = overrides.findLast(({ from, to }) => from <= second && second < to);
  return found?.state === 'hours' ? undefined : found;
};
