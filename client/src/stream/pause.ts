// Owns waiting: how long between attempts, and a sleep that an abort ends.
import { sleepOnTimer } from '../request/call.ts';

/** How long to wait between attempts to connect. */
export type ReconnectRules = {
  /** Milliseconds of the first wait, before jitter. */
  readonly minMs: number;
  /** No wait but the server's own Retry-After is longer; milliseconds. */
  readonly maxMs: number;
  /** A connection that held for so long makes the next wait a first one again; milliseconds. */
  readonly stableMs: number;
};

export const defaultReconnect: ReconnectRules = { minMs: 250, maxMs: 30_000, stableMs: 10_000 };

/** The wait after the nth failure in a row (from 0): doubled each time, half to all of it, never before `retryAfterMs`. */
export const backOffMs = (
  { minMs, maxMs }: ReconnectRules,
  failures: number,
  random: () => number,
  retryAfterMs = 0,
): number => Math.round(retryAfterMs + Math.min(maxMs, minMs * 2 ** Math.min(failures, 20)) * (0.5 + random() / 2));

/** Resolves after `ms`, or at once when the signal is aborted; leaves no timer behind. */
export const sleep = (ms: number, signal: AbortSignal): Promise<void> => sleepOnTimer(ms, signal).catch(() => {});
