// The catalog: streams, status transitions, the discovery filter (D11–D13). Here `hidden` is only a property of a stream; entitlements
// decide who may see it.
import type { Body } from './bodies.ts';
import { ApiError, malformedArgument } from './errors.ts';
import { type FeedId, parseFeedId, schemaVersionOf } from './feed-id.ts';
import { type DayStartMs, dayMs } from './parameters.ts';
import { realDateMs } from './primitives/real-date.ts';

/** Status values in the order of a stream's life, each with those that may follow it. */
export const statusTransitions = {
  testing: ['live'],
  live: ['decommissioned'],
  decommissioned: [],
} as const satisfies Record<string, readonly string[]>;

export type StreamStatus = keyof typeof statusTransitions;

export const networkTypes = ['mainnet', 'testnet'] as const;

export type NetworkType = (typeof networkTypes)[number];

/** A stream. Dates are RFC 3339 in UTC with microseconds; the schema version is in the feed ID. */
export type Stream = {
  readonly feedId: FeedId;
  readonly name: string;
  readonly assetName: string;
  readonly baseAsset: string;
  readonly quoteAsset: string;
  readonly assetClass: string;
  readonly feedType: string;
  readonly attributeType: string;
  readonly marketHours: string;
  readonly serviceLevel: string;
  readonly networkType: NetworkType;
  readonly status: StreamStatus;
  readonly createdAt: string;
  readonly expectedDecommissionAt: string | null;
  /** Set exactly when the status is `decommissioned`. */
  readonly decommissionedAt: string | null;
  readonly hidden: boolean;
};

/** A stream as the catalog lists it, without `hidden`. */
export type CatalogEntry = Body<'CatalogEntry'>;

/** Renders a stream for the catalog, keys in the documented order. */
export const toCatalogEntry = (stream: Stream): CatalogEntry => ({
  feedId: stream.feedId,
  name: stream.name,
  assetName: stream.assetName,
  baseAsset: stream.baseAsset,
  quoteAsset: stream.quoteAsset,
  assetClass: stream.assetClass,
  feedType: stream.feedType,
  attributeType: stream.attributeType,
  marketHours: stream.marketHours,
  schemaVersion: `V${schemaVersionOf(stream.feedId)}`,
  serviceLevel: stream.serviceLevel,
  networkType: stream.networkType,
  status: stream.status,
  createdAt: stream.createdAt,
  expectedDecommissionAt: stream.expectedDecommissionAt,
  decommissionedAt: stream.decommissionedAt,
});

/** Changes the status of a stream; decommissioning sets `decommissionedAt`. Throws if the transition is not allowed. */
export function moveStream(stream: Stream, status: StreamStatus, atMs: number): Stream {
  const allowed: readonly StreamStatus[] = statusTransitions[stream.status];
  if (allowed.length === 0)
    throw new ApiError('malformed_argument', `${stream.name} is ${stream.status}, which is permanent.`, {
      argument: 'status',
    });
  if (!allowed.includes(status))
    throw malformedArgument('status', status, `${allowed.join(' or ')}, since ${stream.name} is ${stream.status}`);
  return { ...stream, status, decommissionedAt: status === 'decommissioned' ? formatDate(atMs) : null };
}

/** Formats milliseconds as a date of the catalog: RFC 3339, UTC, six decimals. */
export const formatDate = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');

const textFields = [
  'name',
  'assetName',
  'baseAsset',
  'quoteAsset',
  'assetClass',
  'feedType',
  'attributeType',
  'marketHours',
  'serviceLevel',
] as const;

type TextField = (typeof textFields)[number];

/** Parses a stream of a catalog file or a catalog entry; `at` is its place in the caller's file, for errors. */
export function parseStream(raw: unknown, at = 'stream'): Stream {
  if (typeof raw !== 'object' || raw === null) throw malformedArgument(at, raw, 'an object');
  const entry = raw as Record<string, unknown>; // every key is checked as it is read
  const feedId = parseFeedId(entry.feedId, `${at}.feedId`);
  const schemaVersion = `V${schemaVersionOf(feedId)}`;
  if (entry.schemaVersion !== undefined && entry.schemaVersion !== schemaVersion) {
    throw malformedArgument(`${at}.schemaVersion`, entry.schemaVersion, `${schemaVersion}, as in the feed ID`);
  }
  const texts = Object.fromEntries(textFields.map((key) => [key, parseText(entry[key], `${at}.${key}`)]));
  const status = parseOneOf(entry.status, Object.keys(statusTransitions) as StreamStatus[], `${at}.status`); // its own keys
  const decommissionedAt = parseDate(entry.decommissionedAt ?? null, `${at}.decommissionedAt`);
  if ((status === 'decommissioned') !== (decommissionedAt !== null)) {
    throw malformedArgument(
      `${at}.decommissionedAt`,
      decommissionedAt,
      'a date exactly when the status is decommissioned',
    );
  }
  return {
    feedId,
    ...(texts as Record<TextField, string>), // every text field was parsed above
    networkType: parseOneOf(entry.networkType, networkTypes, `${at}.networkType`),
    status,
    createdAt: parseDate(entry.createdAt, `${at}.createdAt`) ?? requireDate(`${at}.createdAt`),
    expectedDecommissionAt: parseDate(entry.expectedDecommissionAt ?? null, `${at}.expectedDecommissionAt`),
    decommissionedAt,
    hidden: parseFlag(entry.hidden ?? false, `${at}.hidden`),
  };
}

