// What a scenario does to the simulated network, as plain values, so that worker threads can build the same one. Times are Unix seconds.
import type { FeedId } from '@sealpost/protocol';

/** From `from` on, for these streams. */
type Start = { readonly from: number; readonly feedIds: readonly FeedId[] };

/** Until `to`, not included; Infinity where it does not end. */
type Span = Start & { readonly to: number };

/** A move away from the price that there would be, and back: never where `recoverSeconds` is Infinity. */
type Excursion = Start & {
  readonly overSeconds: number;
  readonly holdSeconds: number;
  readonly recoverSeconds: number;
};

/** What changes prices. `natural` ends all others. */
export type PriceEffect =
  | (Start & { readonly kind: 'level'; readonly price: number })
  | (Start & { readonly kind: 'jump'; readonly percent: number })
  | (Span & { readonly kind: 'drift'; readonly percentPerHour: number })
  | (Span & { readonly kind: 'volatility'; readonly factor: number })
  | (Excursion & { readonly kind: 'crash'; readonly percent: number })
  | (Excursion & { readonly kind: 'depeg'; readonly price: number })
  | (Span & { readonly kind: 'freeze' })
  | (Start & { readonly kind: 'natural' });

/** A market that is open or closed whatever its hours; `hours` ends that. */
export type MarketEffect = Span & { readonly kind: 'market'; readonly state: 'open' | 'closed' | 'hours' };

/** Without reports; where `backfill` is set, they are all delivered at the end. */
export type SilenceEffect = Span & { readonly kind: 'silence'; readonly backfill: boolean };

/** Ends silences that began before it. */
export type ResumptionEffect = Start & { readonly kind: 'resumption' };

/** The stream's last observation is before `from`. */
export type EndEffect = Start & { readonly kind: 'end' };

/** From `from` on another signer set signs. */
export type RotationEffect = { readonly kind: 'rotation'; readonly from: number };

export type Effect = PriceEffect | MarketEffect | SilenceEffect | ResumptionEffect | EndEffect | RotationEffect;

const priceKinds: readonly string[] = [
  'level',
  'jump',
  'drift',
  'volatility',
  'crash',
  'depeg',
  'freeze',
  'natural',
] satisfies readonly PriceEffect['kind'][];

export const isPriceEffect = (effect: Effect): effect is PriceEffect => priceKinds.includes(effect.kind);

/** The effects of one kind on a stream, in the order of their start; those of the same second in the order given. */
export const effectsOn = <E extends Effect & Start>(
  effects: readonly Effect[],
  feedId: FeedId,
  isWanted: (effect: Effect) => effect is E,
): readonly E[] =>
  effects
    .filter(isWanted)
    .filter(({ feedIds }) => feedIds.includes(feedId))
    .sort((a, b) => a.from - b.from);

/** Observation seconds that one outage may deliver late. */
export const backfillMaxSeconds = 86_400;

const coversOf = (silences: readonly SilenceEffect[], second: number): SilenceEffect | undefined =>
  silences.find(({ from, to }) => from <= second && second < to);

/** The second in which an observation is delivered; undefined where it never is. */
const deliveredAt = (silences: readonly SilenceEffect[], observed: number): number | undefined => {
  let second = observed;
  for (let cover = coversOf(silences, second); cover !== undefined; cover = coversOf(silences, second)) {
    if (!cover.backfill || cover.to === Number.POSITIVE_INFINITY) return undefined;
    second = cover.to;
  }
  return second;
};

/** The seconds whose observations are delivered in this one, oldest first. */
export function observedFor(silences: readonly SilenceEffect[], second: number): readonly number[] {
  if (coversOf(silences, second) !== undefined) return [];
  const ended = silences.filter(({ to, backfill }) => backfill && to === second);
  if (ended.length === 0) return [second];
  // An outage may begin in another one that is backfilled too.
  const backfilled = silences.filter(({ backfill, to }) => backfill && to <= second);
  const first = Math.max(second - backfillMaxSeconds, Math.min(...backfilled.map(({ from }) => from)));
  const seconds: number[] = [];
  for (let observed = first; observed < second; observed += 1)
    if (deliveredAt(silences, observed) === second) seconds.push(observed);
  return [...seconds, second];
}
