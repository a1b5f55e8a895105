// Parses the query of a request by the route table, checks that timestamps are within retention and that the caller may read the streams.
import {
  ApiError,
  checkRetention,
  type FeedId,
  malformedArgument,
  type Parameter,
  parseQuery,
  type QueryLimits,
  type QueryOf,
  type RouteName,
  routes,
} from '@sealpost/protocol';
import { memoise } from '../runtime/kept-values.ts';

export type QueryRules = QueryLimits & { readonly retentionDays: number };

/** Parses the query of a route and rejects timestamps older than retention, before limits and permissions. */
export type QueryReader = <R extends RouteName>(route: R, raw: string, nowMs: number) => QueryOf<R>;

export function createQueryReader(rules: QueryRules): QueryReader {
  const readers = new Map<RouteName, (raw: string, nowMs: number) => unknown>();
  for (const route of Object.keys(routes) as RouteName[]) readers.set(route, createRouteReader(route, rules)); // the table's own keys
  return (route, raw, nowMs) => readers.get(route)?.(raw, nowMs) as QueryOf<typeof route>; // each by its own rows
}

const createRouteReader = (route: RouteName, rules: QueryRules) => {
  const parse = memoise((raw) => parseQuery(route, raw, rules) as Readonly<Record<string, unknown>>); // keyed by the `as` of its rows
  const moments = Object.entries<Parameter>(routes[route].query).filter(([, { kind }]) => kind === 'seconds');
  return (raw: string, nowMs: number): unknown => {
    const query = parse(raw);
    for (const [name, { as }] of moments)
      checkRetention(query[as] as number, Math.floor(nowMs / 1_000), rules.retentionDays, name); // the table says that it is a timestamp
    return query;
  };
};

/** Rejects a query that names a stream the caller may not read; unknown, hidden and forbidden ones alike (D22). */
export function authorise(
  query: { readonly feedId?: FeedId; readonly feedIds?: readonly FeedId[] },
  readable: ReadonlySet<FeedId> | undefined,
): void {
  const { feedId, feedIds = [] } = query;
  const isRefused = (one: FeedId): boolean => readable?.has(one) !== true;
  const refused = feedId !== undefined && isRefused(feedId) ? feedId : feedIds.find(isRefused);
  if (refused === undefined) return;
  const text = `Stream ${refused} does not exist or this account may not read it.`;
  throw new ApiError('stream_not_accessible', text, { feedID: refused });
}

/** Rejects a range that ends before it begins, or is longer than an answer may be. */
export function checkRange(from: number, to: number, secondsMax: number): void {
  if (to < from) throw malformedArgument('to', to, `a second from ${from} on, where the range begins`);
  if (to - from >= secondsMax)
    throw malformedArgument(
      'to',
      to,
      `a second up to ${from + secondsMax - 1}: at most ${secondsMax} seconds are answered`,
    );
}
