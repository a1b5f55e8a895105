// The digits after the decimal point of a stream's prices: as many for each of them, so that they do not move when the price changes.
import { formatPrice, splitPrice } from '../format.ts';

/** Digits after the decimal point. `shown` are as dark as the rest of the price, the others up to `all` are dimmed. */
export type PriceDigits = { readonly shown: number; readonly all: number };

const decimals = 18;
const shownMin = 2;

const fractionOf = (text: string): number => text.split('.')[1]?.length ?? 0;

/** The digits that one price needs, at least two. */
const digitsOf = (price: bigint): PriceDigits => ({
  shown: Math.max(shownMin, fractionOf(splitPrice(price).head)),
  all: Math.max(shownMin, fractionOf(formatPrice(price))),
});

/** The digits for these prices too; never fewer than before, so that a stream's digits only grow, up to 18. */
export function widenDigits(known: PriceDigits | undefined, prices: readonly bigint[]): PriceDigits | undefined {
  let { shown, all } = known ?? { shown: 0, all: 0 };
  for (const price of prices) {
    const needed = digitsOf(price);
    shown = Math.max(shown, needed.shown);
    all = Math.max(all, needed.all);
  }
  if (all === 0 || (shown === known?.shown && all === known.all)) return known; // the same object: nothing renders again
  return { shown, all };
}

/** A price with exactly these digits, in two parts. Together they are the exact price, with zeros at its end. */
export function splitFixed(price: bigint, digits: PriceDigits): { readonly head: string; readonly tail: string } {
  const text = formatPrice(price);
  const [whole = '', fraction = ''] = text.split('.');
  const all = fraction.padEnd(Math.min(decimals, digits.all), '0');
  return { head: `${whole}.${all.slice(0, digits.shown)}`, tail: all.slice(digits.shown) };
}
