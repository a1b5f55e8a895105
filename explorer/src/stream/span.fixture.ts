// A report as the chart draws it, for tests.
import type { Span } from './chart-spans.ts';

export const one = 10n ** 18n;

/** A report over whole seconds, both included. */
export const span = (from: number, to: number, price = one): Span => ({
  feedId: '0x00',
  startMs: from * 1_000,
  endMs: (to + 1) * 1_000,
  observedMs: to * 1_000,
  timestamp: to,
  price,
  bid: undefined,
  ask: undefined,
});
