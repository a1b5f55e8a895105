// The sort order of the catalog page: its columns, what each is sorted by, and its form in the address.
import type { CatalogEntry } from '@sealpost/protocol';
import type { LiveReport } from '../state/live.ts';

/** A sort key. Undefined, for unknown values, comes last in either direction. */
type SortValue = string | number | bigint | undefined;

type LatestOf = (feedId: string) => LiveReport | undefined;

type Column = {
  readonly label: string;
  /** Shown only to signed-in users, or only to anonymous ones. */
  readonly only?: 'signed-in' | 'anonymous';
  readonly value: (stream: CatalogEntry, latestOf: LatestOf) => SortValue;
};

const statusOrder = { live: 0, testing: 1, decommissioned: 2 } as const;

/** Live streams first, those with a scheduled end before the others; then streams in test, then decommissioned ones. */
const statusValue = ({ status, expectedDecommissionAt }: CatalogEntry): number =>
  statusOrder[status] + (expectedDecommissionAt === null ? 0.5 : Date.parse(expectedDecommissionAt) / 2 ** 54);

/** The columns, in their order on the page. */
export const columns = {
  pair: { label: 'Pair', value: ({ baseAsset, quoteAsset }) => `${baseAsset}/${quoteAsset}`.toLowerCase() },
  price: { label: 'Latest price', only: 'signed-in', value: ({ feedId }, latestOf) => latestOf(feedId)?.decoded.price },
  age: {
    label: 'Age',
    only: 'signed-in',
    // By observation time, newest first: ages change all the time, observation times do not.
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

/** Whether the order depends on live reports. */
export const isLiveOrder = ({ column }: Order): boolean => column === 'price' || column === 'age';

/** Parses `sort=-price`; by pair if it is missing or invalid. */
export const readOrder = (query: URLSearchParams): Order => {
  const raw = query.get('sort') ?? '';
  const column = raw.replace(/^-/, '');
  return Object.hasOwn(columns, column)
    ? { column: column as ColumnName, descending: raw.startsWith('-') } // just looked up
    : { column: 'pair', descending: false };
};

/** The query after a click on a column head: sorted by this column, or reversed if it already was. */
export const toggleOrder = (query: URLSearchParams, column: ColumnName): URLSearchParams => {
  const order = readOrder(query);
  const descending = order.column === column && !order.descending;
  const next = new URLSearchParams(query);
  next.delete('sort');
  if (column !== 'pair' || descending) next.set('sort', `${descending ? '-' : ''}${column}`);
  return next;
};

/** Sorts by a column, stable; unknown values come last. */
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
