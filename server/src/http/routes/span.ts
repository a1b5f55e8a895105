// The bounds of a span of seconds in a query.
import { malformedArgument } from '@sealpost/protocol';

/** Refuses a span that ends before it begins, or is longer than an answer may be. */
export const checkSpan = (from: number, to: number, secondsMax: number): void => {
  if (to < from) throw malformedArgument('to', to, `a second from ${from} on, where the span begins`);
  if (to - from >= secondsMax)
    throw malformedArgument(
      'to',
      to,
      `a second up to ${from + secondsMax - 1}: at most ${secondsMax} seconds are answered`,
    );
};
