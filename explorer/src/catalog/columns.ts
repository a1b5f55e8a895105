// The columns of the list of streams: labels, widths, what each is sorted by, and which are shown.
import type { CatalogEntry } from '@sealpost/protocol';
import type { Day } from '../state/days.ts';
import type { LiveReport } from '../state/live-prices.ts';
import type { ColumnChoice } from '../state/settings/list-columns.ts';
import { changeOf } from '../ui/price/change.ts';
import { spreadOf } from '../ui/price/spread.ts';

/** A sort key. Undefined, for unknown values, comes last in either direction. */
export type SortValue = string | number | bigint | undefined;

/** What is known of streams beside the catalog. */
export type LiveValues = {
  readonly latest: (feedId: string) => LiveReport | undefined;
  readonly day: (feedId: string) => Day | undefined;
};

export type Column = {
  readonly label: string;
  /** The least width of its cells. */
  readonly widthPx: number;
  /** On a narrow page, the columns with the lowest rank are left out first. */
  readonly rank: number;
  /** Shown only to signed-in users. */
  readonly needsUser?: true;
  /** Not shown until the user chooses it; `signed-in`: only to anonymous users by default. */
  readonly isOff?: 'always' | 'signed-in';
  /** Without it, the column cannot be sorted by. */
  readonly value?: (stream: CatalogEntry, values: LiveValues) => SortValue;
};

const statusOrder = { live: 0, testing: 1, decommissioned: 2 } as const;

/** Live streams first, those with a scheduled end before the others; then streams in test, then decommissioned ones. */
const statusValue = ({ status, expectedDecommissionAt }: CatalogEntry): number =>
  statusOrder[status] + (expectedDecommissionAt === null ? 0.5 : Date.parse(expectedDecommissionAt) / 2 ** 54);

const negative = (value: number | undefined): number | undefined => (value === undefined ? undefined : -value);

/** By percent, because prices of different streams do not compare. */
const changeValue = ({ feedId }: CatalogEntry, { latest, day }: LiveValues): SortValue => {
  const [from, to] = [day(feedId)?.first, latest(feedId)?.decoded?.price];
  return from === undefined || to === undefined ? undefined : changeOf(from, to).percent;
};

/** The columns, in their order on the page. */
export const columns = {
  pair: {
    label: 'Pair',
    widthPx: 154,
    rank: 99,
    value: ({ baseAsset, quoteAsset }) => `${baseAsset}/${quoteAsset}`.toLowerCase(),
  },
  price: {
    label: 'Latest price',
    widthPx: 128,
    rank: 98,
    needsUser: true,
    value: ({ feedId }, { latest }) => latest(feedId)?.decoded?.price,
  },
  change: { label: 'Change 24 h', widthPx: 108, rank: 97, needsUser: true, value: changeValue },
  trend: { label: 'Trend 24 h', widthPx: 92, rank: 93, needsUser: true },
  spread: {
    label: 'Spread',
    widthPx: 88,
    rank: 92,
    needsUser: true,
    value: ({ feedId }, { latest }) => spreadOf(latest(feedId)?.decoded),
  },
  age: {
    label: 'Age',
    widthPx: 96,
    rank: 95,
    needsUser: true,
    // By observation time, newest first: ages change all the time, observation times do not.
    value: ({ feedId }, { latest }) => negative(latest(feedId)?.observationsMs),
  },
  status: { label: 'Status', widthPx: 140, rank: 94, value: statusValue },
  class: { label: 'Asset class', widthPx: 128, rank: 91, value: ({ assetClass }) => assetClass.toLowerCase() },
  type: {
    label: 'Feed type',
    widthPx: 108,
    rank: 84,
    isOff: 'signed-in',
    value: ({ feedType }) => feedType.toLowerCase(),
  },
  attribute: {
    label: 'Attribute',
    widthPx: 112,
    rank: 83,
    isOff: 'signed-in',
    value: ({ attributeType }) => attributeType.toLowerCase(),
  },
  schema: {
    label: 'Schema',
    widthPx: 80,
    rank: 82,
    isOff: 'signed-in',
    value: ({ schemaVersion }) => Number(schemaVersion.slice(1)),
  },
  hours: {
    label: 'Market hours',
    widthPx: 116,
    rank: 81,
    isOff: 'signed-in',
    value: ({ marketHours }) => marketHours.toLowerCase(),
  },
  feed: { label: 'Feed ID', widthPx: 168, rank: 90, value: ({ feedId }) => feedId },
} as const satisfies Record<string, Column>;

export type ColumnName = keyof typeof columns;
const columnNames = Object.keys(columns) as readonly ColumnName[]; // keys of its own

/** The columns that a user can choose from. */
export const columnsFor = (isSignedIn: boolean): readonly ColumnName[] =>
  columnNames.filter((name) => {
    const { needsUser }: Column = columns[name];
    return isSignedIn || needsUser === undefined;
  });

/** The columns that a user sees who has chosen none. Cards have space for more. */
export const defaultColumns = (isSignedIn: boolean, areCards: boolean): readonly ColumnName[] =>
  columnsFor(isSignedIn).filter((name) => {
    const { isOff }: Column = columns[name];
    if (areCards) return name !== 'hours' || !isSignedIn;
    return isOff === undefined || (isOff === 'signed-in' && !isSignedIn);
  });

/** The default columns with the user's choice, in their order on the page; the pair is always one of them. */
export function visibleColumns(choice: ColumnChoice, isSignedIn: boolean, areCards: boolean): readonly ColumnName[] {
  const byDefault = defaultColumns(isSignedIn, areCards);
  return columnsFor(isSignedIn).filter((name) => name === 'pair' || (choice[name] ?? byDefault.includes(name)));
}

/** The choice after a column is turned on or off: without it if that is the default here, so that the defaults elsewhere stay. */
export function toggleColumn(
  choice: ColumnChoice,
  name: ColumnName,
  isSignedIn: boolean,
  areCards: boolean,
): ColumnChoice {
  const { [name]: _, ...others } = choice;
  const isOn = !visibleColumns(choice, isSignedIn, areCards).includes(name);
  return isOn === defaultColumns(isSignedIn, areCards).includes(name) ? others : { ...others, [name]: isOn };
}

/** Those that fit in a width; the others are left out, lowest rank first. The pair always stays. */
export function fitColumns(visible: readonly ColumnName[], widthPx: number): readonly ColumnName[] {
  const byRank = visible.toSorted((a, b) => columns[b].rank - columns[a].rank);
  let left = widthPx;
  const fitting = new Set<ColumnName>();
  for (const name of byRank) {
    left -= columns[name].widthPx;
    if (left < 0 && name !== 'pair') break;
    fitting.add(name);
  }
  return visible.filter((name) => fitting.has(name));
}
