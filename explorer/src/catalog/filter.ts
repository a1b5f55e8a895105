// Selects the streams of the catalog page: the API's filters, with the same names in the address and the same rules, and a search over
// names, assets and feed IDs.
import {
  ApiError,
  type CatalogEntry,
  type DiscoveryFilter,
  type dateFilters,
  matchesFilter,
  nameFilters,
  parseQuery,
} from '@sealpost/protocol';

export type NameFilter = keyof typeof nameFilters;
export type DateFilter = `${keyof typeof dateFilters}_${'after' | 'before'}`;

/** The label of each filter. */
export const filterLabels: Readonly<Record<NameFilter | DateFilter | 'hidden', string>> = {
  status: 'Status',
  asset_class: 'Asset class',
  feed_type: 'Feed type',
  attribute_type: 'Attribute',
  base_asset: 'Base asset',
  quote_asset: 'Quote asset',
  network_type: 'Network',
  created_after: 'Created after',
  created_before: 'Created before',
  expected_decommission_after: 'Decommission expected after',
  expected_decommission_before: 'Decommission expected before',
  decommissioned_after: 'Decommissioned after',
  decommissioned_before: 'Decommissioned before',
  hidden: 'Hidden streams',
};

export type FilterName = keyof typeof filterLabels;

// In the order of the labels; protocol's tables say which is which.
const names = Object.keys(filterLabels) as readonly FilterName[]; // keys of its own
export const nameFilterNames = names.filter((name): name is NameFilter => Object.hasOwn(nameFilters, name));
export const dateFilterNames = names.filter(
  (name): name is DateFilter => name !== 'hidden' && !Object.hasOwn(nameFilters, name),
);

/** In the address, `watchlist=true` selects the streams of the watchlist. */
export const watchlistName = 'watchlist';

/** The parsed query of the address. `problems`: filters that are malformed and ignored, with the reason. */
export type CatalogSelection = {
  readonly filter: DiscoveryFilter;
  readonly search: string;
  /** Only streams of the watchlist. */
  readonly isWatched: boolean;
  readonly problems: readonly { readonly name: FilterName | typeof watchlistName; readonly text: string }[];
};

/** Whether the address selects the streams of the watchlist. */
export const isWatchlist = (query: URLSearchParams): boolean => query.get(watchlistName)?.toLowerCase() === 'true';

const watchlistProblems = (query: URLSearchParams): CatalogSelection['problems'] =>
  ['true', 'false'].includes((query.get(watchlistName) ?? 'false').toLowerCase())
    ? []
    : [{ name: watchlistName, text: 'watchlist must be true or false.' }];

/** Reads the query of the address. */
export function readSelection(query: URLSearchParams): CatalogSelection {
  const given = names.filter((name) => query.has(name));
  const read = given.map((name) => readFilter(name, query.getAll(name)));
  return {
    filter: Object.assign({}, ...read.map(({ filter }) => filter)) as DiscoveryFilter, // each is a part of one
    search: (query.get('q') ?? '').trim().toLowerCase(),
    isWatched: isWatchlist(query),
    problems: [
      ...read.flatMap(({ name, problem }) => (problem === undefined ? [] : [{ name, text: problem }])),
      ...watchlistProblems(query),
    ],
  };
}

type ReadFilter = { readonly name: FilterName; readonly filter: DiscoveryFilter; readonly problem?: string };

