// Durations as tests write them.
import { durationMs, unexpected } from 'sealpost/sandbox';

/** `'500ms'`, `'10s'`, `'5m'`, `'2h'`, `'1d'`, or a number of milliseconds. */
export type Duration = string | number;

const durationExpected = (max: string): string =>
  `a duration up to ${max} such as '10s' or '500ms', or a whole number of milliseconds`;

/** A duration in whole ms, from 0 to a maximum. */
export const parseDuration = (argument: string, value: unknown, maxMs: number, max: string): number => {
  const ms = typeof value === 'string' ? durationMs(value.trim()) : value;
  if (typeof ms === 'number' && Number.isInteger(ms) && ms >= 0 && ms <= maxMs) return ms;
  throw unexpected(argument, value, durationExpected(max));
};
