// Validates the arguments of calls with the protocol's parsers, before anything is sent.
import {
  type CandleResolution,
  candleResolutions,
  type FeedId,
  limits,
  malformedArgument,
  parseFeedId,
  parseInteger,
  parseSeconds,
} from '@sealpost/protocol';
import { readArgument } from './errors.ts';

/** A feed ID in any case; the result is lower case. */
export const readFeedId = (raw: string): FeedId => readArgument(() => parseFeedId(raw));

/** Feed IDs in the order given, each once. The server limits their number. */
export const readFeedIds = (raw: readonly string[]): readonly FeedId[] =>
  readArgument(() => {
    if (!Array.isArray(raw) || raw.length === 0) throw malformedArgument('feedIDs', raw, 'a list of feed IDs');
    return [...new Set(raw.map((item) => parseFeedId(item, 'feedIDs')))];
  });

/** A Unix timestamp in whole seconds; milliseconds are rejected with a hint. */
export const readSeconds = (raw: number, argument: string): number =>
  readArgument(() => parseSeconds(String(raw), argument));

/** The most reports in a page. */
export const readLimit = (raw: number): number =>
  readArgument(() => parseInteger(String(raw), 'limit', limits.pageLimitMin, limits.pageLimitMax));

/** Seconds of a candle. */
export const readResolution = (raw: number): CandleResolution =>
  readArgument(() => {
    const resolution = candleResolutions.find((seconds) => seconds === raw);
    if (resolution === undefined) throw malformedArgument('resolution', raw, candleResolutions.join(' or '));
    return resolution;
  });

/** A path with its query, in the order given. */
export function targetOf(path: string, query: Readonly<Record<string, string | number | boolean>> = {}): string {
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}