const readFilter = (name: FilterName, values: readonly string[]): ReadFilter => {
  try {
    return {
      name,
      filter: parseQuery('discovery', new URLSearchParams(values.map((value) => [name, value])).toString()),
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { name, filter: {}, problem: error.message };
  }
};

/** A stream with its search text, lower-cased once instead of at every keystroke. */
export type Searchable = { readonly stream: CatalogEntry; readonly text: string };

export function toSearchable(stream: CatalogEntry): Searchable {
  const { name, assetName, baseAsset, quoteAsset, feedId } = stream;
  return {
    stream,
    text: [name, assetName, `${baseAsset}/${quoteAsset}`, baseAsset, quoteAsset, feedId].join('\n').toLowerCase(),
  };
}

/** The streams to select from. */
export type Selectable = {
  readonly streams: readonly Searchable[];
  readonly hidden: ReadonlySet<string>;
  readonly watchlist: ReadonlySet<string>;
};

/** The matching streams, in the order given. Every word of the search must match. */
export function selectStreams(
  { streams, hidden, watchlist }: Selectable,
  { filter, search, isWatched }: Omit<CatalogSelection, 'problems'>,
): readonly CatalogEntry[] {
  const words = search.split(/\s+/).filter((word) => word !== '');
  const { hidden: isAll, ...others } = filter;
  const isFiltered = Object.values(others).some((value) => value !== undefined);
  return streams
    .filter(
      ({ stream, text }) =>
        words.every((word) => text.includes(word)) &&
        (isAll === true || !hidden.has(stream.feedId)) &&
        (!isWatched || watchlist.has(stream.feedId)) &&
        (!isFiltered || matchesFilter(filter, stream)),
    )
    .map(({ stream }) => stream);
}

/** Per filter value, the rows that have it and match everything else: what choosing the value gives. */
export type RowCounts = {
  readonly of: (name: NameFilter, value: string) => number;
  /** The hidden streams that match. */
  readonly hidden: number;
};

export function countRows(from: Selectable, selection: Omit<CatalogSelection, 'problems'>): RowCounts {
  const without = (change: DiscoveryFilter): readonly CatalogEntry[] =>
    selectStreams(from, { ...selection, filter: { ...selection.filter, ...change } });
  const selected = without({});
  const counts = new Map(
    nameFilterNames.map((name) => {
      const rows = selection.filter[name] === undefined ? selected : without({ [name]: undefined });
      return [name, countValues(rows, name)];
    }),
  );
  const hidden =
    from.hidden.size === 0 ? [] : without({ hidden: true }).filter(({ feedId }) => from.hidden.has(feedId));
  return { of: (name, value) => counts.get(name)?.get(value) ?? 0, hidden: hidden.length };
}

/** A value of a filter, and how many streams have it. */
export type FilterValue = { readonly value: string; readonly count: number };

export type FilterValues = Readonly<Record<NameFilter, readonly FilterValue[]>>;

/** The values of every filter, the most frequent first. */
export const filterValuesOf = (streams: readonly CatalogEntry[]): FilterValues =>
  Object.fromEntries(nameFilterNames.map((name) => [name, sortValues(countValues(streams, name))])) as FilterValues; // of the same names

const sortValues = (counts: ReadonlyMap<string, number>): readonly FilterValue[] =>
  [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));

const countValues = (streams: readonly CatalogEntry[], name: NameFilter): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const stream of streams) {
    const value = stream[nameFilters[name]];
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
};

/** The values of a filter as the address spells them, by what they are compared with; none if the filter is ignored. */
const givenOf = (query: URLSearchParams, name: NameFilter): ReadonlyMap<string, string> => {
  const isIgnored = readFilter(name, query.getAll(name)).problem !== undefined;
  const values = isIgnored ? [] : (query.get(name)?.split(',') ?? []);
  return new Map(values.map((value) => [value.toLowerCase(), value]));
};

/** The values of a filter in the address, each once, lower-cased for comparison; none if the filter is ignored. */
export const chosenOf = (query: URLSearchParams, name: NameFilter): readonly string[] => [
  ...givenOf(query, name).keys(),
];

/** The query with a filter value added, or removed if it was there. */
export function toggleValue(query: URLSearchParams, name: NameFilter, value: string): URLSearchParams {
  const lower = value.toLowerCase();
  const given = new Map(givenOf(query, name));
  if (!given.delete(lower)) given.set(lower, lower);
  return withValue(query, name, [...given.values()].join(','));
}

/** The query with a parameter set, or removed if the value is empty. */
export function withValue(query: URLSearchParams, name: string, value: string): URLSearchParams {
  const next = new URLSearchParams(query);
  if (value === '') next.delete(name);
  else next.set(name, value);
  return next;
}

/** The query without any filter and search; the sort order stays. */
export function withoutFilters(query: URLSearchParams): URLSearchParams {
  const next = new URLSearchParams(query);
  for (const name of [...names, 'q', watchlistName]) next.delete(name);
  return next;
}

/** An active filter value, for its chip; `without` is the query without it. */
export type ActiveFilter = { readonly label: string; readonly without: URLSearchParams };

/** Every active filter value, spelled as in the catalog, or as in the address if no stream has it; not those that are ignored. */
export function activeFilters(query: URLSearchParams, values: FilterValues): readonly ActiveFilter[] {
  const ignored: readonly string[] = readSelection(query).problems.map(({ name }) => name);
  const ofNames = nameFilterNames.flatMap((name) => {
    const spelling = (lower: string) => values[name].find(({ value }) => value.toLowerCase() === lower)?.value;
    return [...givenOf(query, name)].map(([lower, given]) => ({
      label: `${filterLabels[name]}: ${spelling(lower) ?? given}`,
      without: toggleValue(query, name, lower),
    }));
  });
  const ofOthers = [...dateFilterNames, 'hidden' as const]
    .filter((name) => query.has(name) && query.get(name) !== 'false' && !ignored.includes(name))
    .map((name) => ({
      label: name === 'hidden' ? filterLabels.hidden : `${filterLabels[name]} ${query.get(name)}`,
      without: withValue(query, name, ''),
    }));
  const ofWatchlist = isWatchlist(query) ? [{ label: 'Watchlist', without: withValue(query, watchlistName, '') }] : [];
  return [...ofWatchlist, ...ofNames, ...ofOthers];
}