/** Parses a catalog file: `{"feeds": […]}` or a bare list. Feed IDs must be unique. */
export function parseCatalog(raw: unknown, at = 'catalog'): readonly Stream[] {
  const list = typeof raw === 'object' && raw !== null && 'feeds' in raw ? raw.feeds : raw;
  if (!Array.isArray(list)) throw malformedArgument(at, raw, 'a list of streams, or {"feeds": [ … ]}');
  const streams = list.map((entry, i) => parseStream(entry, `${at}[${i}]`));
  const seen = new Set<FeedId>();
  for (const { feedId } of streams) {
    if (seen.has(feedId))
      throw new ApiError('repeated_argument', `${at} lists ${feedId} more than once.`, { argument: at });
    seen.add(feedId);
  }
  return streams;
}

const parseText = (raw: unknown, at: string): string => {
  if (typeof raw === 'string' && raw !== '') return raw;
  throw malformedArgument(at, raw, 'a text');
};

const parseOneOf = <T extends string>(raw: unknown, values: readonly T[], at: string): T => {
  const value = values.find((known) => known === raw);
  if (value !== undefined) return value;
  throw malformedArgument(at, raw, values.join(' or '));
};

const parseFlag = (raw: unknown, at: string): boolean => {
  if (typeof raw === 'boolean') return raw;
  throw malformedArgument(at, raw, 'true or false');
};

const datePattern = /^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6}))?Z$/;

// Date.parse keeps milliseconds only, so the six digits are carried over as text.
const parseDate = (raw: unknown, at: string): string | null => {
  if (raw === null) return null;
  const match = typeof raw === 'string' ? datePattern.exec(raw) : null;
  const wholeSeconds = match?.[1];
  if (wholeSeconds !== undefined && !Number.isNaN(realDateMs(`${wholeSeconds}Z`)))
    return `${wholeSeconds}.${(match?.[2] ?? '').padEnd(6, '0')}Z`;
  throw malformedArgument(at, raw, 'an RFC 3339 date in UTC such as 2025-01-31T12:00:00.000000Z');
};

const requireDate = (at: string): never => {
  throw malformedArgument(at, null, 'a date');
};

/** The string filters of discovery: query parameter → the stream's field it is compared with. */
export const nameFilters = {
  base_asset: 'baseAsset',
  quote_asset: 'quoteAsset',
  asset_class: 'assetClass',
  feed_type: 'feedType',
  attribute_type: 'attributeType',
  status: 'status',
  network_type: 'networkType',
} as const satisfies Record<string, keyof Stream>;

/** The date filters of discovery: prefix of the `_after` and `_before` parameters → the stream's field. */
export const dateFilters = {
  created: 'createdAt',
  expected_decommission: 'expectedDecommissionAt',
  decommissioned: 'decommissionedAt',
} as const satisfies Record<string, keyof Stream>;

type DateFilterName = `${keyof typeof dateFilters}_${'after' | 'before'}`;

/** A parsed discovery query: names lower-cased, days as their start in milliseconds. */
export type DiscoveryFilter = { readonly [N in keyof typeof nameFilters]?: readonly string[] | undefined } & {
  readonly [N in DateFilterName]?: DayStartMs | undefined;
} & {
  /** Includes hidden streams; the server decides whether the caller may see them. */
  readonly hidden?: boolean | undefined;
};

/** The fields that filters compare; a catalog entry has them too. */
type Filtered = Pick<
  Stream,
  (typeof nameFilters)[keyof typeof nameFilters] | (typeof dateFilters)[keyof typeof dateFilters]
>;

const objectKeys = <T extends object>(value: T) => Object.keys(value) as (keyof T)[]; // its own keys
// Made once: every stream of a catalog is compared by them.
const [nameFilterKeys, dateFilterKeys] = [objectKeys(nameFilters), objectKeys(dateFilters)];

/** Whether the stream passes every filter. `hidden` is ignored: query parameters never widen access. */
export const matchesFilter = (filter: DiscoveryFilter, stream: Filtered): boolean =>
  nameFilterKeys.every((name) => filter[name]?.includes(stream[nameFilters[name]].toLowerCase()) ?? true) &&
  dateFilterKeys.every((prefix) =>
    matchDate(stream[dateFilters[prefix]], filter[`${prefix}_after`], filter[`${prefix}_before`]),
  );

// Strict on both sides: after D means from the next day's first instant, before D ends before D's first instant.
const matchDate = (date: string | null, after?: DayStartMs, before?: DayStartMs): boolean => {
  if (after === undefined && before === undefined) return true;
  if (date === null) return false;
  const ms = Date.parse(date);
  return (after === undefined || ms >= after + dayMs) && (before === undefined || ms < before);
};

/** Catalog order: by name, then by feed ID, compared by code unit so that every machine agrees. */
export const compareStreams = (a: Stream, b: Stream): number =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : a.feedId < b.feedId ? -1 : a.feedId > b.feedId ? 1 : 0;
