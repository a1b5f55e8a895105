// Parses what an operator types about an account: name, user ID, rate limits, entitlements. Stricter than reading stored values: a misspelled
// filter argument would be ignored, and so grant every public stream.
import { ApiError, type FeedId, malformedArgument, routes, uuidPattern } from '@sealpost/protocol';
import { parseEntitlement } from './entitlements.ts';

/** Entitlements of one account. */
const entitlementsMax = 1_000;

/** Reads a user id, a UUID in any case; in lower case. */
export function parseAccountId(raw: string): string {
  if (uuidPattern.test(raw)) return raw.toLowerCase();
  throw malformedArgument('user ID', raw, 'a UUID such as 123e4567-e89b-42d3-a456-426614174000');
}

/** Reads a name: one line, and no UUID, so that it is never taken for a user id. */
export function parseAccountName(raw: string): string {
  const name = raw.trim();
  if (/^\P{C}{1,100}$/u.test(name) && !uuidPattern.test(name)) return name;
  throw malformedArgument('name', raw, 'one line of 1 to 100 characters that is not a UUID');
}

/** Routes with their own limit, and `*` for all others. */
export const limitedRoutes: readonly string[] = [
  '*',
  ...Object.entries(routes).flatMap(([name, { auth }]) => (auth === 'none' ? [] : [name])),
];

const requestsPerSecondMax = 1_000_000;

/** Reads `ROUTE=N` limits, requests per second by route. 0 means none. */
export function parseRateLimits(raws: readonly string[]): Readonly<Record<string, number>> {
  const limits = new Map<string, number>();
  for (const raw of raws) {
    const [, route = '', digits = ''] = /^([A-Za-z*]+)=([0-9]{1,7})$/.exec(raw) ?? [];
    if (!limitedRoutes.includes(route) || Number(digits) > requestsPerSecondMax || limits.has(route)) {
      const expected = `ROUTE=N once for a route, with requests per second up to ${requestsPerSecondMax} or 0 for no limit; routes are ${limitedRoutes.join(', ')}`;
      throw malformedArgument('limit', raw, expected);
    }
    limits.set(route, Number(digits));
  }
  return Object.fromEntries(limits);
}

/** Limits after a change: `ROUTE=N` sets one, `ROUTE=default` gives the route back to the server's own; others stay. */
export function changeRateLimits(
  current: Readonly<Record<string, number>>,
  raws: readonly string[],
): Readonly<Record<string, number>> {
  const isBack = (raw: string) => raw.endsWith('=default');
  const back = raws.filter(isBack).map((raw) => raw.slice(0, raw.indexOf('=')));
  const set = parseRateLimits(raws.filter((raw) => !isBack(raw)));
  const wrong = back.find((route, i) => !limitedRoutes.includes(route) || route in set || back.indexOf(route) !== i);
  if (wrong !== undefined)
    throw malformedArgument('limit', `${wrong}=default`, `each route once, of ${limitedRoutes.join(', ')}`);
  const kept = Object.entries(current).filter(([route]) => !back.includes(route));
  return { ...Object.fromEntries(kept), ...set };
}

// Hidden streams go by id only, so that a filter on `hidden` could not mean what it says.
const filterArguments = Object.keys(routes.discovery.query).filter((name) => name !== 'hidden');

/** Reads an entitlement that shall be given; feed ids in lower case. */
export function parseNewEntitlement(raw: string): string {
  const grant = parseEntitlement(raw);
  if (grant.kind === 'feed') return `feed:${grant.feedId}`;
  if (grant.kind === 'public') return raw;
  for (const pair of raw.slice('filter:'.length).split('&')) {
    const [name = ''] = pair.split('=');
    if (!filterArguments.includes(name))
      throw malformedArgument('entitlement', raw, `a filter by some of ${filterArguments.join(', ')}`);
  }
  return raw;
}

/** What to do with entitlements: replace them all, or take some away and put some on. */
export type EntitlementChange = {
  readonly set?: readonly string[];
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
};

/** Entitlements after a change, each once, in the order in which they were given. Removing one that is absent is an error. */
export function changeEntitlements(current: readonly string[], change: EntitlementChange): readonly string[] {
  const { add = [], remove = [], set } = change;
  const missing = remove.find((entitlement) => !current.includes(entitlement));
  if (missing !== undefined)
    throw refusal(`${missing} is not an entitlement of the account. List them with: sealpost account show.`);
  const kept = (set ?? current).filter((entitlement) => !remove.includes(entitlement));
  const changed = [...new Set([...kept, ...add])];
  if (changed.length <= entitlementsMax) return changed;
  throw refusal(
    `An account has at most ${entitlementsMax} entitlements, not ${changed.length}. Use a filter for many streams.`,
  );
}

const refusal = (text: string): ApiError => new ApiError('malformed_argument', text, { argument: 'entitlement' });

/** Streams that entitlements name and the catalog does not have. */
export const unknownFeeds = (
  entitlements: readonly string[],
  streams: ReadonlyMap<FeedId, unknown>,
): readonly FeedId[] =>
  entitlements.flatMap((entitlement) => {
    const grant = parseEntitlement(entitlement);
    return grant.kind === 'feed' && !streams.has(grant.feedId) ? [grant.feedId] : [];
  });
