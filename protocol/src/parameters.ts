// Parsers of query arguments, one per format, strict and without coercion (D8, D9, D10, D14). api.ts defines the arguments of each route;
// query.ts parses query strings.
import { ApiError, malformedArgument } from './errors.ts';
import { type FeedId, parseFeedId } from './feed-id.ts';
import { realDateMs } from './primitives/real-date.ts';

/** The largest Unix timestamp of a report in seconds. */
export const secondsMax = 2 ** 32 - 1;

const secondsPattern = /^[0-9]{1,10}$/;

/** Parses a Unix timestamp in seconds: decimal digits, at most 2^32 − 1. */
export function parseSeconds(raw: string, argument: string): number {
  const seconds = Number(raw);
  if (secondsPattern.test(raw) && seconds <= secondsMax) return seconds;
  const hint = /^[0-9]{12,14}$/.test(raw) ? ' (this looks like milliseconds: divide by 1000)' : '';
  throw malformedArgument(
    argument,
    raw,
    `a Unix timestamp in seconds, decimal digits only, up to ${secondsMax}${hint}`,
  );
}

/** Parses a whole number in decimal digits, from `min` to `max`, both included. */
export function parseInteger(raw: string, argument: string, min: number, max: number): number {
  const value = Number(raw);
  const digitsMax = String(max).length;
  if (/^[0-9]+$/.test(raw) && raw.length <= digitsMax && value >= min && value <= max) return value;
  throw malformedArgument(argument, raw, `a whole number from ${min} to ${max}`);
}

/** Parses `true` or `false`. */
export function parseBoolean(raw: string, argument: string): boolean {
  if (raw === 'true') return true;
  if (raw === 'false') return false;
  throw malformedArgument(argument, raw, 'true or false');
}

export const daySeconds = 86_400;
export const dayMs = daySeconds * 1_000;

/** A calendar day, as its first millisecond in UTC. */
export type DayStartMs = number;

/** Parses a day that exists, `YYYY-MM-DD`. */
export function parseDay(raw: string, argument: string): DayStartMs {
  const ms = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(raw) ? realDateMs(raw) : Number.NaN; // a date alone is in UTC
  if (!Number.isNaN(ms)) return ms;
  throw malformedArgument(argument, raw, 'a date, YYYY-MM-DD');
}

/** Parses a comma-separated list without empty items. Keeps order and duplicates. */
export function parseList(raw: string, argument: string): readonly string[] {
  const items = raw.split(',');
  if (items.every((item) => item !== '')) return items;
  throw malformedArgument(argument, raw, 'a comma-separated list without empty items');
}

/** Parses a list of names, lower-cased for comparison. */
export const parseNames = (raw: string, argument: string): readonly string[] =>
  parseList(raw, argument).map((name) => name.toLowerCase());

/** Parses a list of feed IDs in order, without duplicates; throws on more than `max`. */
export function parseFeedIds(raw: string, argument: string, max: number): readonly FeedId[] {
  const feedIds = [...new Set(parseList(raw, argument).map((item) => parseFeedId(item, argument)))];
  if (feedIds.length <= max) return feedIds;
  throw new ApiError('malformed_argument', `${argument} names ${feedIds.length} streams, at most ${max} are allowed.`, {
    argument,
    expected: `at most ${max} feed IDs`,
    feedIdsMax: max,
  });
}

/** Throws if a timestamp is past retention; the oldest retained second passes. */
export function checkRetention(seconds: number, nowSeconds: number, retentionDays: number, argument: string): void {
  const oldestTimestamp = nowSeconds - retentionDays * daySeconds;
  if (seconds >= oldestTimestamp) return;
  const text = `Timestamp out of bounds. Timestamp must be within the last ${retentionDays} days.`;
  throw new ApiError('timestamp_out_of_bounds', text, { argument, oldestTimestamp });
}
