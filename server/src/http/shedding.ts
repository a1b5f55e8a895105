// Sheds load when the event loop falls behind. A single stall does not count: shedding starts once requests have had to wait for a while, with the
// most expensive ones, and ends when they no longer wait (D142).
import type { RouteName } from '@sealpost/protocol';

/** 0: nothing is shed. 1: what reads or renders much. 2: everything but /time and /status.json, for every other request. */
export type LoadLevel = 0 | 1 | 2;

export type Load = {
  /** Counts a request. */
  readonly count: () => void;
  /** For the next request. */
  readonly level: () => LoadLevel;
};

/** Shed first: they read many reports, or render much. */
const expensive: ReadonlySet<RouteName> = new Set<RouteName>([
  'reportCandles',
  'reportCandlesMany',
  'reportCoverage',
  'reportCoverageMany',
  'reportPage',
  'reportBulk',
  'reportLatestMany',
  'reportStream',
  'discovery',
  'feeds',
  'signers',
  'openapi',
  'docs',
]);

/** Never shed: clients set their clocks by one, people look for problems in the other. Rejecting either costs as much as answering. */
const indispensable: ReadonlySet<RouteName> = new Set<RouteName>(['time', 'status']);

/** Whether a request is shed at this level. The explorer's files never are: a browser does not retry a style sheet. */
export const isShed = (route: RouteName, level: LoadLevel): boolean => {
  if (level === 0) return false;
  return level === 1 ? expensive.has(route) : !indispensable.has(route);
};

/** The part of the average that each tick makes up. */
const weight = 1 / 8;
/** A delay counts as at most so many times the bound: one stall, however long, does not reach it. */
const stallTimesMax = 4;
/**
 * No request blocks the loop for more than 5 ms, so that fewer than this are at most a tenth of its time: the load is elsewhere, and shedding them
 * would not lessen it.
 */
const requestsPerSecondMin = 20;
/** A level ends below this part of its bound: shedding lessens the delay, and what it lessens it by must not end it. */
const endShare = 3 / 4;

/** Judges the delays of the loop: level 1 begins above `eventLoopLagMaxMs` on average, level 2 above twice that. */
export const createLoadAverage = (eventLoopLagMaxMs: number) => {
  let lagMs = 0;
  let requestsPerSecond = 0;
  let level: LoadLevel = 0;
  const isAbove = (bound: number, was: boolean): boolean => lagMs > (was ? endShare * bound : bound);
  return {
    level: (): LoadLevel => level,
    /** Takes the delay of a tick, the requests since the last one, and the milliseconds since. */
    add: (delayMs: number, requests: number, elapsedMs: number): void => {
      lagMs += weight * (Math.min(delayMs, stallTimesMax * eventLoopLagMaxMs) - lagMs);
      requestsPerSecond += weight * ((requests * 1_000) / Math.max(1, elapsedMs) - requestsPerSecond);
      if (requestsPerSecond < requestsPerSecondMin) level = 0;
      else if (isAbove(2 * eventLoopLagMaxMs, level === 2)) level = 2;
      else level = isAbove(eventLoopLagMaxMs, level > 0) ? 1 : 0;
    },
  };
};

/**
 * Spares every other request at level 2: to shed one costs half of what an answer does, so that a server whose thousands of clients ask again at once
 * would do nothing else, and never catch up.
 */
export const createSparing = () => {
  let isSpared = false;
  return (level: LoadLevel): LoadLevel => {
    if (level < 2) return level;
    isSpared = !isSpared;
    return isSpared ? 1 : 2;
  };
};

export type WatchedLoad = Load & { readonly lagMs: () => number; readonly stop: () => void };

const tickMs = 50;

/** Watches the loop of this process. */
export const watchLoad = (eventLoopLagMaxMs: number, monotonicMs: () => number): WatchedLoad => {
  const average = createLoadAverage(eventLoopLagMaxMs);
  const spare = createSparing();
  let [lag, requests, lastMs] = [0, 0, monotonicMs()];
  const timer = setInterval(() => {
    const now = monotonicMs();
    lag = Math.max(0, now - lastMs - tickMs);
    average.add(lag, requests, now - lastMs);
    [requests, lastMs] = [0, now];
  }, tickMs).unref();
  return {
    count: () => {
      requests += 1;
    },
    level: () => spare(average.level()),
    lagMs: () => lag,
    stop: () => clearInterval(timer),
  };
};
