// The route table: path, authentication, query arguments, responses. Handlers, client methods, rate-limit buckets and the OpenAPI
// document are derived from it. parameters.ts parses values, query.ts query strings.
import type { BodyName } from './bodies.ts';
import type { dateFilters, nameFilters } from './catalog.ts';
import type { FeedId } from './feed-id.ts';
import { type CandleResolution, limits } from './limits.ts';
import type { DayStartMs } from './parameters.ts';

/** The parsed type of each kind of argument. */
export type ParameterValues = {
  feedId: FeedId;
  feedIds: readonly FeedId[];
  seconds: number;
  limit: number;
  resolution: CandleResolution;
  names: readonly string[];
  day: DayStartMs;
  boolean: boolean;
};

export type ParameterKind = keyof ParameterValues;

/** One query argument: its kind, its name in code (`as`), and its description. */
export type Parameter = {
  readonly kind: ParameterKind;
  readonly as: string;
  readonly required?: true;
  readonly default?: number | boolean;
  /** Another form of the same path: a request with this argument belongs to this row, and may not have the argument named here (D99). */
  readonly insteadOf?: string;
  readonly about: string;
};

/** `required`: all three headers. `optional`: none of them, or all three. `none`: ignored. */
export type RouteAuth = 'required' | 'optional' | 'none';

/** One route. A GET route also answers HEAD. */
export type Route = {
  readonly method: 'GET' | 'HEAD';
  readonly path: string;
  readonly transport: 'http' | 'websocket';
  readonly auth: RouteAuth;
  readonly about: string;
  readonly query: Readonly<Record<string, Parameter>>;
  /** Body per status, apart from the errors that every route shares; null is a response without a JSON body. */
  readonly answers: Readonly<Record<number, BodyName | null>>;
  /** Content type of a 200 that is not JSON. */
  readonly contentType?: 'text/html' | 'text/event-stream';
};

const feedId = { kind: 'feedId', as: 'feedId', required: true, about: 'Stream to read.' } as const;
const feedIds = {
  kind: 'feedIds',
  as: 'feedIds',
  required: true,
  about: 'Streams to read, separated by commas.',
} as const;
const missing = {
  kind: 'boolean',
  as: 'missing',
  default: false,
  about: 'List the streams without data in a 206.',
} as const;
const seconds = <A extends string>(as: A, about: string) => ({ kind: 'seconds', as, required: true, about }) as const;
const candleRange = {
  from: seconds('from', 'First second of the range; buckets begin at multiples of the resolution.'),
  to: seconds('to', 'Last second of the range.'),
  resolution: {
    kind: 'resolution',
    as: 'resolution',
    required: true,
    about: 'Seconds of a bucket: 1, 60, 300, 900, 3600, 14400 or 86400.',
  },
} as const;
const names = <A extends string>(as: A, about: string) => ({ kind: 'names', as, about }) as const;
const day = <A extends string>(as: A, about: string) => ({ kind: 'day', as, about }) as const;

const discoveryQuery = {
  base_asset: names('base_asset', 'Base asset of the pair; a comma list means any of them.'),
  quote_asset: names('quote_asset', 'Quote asset of the pair; a comma list means any of them.'),
  asset_class: names('asset_class', 'Broad asset category; a comma list means any of them.'),
  feed_type: names('feed_type', 'Stream category; a comma list means any of them.'),
  attribute_type: names('attribute_type', 'Kind of data reported; a comma list means any of them.'),
  status: names('status', 'Stream status; a comma list means any of them.'),
  network_type: names('network_type', 'Type of the network that serves the stream; a comma list means any of them.'),
  hidden: { kind: 'boolean', as: 'hidden', about: 'Include the hidden streams that the account may read.' },
  created_after: day('created_after', 'Created after this day.'),
  created_before: day('created_before', 'Created before this day.'),
  expected_decommission_after: day('expected_decommission_after', 'Decommission scheduled after this day.'),
  expected_decommission_before: day('expected_decommission_before', 'Decommission scheduled before this day.'),
  decommissioned_after: day('decommissioned_after', 'Decommissioned after this day.'),
  decommissioned_before: day('decommissioned_before', 'Decommissioned before this day.'),
} as const satisfies Record<
  keyof typeof nameFilters | `${keyof typeof dateFilters}_${'after' | 'before'}` | 'hidden',
  Parameter
