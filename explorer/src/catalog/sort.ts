// The sort order of the list of streams, and its form in the address.
import type { CatalogEntry } from '@sealpost/protocol';
import { shorten } from '../ui/format.ts';
import { type Column, type ColumnName, columns, type LiveValues, type SortValue } from './columns.ts';

export type Order = { readonly column: ColumnName; readonly descending: boolean };

export function isSortable(name: ColumnName): boolean {
  const { value }: Column = columns[name];
  return value !== undefined;
}

const liveColumns: readonly ColumnName[] = ['price', 'change', 'spread', 'age'];

/** Whether the order depends on live reports. */
export const isLiveOrder = ({ column }: Order): boolean => liveColumns.includes(column);

/** The column of `sort=-price`, in any case; undefined if there is no such column to sort by. */
const columnOf = (raw: string): ColumnName | undefined => {
  const name = raw.replace(/^-/, '').toLowerCase();
  return Object.hasOwn(columns, name) && isSortable(name as ColumnName) ? (name as ColumnName) : undefined; // just looked up
};

/** Parses `sort=-price`; by pair if it is missing or invalid. */
export function readOrder(query: URLSearchParams): Order {
  const raw = query.get('sort') ?? '';
  const column = columnOf(raw);
  return column === undefined ? { column: 'pair', descending: false } : { column, descending: raw.startsWith('-') };
}

/** Why the order in the address is ignored; undefined if it is not. */
export function orderProblem(query: URLSearchParams): string | undefined {
  const raw = query.get('sort');
  return raw === null || columnOf(raw) !== undefined
    ? undefined
    : `there is no column ${JSON.stringify(shorten(raw))} to sort by.`;
}

/** The query after a click on a column head: sorted by this column, or reversed if it already was. */
export function toggleOrder(query: URLSearchParams, column: ColumnName): URLSearchParams {
  const order = readOrder(query);
  const descending = order.column === column && !order.descending;
  const next = new URLSearchParams(query);
  next.delete('sort');
  if (column !== 'pair' || descending) next.set('sort', `${descending ? '-' : ''}${column}`);
  return next;
}

/** Sorts by a column, stable; unknown values come last. */
export function sortStreams(
  streams: readonly CatalogEntry[],
  { column, descending }: Order,
  values: LiveValues,
): readonly CatalogEntry[] {
  const { value }: Column = columns[column];
  const sign = descending ? -1 : 1;
  return streams
    .map((stream) => ({ stream, by: value?.(stream, values) }))
    .sort((a, b) => compare(a.by, b.by, sign))
    .map(({ stream }) => stream);
}

const compare = (a: SortValue, b: SortValue, sign: number): number => {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  return a < b ? -sign : a > b ? sign : 0;
};
