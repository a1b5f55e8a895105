// The feed ID of a stream: its spelling, and the two facts that its first two bytes carry (D16).
import { malformedArgument } from './errors.ts';

declare const feedIdBrand: unique symbol;

/** 32 bytes as `0x` and 64 lower-case hex digits. Made by `parseFeedId` only. */
export type FeedId = `0x${string}` & { readonly [feedIdBrand]: true };

/** Unit of the timestamps inside a stream's report bodies. */
export type TimeResolution = 'seconds' | 'milliseconds';

const feedIdPattern = /^0x[0-9a-fA-F]{64}$/;

/** Reads a feed ID with hex digits in either case; the result is lower case. */
export const parseFeedId = (raw: unknown, argument = 'feedID'): FeedId => {
  if (typeof raw !== 'string' || !feedIdPattern.test(raw)) {
    throw malformedArgument(argument, raw, '0x and 64 hex digits');
  }
  return raw.toLowerCase() as FeedId; // it matches the pattern
};

/** Version of the report schema: the low 12 bits of the first two bytes. It may be a version of a later release. Takes text that begins like a feed ID. */
export const schemaVersionOf = (feedId: string): number => Number.parseInt(feedId.slice(3, 6), 16);

/** Timestamp resolution: the top nibble. 0 is seconds, 1 milliseconds; undefined for the fourteen that are not assigned. */
export const timeResolutionOf = (feedId: string): TimeResolution | undefined => {
  const nibble = feedId[2];
  if (nibble === '0') return 'seconds';
  return nibble === '1' ? 'milliseconds' : undefined;
};