>;

/** Every route of the service. */
export const routes = {
  discovery: {
    method: 'GET',
    path: '/api/v1/discovery',
    transport: 'http',
    auth: 'optional',
    about: 'Catalog of streams, filtered.',
    query: discoveryQuery,
    answers: { 200: 'Catalog' },
  },
  feeds: {
    method: 'GET',
    path: '/api/v1/feeds',
    transport: 'http',
    auth: 'required',
    about: 'Feed IDs of the streams that the caller may read.',
    query: {},
    answers: { 200: 'Feeds' },
  },
  reportAt: {
    method: 'GET',
    path: '/api/v1/reports',
    transport: 'http',
    auth: 'required',
    about: 'The report that is valid at a timestamp.',
    query: { feedID: feedId, timestamp: seconds('timestamp', 'Time for which the report is returned.') },
    answers: { 200: 'OneReport', 304: null, 404: 'ReportMiss' },
  },
  reportLatest: {
    method: 'GET',
    path: '/api/v1/reports/latest',
    transport: 'http',
    auth: 'required',
    about: 'The report with the latest timestamp.',
    query: { feedID: feedId },
    answers: { 200: 'OneReport', 304: null, 404: 'ReportMiss' },
  },
  reportLatestMany: {
    method: 'GET',
    path: '/api/v1/reports/latest',
    transport: 'http',
    auth: 'required',
    about: 'The newest reports of several streams, in the order asked for. Sealpost extension.',
    query: { feedIDs: { ...feedIds, insteadOf: 'feedID' }, missing },
    answers: { 200: 'Reports', 206: 'PartialReports' },
  },
  reportBulk: {
    method: 'GET',
    path: '/api/v1/reports/bulk',
    transport: 'http',
    auth: 'required',
    about: 'The reports of several streams at one timestamp, in the order asked for.',
    query: {
      feedIDs: feedIds,
      timestamp: seconds('timestamp', 'Time for which the reports are returned.'),
      missing,
    },
    answers: { 200: 'Reports', 206: 'PartialReports' },
  },
  reportPage: {
    method: 'GET',
    path: '/api/v1/reports/page',
    transport: 'http',
    auth: 'required',
    about: 'Sequential reports of one stream, oldest first.',
    query: {
      feedID: feedId,
      startTimestamp: seconds(
        'startTimestamp',
        'The page begins with the first report observed at or after this time.',
      ),
      limit: {
        kind: 'limit',
        as: 'limit',
        default: limits.pageLimitDefault,
        about: 'Number of reports, at most 1000.',
      },
    },
    answers: { 200: 'Reports' },
  },
  reportCoverage: {
    method: 'GET',
    path: '/api/v1/reports/coverage',
    transport: 'http',
    auth: 'required',
    about: 'Gaps and completeness of a stream over at most a day; costs a token per 6 hours. Sealpost extension.',
    query: {
      feedID: feedId,
      from: seconds('from', 'First second of the range.'),
      to: seconds('to', 'Last second of the range.'),
    },
    answers: { 200: 'Coverage' },
  },
  reportCoverageMany: {
    method: 'GET',
    path: '/api/v1/reports/coverage/bulk',
    transport: 'http',
    auth: 'required',
    about:
      'Completeness of several streams by hour over at most a day, in the order asked for; costs a token per 4 streams and day. Sealpost extension.',
    query: {
      feedIDs: feedIds,
      from: seconds('from', 'First second of the range.'),
      to: seconds('to', 'Last second of the range.'),
    },
    answers: { 200: 'CoverageMany' },
  },
  reportCandles: {
    method: 'GET',
    path: '/api/v1/reports/candles',
    transport: 'http',
    auth: 'required',
    about:
      'Open, high, low and close as exact integers; empty buckets are absent, and reports of an unknown schema do not count. Costs a token per 1,440 roll-ups, or 6 minutes of seconds. Sealpost extension.',
    query: { feedID: feedId, ...candleRange },
    answers: { 200: 'Candles' },
  },
  reportCandlesMany: {
    method: 'GET',
    path: '/api/v1/reports/candles/bulk',
    transport: 'http',
    auth: 'required',
    about:
      'Candles of several streams, in the order asked for; at most 20,000 buckets in all. Costs a token per 1,440 roll-ups, or 6 minutes of seconds, of all streams together. Sealpost extension.',
    query: { feedIDs: feedIds, ...candleRange },
    answers: { 200: 'CandlesMany' },
  },
  reportStream: {
    method: 'GET',
    path: '/api/v1/reports/stream',
    transport: 'http',
    auth: 'required',
    about: 'Live reports as server-sent events, resumed with Last-Event-ID. Sealpost extension.',
    query: { feedIDs: feedIds },
    answers: { 200: null },
    contentType: 'text/event-stream',
  },
  origins: {
    method: 'HEAD',
    path: '/',
    transport: 'http',
    auth: 'optional',
    about: 'Origins that a client may connect to, in X-Cll-Available-Origins.',
    query: {},
    answers: { 200: null },
  },
  socket: {
    method: 'GET',
    path: '/api/v1/ws',
    transport: 'websocket',
    auth: 'required',
    about: 'Live reports, one binary message each.',
    query: { feedIDs: feedIds },
    answers: { 101: null },
  },
  socketMs: {
    method: 'GET',
    path: '/api/v2/ws',
    transport: 'websocket',
    auth: 'required',
    about: 'Live reports, with timestamps in milliseconds.',
    query: { feedIDs: feedIds },
    answers: { 101: null },
  },
  time: {
    method: 'GET',
    path: '/time',
    transport: 'http',
    auth: 'none',
    about: 'The clock that signed timestamps are compared with.',
    query: {},
    answers: { 200: 'ServerTime' },
  },
  signers: {
    method: 'GET',
    path: '/signers.json',
    transport: 'http',
    auth: 'none',
    about: 'The signer sets that reports verify against.',
    query: {},
    answers: { 200: 'SignerSets' },
  },
  status: {
    method: 'GET',
    path: '/status.json',
    transport: 'http',
    auth: 'none',
    about: 'Status of the service: readiness, ingest lag, streams that are behind.',
    query: {},
    answers: { 200: 'Status' },
  },
  openapi: {
    method: 'GET',
    path: '/openapi.json',
    transport: 'http',
    auth: 'none',
    about: 'This API as an OpenAPI 3.1 document, with the limits of the deployment.',
    query: {},
    answers: { 200: 'OpenApi' },
  },
  docs: {
    method: 'GET',
    path: '/docs',
    transport: 'http',
    auth: 'none',
    about: 'The same document as a web page.',
    query: {},
    answers: { 200: null },
    contentType: 'text/html',
  },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof routes;

/** The argument that selects this route among those with the same method and path; undefined for other routes. */
export const formOf = ({ query }: Route): string | undefined =>
  Object.keys(query).find((name) => query[name]?.insteadOf !== undefined);

/** A route's path, with the argument that selects it: its name in documents, logs and metrics. */
export function routeLabel(route: Route): string {
  const form = formOf(route);
  return form === undefined ? route.path : `${route.path}?${form}`;
}

/** Whether a route streams for as long as the connection lasts. */
export const isLive = ({ transport, contentType }: Route): boolean =>
  transport === 'websocket' || contentType === 'text/event-stream';

type QueryRows<R extends RouteName> = (typeof routes)[R]['query'];

// An argument that is required or has a default is always present once parsed.
type AlwaysThere = { readonly required: true } | { readonly default: number | boolean };

/** The parsed query of a route, keyed by the names in code. */
export type QueryOf<R extends RouteName> = {
  readonly [K in keyof QueryRows<R> as QueryRows<R>[K] extends AlwaysThere & { as: infer A extends string }
    ? A
    : never]: QueryRows<R>[K] extends { kind: infer P extends ParameterKind } ? ParameterValues[P] : never;
} & {
  readonly [K in keyof QueryRows<R> as QueryRows<R>[K] extends AlwaysThere
    ? never
    : QueryRows<R>[K] extends { as: infer A extends string }
      ? A
      : never]?: QueryRows<R>[K] extends { kind: infer P extends ParameterKind } ? ParameterValues[P] : never;
};
