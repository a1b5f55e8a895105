// The order of the catalog page: its columns, what each is sorted by, and how the address says it.
import type { CatalogEntry } from '@sealpost/protocol';
import type { LiveReport } from '../state/live.ts';

/** What a column can be sorted by. Unknown values, undefined, come last in either direction. */
type SortValue = string | number | bigint | undefined;

type LatestOf = (feedId: string) => LiveReport | undefined;

type Column = {
  readonly label: string;
  /** Shown to those who are signed in, or to all others, alone. */
  readonly only?: 'signed-in' | 'anonymous';
  readonly value: (stream: CatalogEntry, latestOf: LatestOf) => SortValue;
};

const statusOrder = { live: 0, testing: 1, decommissioned: 2 } as const;

/** Live streams by their end, where one is scheduled; then those in test, then those that are over. */
const statusValue = ({ status, expectedDecommissionAt }: CatalogEntry): number =>
  statusOrder[status] + (expectedDecommissionAt === null ? 0.5 : Date.parse(expectedDecommissionAt) / 2 ** 54);

/** The columns, in their order on the page. */
export const columns = {
  pair: { label: 'Pair', value: ({ baseAsset, quoteAsset }) => `${baseAsset}/${quoteAsset}`.toLowerCase() },
  price: { label: 'Latest price', only: 'signed-in', value: ({ feedId }, latestOf) => latestOf(feedId)?.decoded.price },
  age: {
    label: 'Age',
    only: 'signed-in',
    // The newest first: an age grows while it is looked at, a moment stays.
    value: ({ feedId }, latestOf) => negative(latestOf(feedId)?.decoded.observationsMs),
  },
  status: { label: 'Status', value: statusValue },
  class: { label: 'Asset class', value: ({ assetClass }) => assetClass.toLowerCase() },
  type: { label: 'Feed type', value: ({ feedType }) => feedType.toLowerCase() },
  attribute: { label: 'Attribute', value: ({ attributeType }) => attributeType.toLowerCase() },
  schema: { label: 'Schema', value: ({ schemaVersion }) => Number(schemaVersion.slice(1)) },
  hours: { label: 'Market hours', only: 'anonymous', value: ({ marketHours }) => marketHours.toLowerCase() },
  feed: { label: 'Feed ID', value: ({ feedId }) => feedId },
} as const satisfies Record<string, Column>;

export type ColumnName = keyof typeof columns;
const columnNames = Object.keys(columns) as readonly ColumnName[]; // keys of its own

export type Order = { readonly column: ColumnName; readonly descending: boolean };

const negative = (value: number | undefined): number | undefined => (value === undefined ? undefined : -value);

/** The columns that are shown. */
export const columnsFor = (isSignedIn: boolean): readonly ColumnName[] =>
  columnNames.filter((name) => {
    const { only }: Column = columns[name];
    return only === undefined || (only === 'signed-in') === isSignedIn;
  });

/** Does the order depend on reports, which come in as time goes by? */
export const isLiveOrder = ({ column }: Order): boolean => column === 'price' || column === 'age';

/** Reads `sort=-price`; by pair where nothing, or nonsense, is given. */
export const readOrder = (query: URLSearchParams): Order => {
  const raw = query.get('sort') ?? '';
  const column = raw.replace(/^-/, '');
  return Object.hasOwn(columns, column)
    ? { column: column as ColumnName, descending: raw.startsWith('-') } // just looked up
    : { column: 'pair', descending: false };
};

/** The query after a click on a column's head: by this column, or the other way round where it was by it already. */
export const toggleOrder = (query: URLSearchParams, column: ColumnName): URLSearchParams => {
  const order = readOrder(query);
  const descending = order.column === column && !order.descending;
  const next = new URLSearchParams(query);
  next.delete('sort');
  if (column !== 'pair' || descending) next.set('sort', `${descending ? '-' : ''}${column}`);
  return next;
};

/** Sorted by a column; streams that are alike in it stay in the catalog's order, unknown values come last. */
export const sortStreams = (
  streams: readonly CatalogEntry[],
  { column, descending }: Order,
  latestOf: LatestOf,
): readonly CatalogEntry[] => {
  const { value }: Column = columns[column];
  const sign = descending ? -1 : 1;
  return streams
    .map((stream) => ({ stream, by: value(stream, latestOf) }))
    .sort((a, b) => compare(a.by, b.by, sign))
    .map(({ stream }) => stream);
};

const compare = (a: SortValue, b: SortValue, sign: number): number => {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  return a < b ? -sign : a > b ? sign : 0;
};
