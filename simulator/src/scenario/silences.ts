// When the observations of a stream are delivered in a scenario: at once, at the end of an outage that is backfilled, or never.
import type { SilenceEffect } from './effects.ts';

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
export const observedFor = (silences: readonly SilenceEffect[], second: number): readonly number[] => {
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
};
