// The bounds of a time range in a query.
import { malformedArgument } from '@sealpost/protocol';

/** Rejects a range that ends before it begins, or is longer than an answer may be. */
export const checkRange = (from: number, to: number, secondsMax: number): void => {
  if (to < from) throw malformedArgument('to', to, `a second from ${from} on, where the range begins`);
  if (to - from >= secondsMax)
    throw malformedArgument(
      'to',
      to,
      `a second up to ${from + secondsMax - 1}: at most ${secondsMax} seconds are answered`,
    );
};
