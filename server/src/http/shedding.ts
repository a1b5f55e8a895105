// Sheds load when requests keep each other waiting. A stall does not count, nor does work that is not a request's: shedding would not lessen
// it (D142).
import type { RouteName } from '@sealpost/protocol';
import { createReadTurns, type ReadTurns, type TurnSocket } from './read-turns.ts';

/** 0: nothing is shed. 1: what reads or renders much. 2: everything but /time and /status.json. */
export type LoadLevel = 0 | 1 | 2;

export type Load = {
  /** Counts a request that begins now, and says what is shed. The socket is absent for one that is handed over. */
  readonly begin: (socket: TurnSocket | undefined, nowMs: number) => LoadLevel;
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

/** Once overloaded, a server sheds requests that waited for more than these shares of the bound, so that it stays well below it. */
const answeredShare = 1 / 2;
const expensiveShare = 1 / 3;
/** A server is no longer overloaded when no request waited for more than the larger share for so long. */
const calmMs = 1_000;

/** Judges how long requests were kept waiting by others. A server is overloaded once that was more than `eventLoopLagMaxMs`. */
export const createOverload = (eventLoopLagMaxMs: number) => {
  let overloadedMs = Number.NEGATIVE_INFINITY;
  return (waitedMs: number, nowMs: number): LoadLevel => {
    if (waitedMs <= eventLoopLagMaxMs && nowMs - overloadedMs > calmMs) return 0;
    if (waitedMs <= expensiveShare * eventLoopLagMaxMs) return 0;
    if (waitedMs <= answeredShare * eventLoopLagMaxMs) return 1;
    overloadedMs = nowMs;
    return 2;
  };
};

export type WatchedLoad = Load &
  Pick<ReadTurns, 'accepted' | 'drain'> & { readonly lagMs: () => number; readonly stop: () => void };

const tickMs = 50;

/** Watches the loop of this process, whose connections come over TLS or not. */
export const watchLoad = (eventLoopLagMaxMs: number, isTls: boolean, monotonicMs: () => number): WatchedLoad => {
  const turns = createReadTurns(isTls);
  const judge = createOverload(eventLoopLagMaxMs);
  let [lag, lastMs] = [0, monotonicMs()];
  const timer = setInterval(() => {
    const now = monotonicMs();
    lag = Math.max(0, now - lastMs - tickMs);
    lastMs = now;
  }, tickMs).unref();
  return {
    begin: (socket, nowMs) => judge(turns.begin(socket, nowMs), nowMs),
    accepted: turns.accepted,
    drain: turns.drain,
    lagMs: () => lag,
    stop: () => clearInterval(timer),
  };
};
