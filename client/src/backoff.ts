// The delay before the next attempt, and a sleep that an abort ends.
import { backoffMs } from '@sealpost/protocol';
import { SealpostError } from './errors.ts';
import { sleepOnTimer } from './request/call.ts';

/** How the delay between attempts grows. */
export type BackoffRules = {
  /** Milliseconds of the first wait, before jitter. */
  readonly minMs: number;
  /** Longest wait, unless the server sends a longer Retry-After; milliseconds. */
  readonly maxMs: number;
};

/** Back-off between attempts to connect. */
export type ReconnectRules = BackoffRules & {
  /** A connection that was live for this long, without a silence at its end, resets the back-off; milliseconds. */
  readonly stableMs: number;
};

export const defaultReconnect: ReconnectRules = { minMs: 250, maxMs: 30_000, stableMs: 10_000 };

/** The server's Retry-After in whole milliseconds, as sleeps have them; 0 without one. */
export function retryAfterMsOf(error: unknown): number {
  const seconds = error instanceof SealpostError ? error.details.retryAfterSeconds : undefined;
  return typeof seconds === 'number' ? Math.ceil(seconds * 1_000) : 0;
}

/**
 * The delay after the nth failure in a row (from 0): doubled each time, with a random upper half so that clients do not retry in step. A
 * Retry-After is kept in full, with the random part added.
 */
export function backOffMs(
  { minMs, maxMs }: BackoffRules,
  failures: number,
  random: () => number,
  retryAfterMs = 0,
): number {
  const halfMs = backoffMs(failures, minMs, maxMs) / 2;
  return Math.round((retryAfterMs || halfMs) + random() * halfMs);
}

/** Resolves after `ms`, or at once when the signal is aborted; leaves no timer behind. */
export const sleep = (ms: number, signal: AbortSignal): Promise<void> => sleepOnTimer(ms, signal).catch(() => {});
