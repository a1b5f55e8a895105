// Owns when a call is tried again and after how long: the retry rules of the API.
import type { SealpostError } from '../errors.ts';

/** The first pause; each further one is twice as long. */
const pauseFirstMs = 250;
/** No pause of our own is longer. What a server asks for may be. */
const pauseMaxMs = 8_000;

/**
 * What follows a failed attempt: `elsewhere`, where another base URL may do better at once; `later`, at the same place;
 * `never`, because the same request fails again.
 */
export type NextStep = 'elsewhere' | 'later' | 'never';

/** 5xx and failures of the network are transient; 429 is waited for only when asked; no other 4xx is sent twice. */
export const nextStep = (error: SealpostError, retryRateLimited: boolean): NextStep => {
  if (error.status === undefined) return error.code === 'network_error' ? 'elsewhere' : 'never';
  if (error.status >= 500) return 'elsewhere';
  return error.status === 429 && retryRateLimited ? 'later' : 'never';
};

/** The pause before round `round` (1 is the first repetition): exponential, its upper half left to chance so that clients do not come in step. */
export const pauseMs = (round: number, random: () => number, askedForMs = 0): number => {
  const fullMs = Math.min(pauseMaxMs, pauseFirstMs * 2 ** (round - 1));
  const ownMs = fullMs / 2 + (random() * fullMs) / 2;
  // A pause that was asked for is kept in full, and spread beyond its end.
  return Math.round(askedForMs > 0 ? askedForMs + (random() * fullMs) / 2 : ownMs);
};
