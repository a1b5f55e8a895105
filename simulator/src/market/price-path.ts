// The price of an asset under the effects of a scenario: still a pure function of the second. Like the walk it uses only + − × ÷ and sqrt, so that
// every machine computes the same digits.
import type { PriceEffect } from '../scenario/effects.ts';

/** The price that there would be without effects. */
export type NaturalPrice = {
  readonly priceAt: (second: number) => number;
  /** How far the walk is from where it began, in units of its volatility. */
  readonly displacementAt: (second: number) => number;
  /** From a displacement to a factor of the price. */
  readonly toFactor: (displacement: number) => number;
};

export type PricePath = {
  readonly priceAt: (second: number) => number;
  /** The second whose market a frozen price is from; the second itself while nothing is frozen. */
  readonly stillAt: (second: number) => number;
};

/** From `from` on the price moves from `startPrice`; the natural price where that is undefined. */
type Regime = {
  readonly from: number;
  readonly startPrice: number | undefined;
  readonly volatility: number;
  readonly percentPerHour: number;
};

type Change = { readonly at: number; readonly apply: (price: number, before: Regime) => Omit<Regime, 'from'> };

const priceMax = 1e12;
const priceMin = 1e-12;
const hourSeconds = 3_600;

/** The path of effects that are in the order of their start. */
export function createPricePath(natural: NaturalPrice, effects: readonly PriceEffect[]): PricePath {
  const regimes = createRegimes(natural, effects);
  // What is set in the same second, after everything was ended, goes on.
  const endOf = (index: number): number =>
    effects.find(({ kind }, i) => kind === 'natural' && i > index)?.from ?? Number.POSITIVE_INFINITY;
  const excursions = effects.flatMap((one, i) =>
    one.kind === 'crash' || one.kind === 'depeg' ? [{ ...one, end: endOf(i) }] : [],
  );
  const freezes = effects.flatMap((one, i) =>
    one.kind === 'freeze' ? [{ from: one.from, to: Math.min(one.to, endOf(i)) }] : [],
  );
  // The first freeze decides: one within another changes nothing.
  const stillAt = (second: number): number =>
    freezes.find(({ from, to }) => from <= second && second < to)?.from ?? second;
  const movingAt = (second: number): number => {
    let price = regimePrice(natural, regimeAt(regimes, second), second);
    for (const one of excursions) {
      const weight = second < one.end ? weightOf(one, second) : 0;
      const lowest = one.kind === 'crash' ? price * (1 - one.percent / 100) : one.price;
      price += (lowest - price) * weight;
    }
    return Math.min(priceMax, Math.max(priceMin, price));
  };
  return { priceAt: (second) => movingAt(stillAt(second)), stillAt };
}

type Excursion = Extract<PriceEffect, { kind: 'crash' | 'depeg' }>;

/** How much of an excursion holds at a second: 0 before and after it, 1 at its extreme. */
const weightOf = ({ from, overSeconds, holdSeconds, recoverSeconds }: Excursion, second: number): number => {
  const passed = second - from;
  if (passed < 0) return 0;
  if (passed < overSeconds) return passed / overSeconds;
  const recovering = passed - overSeconds - holdSeconds;
  if (recovering < 0 || recoverSeconds === Number.POSITIVE_INFINITY) return 1;
  return recovering < recoverSeconds ? 1 - recovering / recoverSeconds : 0;
};

const naturalRegime: Omit<Regime, 'from'> = { startPrice: undefined, volatility: 1, percentPerHour: 0 };

const createRegimes = (natural: NaturalPrice, effects: readonly PriceEffect[]): readonly Regime[] => {
  const regimes: Regime[] = [{ from: Number.NEGATIVE_INFINITY, ...naturalRegime }];
  const changes = effects.flatMap(changesOf).filter(({ at }) => at < Number.POSITIVE_INFINITY);
  for (const { at, apply } of changes.sort((a, b) => a.at - b.at)) {
    const before = regimes.at(-1) as Regime; // there is always one
    regimes.push({ from: at, ...apply(regimePrice(natural, before, at), before) });
  }
  return regimes;
};

const changesOf = (effect: PriceEffect): readonly Change[] => {
  const { from } = effect;
  if (effect.kind === 'level') return [change(from, () => ({ startPrice: effect.price }))];
  if (effect.kind === 'jump') return [change(from, (price) => ({ startPrice: price * (1 + effect.percent / 100) }))];
  if (effect.kind === 'drift')
    return [
      change(from, () => ({ percentPerHour: effect.percentPerHour })),
      change(effect.to, () => ({ percentPerHour: 0 })),
    ];
  if (effect.kind === 'volatility')
    return [change(from, () => ({ volatility: effect.factor })), change(effect.to, () => ({ volatility: 1 }))];
  if (effect.kind === 'natural') return [{ at: from, apply: () => naturalRegime }];
  return []; // the others leave the price below them as it is
};

const change = (at: number, apply: (price: number) => Partial<Omit<Regime, 'from'>>): Change => ({
  at,
  apply: (price, { volatility, percentPerHour }) => ({
    startPrice: price,
    volatility,
    percentPerHour,
    ...apply(price),
  }),
});

const regimeAt = (regimes: readonly Regime[], second: number): Regime => {
  let found = regimes[0] as Regime; // there is always one
  for (const regime of regimes) if (regime.from <= second) found = regime;
  return found;
};

const regimePrice = (natural: NaturalPrice, regime: Regime, second: number): number => {
  const { from, startPrice, volatility, percentPerHour } = regime;
  if (startPrice === undefined) return natural.priceAt(second);
  const moved = volatility * (natural.displacementAt(second) - natural.displacementAt(from));
  const drift = 1 + (percentPerHour / 100) * ((second - from) / hourSeconds);
  return Math.min(priceMax, Math.max(priceMin, startPrice * natural.toFactor(moved) * Math.max(drift, priceMin)));
};
