// Exponential backoff.

/** The pause before a retry: `firstMs`, then twice as long after each failure, at most `maxMs`. `failures` counts those before the last one. */
export const backoffMs = (failures: number, firstMs: number, maxMs: number): number =>
  Math.min(maxMs, firstMs * 2 ** failures);
