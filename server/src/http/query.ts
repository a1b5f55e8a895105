// Owns the query of a request as handlers get it: parsed by the route table, moments inside retention, ids the caller may read.
import {
  ApiError,
  checkRetention,
  type FeedId,
  type Parameter,
  parseQuery,
  type QueryLimits,
  type QueryOf,
  type RouteName,
  routes,
} from '@sealpost/protocol';

export type QueryRules = QueryLimits & { readonly retentionDays: number };

/** Reads the query of a route; a moment older than retention is refused with the query, before limits and permissions. */
export const readQuery = <R extends RouteName>(route: R, raw: string, rules: QueryRules, nowMs: number): QueryOf<R> => {
  const query = parseQuery(route, raw, rules);
  const values = query as Readonly<Record<string, unknown>>; // keyed by the `as` of the same rows
  for (const [name, { kind, as }] of Object.entries<Parameter>(routes[route].query)) {
    if (kind === 'seconds') checkRetention(values[as] as number, Math.floor(nowMs / 1_000), rules.retentionDays, name);
  }
  return query;
};

/** Refuses a query that names a stream the caller may not read; unknown, hidden and forbidden ones alike (D22). */
export const authorise = (
  query: { readonly feedId?: FeedId; readonly feedIds?: readonly FeedId[] },
  readable: ReadonlySet<FeedId> | undefined,
): void => {
  const named = query.feedIds ?? (query.feedId === undefined ? [] : [query.feedId]);
  if (named.every((feedId) => readable?.has(feedId))) return;
  throw new ApiError('stream_not_accessible');
};
