// Lag and availability of streams over the last day, for the table of the status page: what is asked for, the cells of a strip, search and order.
import type { StreamCoverage } from '@sealpost/client';
import type { CatalogEntry } from '@sealpost/protocol';
import type { AddressProblem } from '../ui/address-problem.ts';

const hourSeconds = 3_600;
export const hourCount = 24;

/** Reports of the newest seconds may not have arrived yet, and windows of up to a minute not have ended. */
export const settleSeconds = 90;

/** The range that is measured: the current hour and the 23 before it. */
export function measuredRange(nowMs: number): { readonly from: number; readonly to: number } {
  const to = Math.floor(nowMs / 1_000) - settleSeconds;
  return { from: Math.floor(to / hourSeconds) * hourSeconds - (hourCount - 1) * hourSeconds, to };
}

/** What is known of a stream. */
export type Measured = {
  readonly coverage: StreamCoverage;
  readonly range: { readonly from: number; readonly to: number };
  /** Age of the newest observation when it was measured; undefined if there is none. */
  readonly lagMs: number | undefined;
};

export const toMeasured = (coverage: StreamCoverage, range: Measured['range'], nowMs: number): Measured => ({
  coverage,
  range,
  lagMs: coverage.newestMs === undefined ? undefined : Math.max(0, nowMs - coverage.newestMs),
});

/** Covered seconds over measured ones; undefined if nothing was measured. */
export const shareOf = ({ coverage, range }: Measured): number | undefined =>
  coverage.from === undefined ? undefined : coverage.coveredSeconds / (range.to - coverage.from + 1);

/** In percent, rounded down, so that only complete coverage reads 100 %. */
export const formatAvailability = (share: number): string => `${Math.floor(share * 10_000) / 100} %`;

export type CellGrade = 'whole' | 'partly' | 'none' | 'unknown';

export type StripCell = { readonly from: number; readonly grade: CellGrade; readonly text: string };

const gradeOf = (share: number | undefined): CellGrade => {
  if (share === undefined) return 'unknown';
  if (share >= 1) return 'whole';
  return share > 0 ? 'partly' : 'none';
};

/** An hour each, oldest first. Hours before a stream's first report are unknown. */
export function stripOf({ coverage, range }: Measured): readonly StripCell[] {
  const shares = new Map(coverage.hours.map((hour) => [hour.timestamp, hour.coveredSeconds / hour.seconds]));
  return Array.from({ length: hourCount }, (_, i): StripCell => {
    const from = range.from + i * hourSeconds;
    const share = shares.get(from);
    return { from, grade: gradeOf(share), text: share === undefined ? 'not measured' : formatAvailability(share) };
  });
}

/** The strip in words. */
export function describeStrip(cells: readonly StripCell[]): string {
  const count = (grade: CellGrade): number => cells.filter((cell) => cell.grade === grade).length;
  const parts = [
    `${count('whole')} hours complete`,
    `${count('partly')} partly`,
    `${count('none')} without reports`,
    `${count('unknown')} not measured`,
  ];
  return `Last 24 hours: ${parts.join(', ')}`;
}

export const availabilityColumns = {
  stream: { label: 'Stream', isMeasured: false },
  status: { label: 'Status', isMeasured: false },
  lag: { label: 'Lag', isMeasured: true },
  availability: { label: 'Availability', isMeasured: true },
  gaps: { label: 'Gaps', isMeasured: true },
  longest: { label: 'Longest gap', isMeasured: true },
} as const;

export type AvailabilityColumn = keyof typeof availabilityColumns;
export const availabilityColumnNames = Object.keys(availabilityColumns) as readonly AvailabilityColumn[]; // the table's own keys

export type AvailabilityOrder = { readonly column: AvailabilityColumn; readonly descending: boolean };

/** The order in the address, `sort=lag` or `sort=-lag`; by stream if it names none. */
export function readAvailabilityOrder(raw: string | null): AvailabilityOrder {
  const descending = raw?.startsWith('-') ?? false;
  const column = availabilityColumnNames.find((name) => name === raw?.slice(descending ? 1 : 0));
  return column === undefined ? { column: 'stream', descending: false } : { column, descending };
}

/** What is wrong with `sort` and `page` in the address. A page is the number of one of `pages`. */
export function availabilityProblems(query: URLSearchParams, pages: number): readonly AddressProblem[] {
  const [sort, page] = [query.get('sort'), query.get('page')];
  const isSort = availabilityColumnNames.some((name) => name === sort?.replace(/^-/, ''));
  const isPage = page !== null && /^[1-9][0-9]{0,5}$/.test(page) && Number(page) <= pages;
  return [
    ...(sort === null || isSort
      ? []
      : [{ name: 'sort', text: `sort must be ${availabilityColumnNames.join(', ')}, or one of them after a minus.` }]),
    ...(page === null || isPage
      ? []
      : [{ name: 'page', text: pages === 1 ? 'page must be 1.' : `page must be from 1 to ${pages}.` }]),
  ];
}

export const writeAvailabilityOrder = ({ column, descending }: AvailabilityOrder): string =>
  `${descending ? '-' : ''}${column}`;

/** What a click on a head does: the worst first, then the other way around. */
export function toggleAvailabilityOrder(order: AvailabilityOrder, column: AvailabilityColumn): AvailabilityOrder {
  if (order.column === column) return { column, descending: !order.descending };
  return { column, descending: ['lag', 'gaps', 'longest'].includes(column) };
}

const pairOf = ({ baseAsset, quoteAsset }: CatalogEntry): string => `${baseAsset}/${quoteAsset}`;

/** Streams whose name, pair, asset or feed ID has every word. */
export function searchStreams(streams: readonly CatalogEntry[], text: string): readonly CatalogEntry[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return streams;
  return streams.filter((stream) => {
    const searched = `${pairOf(stream)} ${stream.name} ${stream.assetName} ${stream.feedId}`.toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

/** A measured value to sort by; undefined if it is not known. */
const sortValueOf = (column: AvailabilityColumn, measured: Measured | undefined): number | undefined => {
  if (measured === undefined) return undefined;
  if (column === 'lag') return measured.lagMs;
  const share = shareOf(measured);
  if (share === undefined) return undefined;
  if (column === 'availability') return share;
  return column === 'gaps' ? measured.coverage.gapCount : (measured.coverage.longestGap?.seconds ?? 0);
};

/** Unknown values come last in either direction; equal ones are by pair. */
export function sortByAvailability(
  streams: readonly CatalogEntry[],
  { column, descending }: AvailabilityOrder,
  measuredOf: (feedId: string) => Measured | undefined,
): readonly CatalogEntry[] {
  const sign = descending ? -1 : 1;
  const byPair = (a: CatalogEntry, b: CatalogEntry): number =>
    pairOf(a).localeCompare(pairOf(b)) || a.name.localeCompare(b.name);
  if (column === 'stream') return streams.toSorted((a, b) => sign * byPair(a, b));
  if (column === 'status') return streams.toSorted((a, b) => sign * a.status.localeCompare(b.status) || byPair(a, b));
  const values = new Map(streams.map(({ feedId }) => [feedId, sortValueOf(column, measuredOf(feedId))]));
  return streams.toSorted((a, b) => {
    const [first, second] = [values.get(a.feedId), values.get(b.feedId)];
    if (first === undefined || second === undefined)
      return Number(first === undefined) - Number(second === undefined) || byPair(a, b);
    return sign * (first - second) || byPair(a, b);
  });
}
