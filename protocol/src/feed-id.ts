// The feed ID of a stream: its format, and the schema version and timestamp resolution in its first two bytes (D16).
import { malformedArgument } from './errors.ts';

declare const feedIdBrand: unique symbol;

/** 32 bytes as `0x` and 64 lower-case hex digits. Made by `parseFeedId` only. */
export type FeedId = `0x${string}` & { readonly [feedIdBrand]: true };

/** Unit of the timestamps inside a stream's report bodies. */
export type TimeResolution = 'seconds' | 'milliseconds';

const feedIdPattern = /^0x[0-9a-fA-F]{64}$/;

/** Parses a feed ID in any case; the result is lower case. */
export function parseFeedId(raw: unknown, argument = 'feedID'): FeedId {
  if (typeof raw !== 'string' || !feedIdPattern.test(raw)) {
    throw malformedArgument(argument, raw, '0x and 64 hex digits');
  }
  return raw.toLowerCase() as FeedId; // it matches the pattern
}

/** Schema version: the low 12 bits of the first two bytes. It may be of a later release. Also takes longer text that starts with a feed ID. */
export const schemaVersionOf = (feedId: string): number => Number.parseInt(feedId.slice(3, 6), 16);

/** Timestamp resolution: the top nibble, 0 for seconds and 1 for milliseconds; undefined for the other fourteen values. */
export function timeResolutionOf(feedId: string): TimeResolution | undefined {
  const nibble = feedId[2];
  if (nibble === '0') return 'seconds';
  return nibble === '1' ? 'milliseconds' : undefined;
}
