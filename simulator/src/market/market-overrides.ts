// Markets that a scenario opens or closes whatever their hours say.
import type { MarketEffect } from '../scenario/effects.ts';
import { lastOpenAt, type MarketHours, type MarketSession, sessionAt } from './market-hours.ts';

/** The last second, up to and including this one, at which the market was open: by its hours, or by overrides in the order of their start. */
export const lastOpenUnder = (hours: MarketHours, overrides: readonly MarketEffect[], second: number): number => {
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
export const sessionUnder = (hours: MarketHours, overrides: readonly MarketEffect[], second: number): MarketSession => {
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
