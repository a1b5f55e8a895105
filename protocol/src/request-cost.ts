// The table of request costs in rate-limit tokens, computed from the arguments before anything is read.
import type { QueryOf, RouteName } from './api.ts';
import { limits } from './limits.ts';

/** Seconds of coverage that one token pays for. */
const coverageSecondsPerToken = 21_600;

/** The same where hours without a gap are known from roll-ups. */
const coverageManySecondsPerToken = 4 * limits.coverageSecondsMax;

/** Roll-ups that one token pays for. */
const rollupsPerToken = 1_440;

/** Seconds of candles of a second, which are read from reports, that one token pays for. */
const candleSecondsPerToken = 360;

/** Seconds of the roll-ups that candles are read from, coarsest first. */
export const rollupSeconds = [86_400, 3_600, 60] as const;

/** Whether candles of a resolution are read from roll-ups; finer ones are read from reports. */
export const isRolledUp = (resolution: number): boolean => resolution >= 60;

/** The coarsest roll-ups that make candles of a resolution. */
export const rollupSecondsOf = (resolution: number): number =>
  rollupSeconds.find((seconds) => resolution % seconds === 0) ?? 60;

type CandleQuery = Pick<QueryOf<'reportCandles'>, 'from' | 'to' | 'resolution'>;

/** The tokens of candles of some streams, which have at most so many buckets each. */
const candleTokens = ({ from, to, resolution }: CandleQuery, streams: number, bucketsMax: number): number => {
  if (!isRolledUp(resolution))
    return tokens((to - from) * streams, candleSecondsPerToken, bucketsMax * resolution * streams);
  const perCandle = (resolution / rollupSecondsOf(resolution)) * streams;
  return tokens(Math.ceil((to - from) / resolution) * perCandle, rollupsPerToken, bucketsMax * perCandle);
};

const tokens = (amount: number, perToken: number, most: number): number =>
  Math.max(1, Math.ceil(Math.min(amount, most) / perToken));

/** Buckets that a range may have when candles of so many streams are asked for. */
export const candleBucketsMax = (streams: number): number =>
  Math.min(limits.candlesMax, Math.floor(limits.candlesManyMax / streams));

/** Routes whose cost depends on their arguments; every other request costs one token. */
const costs: { readonly [R in RouteName]?: (query: QueryOf<R>) => number } = {
  reportCoverage: ({ from, to }) => tokens(to - from, coverageSecondsPerToken, limits.coverageSecondsMax),
  reportCoverageMany: ({ feedIds, from, to }) =>
    tokens((to - from) * feedIds.length, coverageManySecondsPerToken, limits.coverageSecondsMax * feedIds.length),
  reportCandles: (query) => candleTokens(query, 1, limits.candlesMax),
  reportCandlesMany: (query) => candleTokens(query, query.feedIds.length, candleBucketsMax(query.feedIds.length)),
};

/** The tokens that a request costs: a whole number, at least 1. */
export const costOf = <R extends RouteName>(route: R, query: QueryOf<R>): number => costs[route]?.(query) ?? 1;
