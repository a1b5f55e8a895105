// The rules of roll-ups for both engines: how prices become a roll-up, how roll-ups merge, and which ones the candles of a range are read from. Open
// and close follow observation time, not arrival, so late reports count where they belong.
import { rollupSeconds, rollupSecondsOf } from '@sealpost/protocol';

/** What a stream's prices did in a bucket of seconds. */
export type Candle = {
  /** First second of the bucket. */
  readonly start: number;
  readonly open: bigint;
  readonly high: bigint;
  readonly low: bigint;
  readonly close: bigint;
  readonly reports: number;
};

/** Buckets of `resolution` seconds, which begin at its multiples, of the minutes that begin from one second to another, both included. */
export type CandleRange = { readonly from: number; readonly to: number; readonly resolution: number };

/** What prices did in a range, with the observations that open and close it. */
export type Rollup = {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly reports: number;
  readonly open: bigint;
  readonly high: bigint;
  readonly low: bigint;
  readonly close: bigint;
};

/** What a roll-up takes of a report. */
export type PricedMoment = { readonly observationsMs: number; readonly price: bigint };

/** The roll-up of one report. */
export const rollUp = (ms: number, price: bigint): Rollup => ({
  firstMs: ms,
  lastMs: ms,
  reports: 1,
  open: price,
  high: price,
  low: price,
  close: price,
});

// Math.max and Math.min take no bigint.
const greaterOf = (a: bigint, b: bigint): bigint => {
  if (a > b) return a;
  return b;
};

const smallerOf = (a: bigint, b: bigint): bigint => {
  if (a < b) return a;
  return b;
};

/** The roll-up of everything that two cover; they may lie in any order and among each other. */
export function mergeRollups(a: Rollup | undefined, b: Rollup): Rollup {
  if (a === undefined) return b;
  const [first, last] = [b.firstMs < a.firstMs ? b : a, b.lastMs > a.lastMs ? b : a];
  return {
    firstMs: first.firstMs,
    lastMs: last.lastMs,
    reports: a.reports + b.reports,
    open: first.open,
    high: greaterOf(a.high, b.high),
    low: smallerOf(a.low, b.low),
    close: last.close,
  };
}

/** The roll-up of prices; undefined without any. */
export const rollUpAll = (prices: readonly PricedMoment[]): Rollup | undefined =>
  prices.reduce(
    (sum: Rollup | undefined, { observationsMs, price }) => mergeRollups(sum, rollUp(observationsMs, price)),
    undefined,
  );

/** Adds a candle to those before it; one of the same bucket is merged into the last. */
export function addCandle(candles: Candle[], one: Candle): void {
  const last = candles.at(-1);
  if (last?.start !== one.start) candles.push(one);
  else
    candles[candles.length - 1] = {
      ...last,
      high: greaterOf(last.high, one.high),
      low: smallerOf(last.low, one.low),
      close: one.close,
      reports: last.reports + one.reports,
    };
}

/** Roll-ups of some seconds that begin from one second on, up to before another. */
export type RollupRange = { readonly seconds: number; readonly from: number; readonly end: number };

/** Which roll-ups make up the candles of a range, ascending: the coarsest where whole ones fit, finer ones at both ends. */
export const planRollups = (from: number, to: number, resolution: number): readonly RollupRange[] =>
  coverRange(from, to + 1, rollupSecondsOf(resolution));

/** The next finer roll-ups than those of some seconds; undefined for minutes. */
export const finerSeconds = (seconds: number): number | undefined => rollupSeconds.find((finer) => finer < seconds);

const coverRange = (from: number, end: number, seconds: number): readonly RollupRange[] => {
  if (from >= end) return [];
  const finer = finerSeconds(seconds);
  if (finer === undefined) return [{ seconds, from, end }];
  const [first, last] = [Math.ceil(from / seconds) * seconds, Math.floor(end / seconds) * seconds];
  if (first >= last) return coverRange(from, end, finer);
  return [...coverRange(from, first, finer), { seconds, from: first, end: last }, ...coverRange(last, end, finer)];
};
