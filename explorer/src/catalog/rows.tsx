// The list of streams: a table, or cards on a narrow page. Rows are keyed by index, so that sorting and filtering update rows instead of
// creating new ones. A row whose props are the same is not rendered again.
import type { CatalogEntry } from '@sealpost/protocol';
import type { ComponentChildren, VNode } from 'preact';
import { useRef } from 'preact/hooks';
import { streamHref } from '../state/router.ts';
import { statusKinds } from '../ui/components.tsx';
import { shortId } from '../ui/format.ts';
import { AgeCell, ChangeCell, PriceCell, SpreadCell, StatusCell, TrendCell } from './cells.tsx';
import { type ColumnName, columns } from './columns.ts';
import type { RowScroll } from './scroll.ts';
import { isSortable, type Order } from './sort.ts';
import { listParts } from './window.ts';

/** Row heights in pixels, as set in catalog.css; the row window is computed from them. */
export const rowHeights = { table: 52, cards: 180 } as const;

export type RowsProps<E extends HTMLElement> = {
  readonly streams: readonly CatalogEntry[];
  readonly readable: ReadonlySet<string>;
  readonly watchlist: ReadonlySet<string>;
  readonly shown: readonly ColumnName[];
  readonly scroll: RowScroll<E>;
  /** The row with the keyboard focus. */
  readonly active: number;
  /** By feed ID: what distinguishes a stream from the others of its pair. */
  readonly distinctions: ReadonlyMap<string, string>;
};

type RowProps = {
  readonly row: number;
  readonly count: number;
  readonly stream: CatalogEntry;
  readonly shown: readonly ColumnName[];
  readonly isActive: boolean;
  readonly isReadable: boolean;
  readonly isWatched: boolean;
  readonly distinction: string | undefined;
};

// Cells that never change live are plain functions, not components: fast scrolling creates hundreds of them per frame.
const cells: Readonly<Record<ColumnName, (props: RowProps) => ComponentChildren>> = {
  pair: (props) => (
    <div class="pair-cell">
      {starOf(props)}
      {pairLink(props)}
    </div>
  ),
  price: ({ stream, isReadable }) => <PriceCell stream={stream} isReadable={isReadable} />,
  change: ({ stream }) => <ChangeCell stream={stream} />,
  trend: ({ stream }) => <TrendCell stream={stream} />,
  spread: ({ stream }) => <SpreadCell stream={stream} />,
  age: ({ stream }) => <AgeCell stream={stream} />,
  status: ({ stream }) => statusOf(stream),
  class: ({ stream }) => stream.assetClass,
  type: ({ stream }) => stream.feedType,
  attribute: ({ stream }) => stream.attributeType,
  schema: ({ stream }) => stream.schemaVersion,
  hours: ({ stream }) => stream.marketHours,
  feed: (props) => feedIdOf(props),
};

const pairOf = ({ baseAsset, quoteAsset }: CatalogEntry): string => `${baseAsset}/${quoteAsset}`;

/** The whole row is its link. What distinguishes a stream comes first, so that a narrow column does not cut it off. Only one row is in the tab order; the arrow keys move to the others. */
const pairLink = ({ stream, isActive, distinction }: RowProps) => (
  <a class="pair-link" href={streamHref(stream.feedId)} tabIndex={isActive ? 0 : -1}>
    <span class="pair">{pairOf(stream)}</span>
    <span class="asset-name">
      {distinction === undefined ? stream.assetName : `${distinction} · ${stream.assetName}`}
    </span>
  </a>
);

const starOf = ({ stream, isActive, isWatched }: RowProps) => (
  <button
    type="button"
    class="star quiet"
    aria-label={`Watch ${pairOf(stream)}`}
    aria-pressed={isWatched}
    title={isWatched ? 'Remove from the watchlist (s)' : 'Add to the watchlist (s)'}
    tabIndex={isActive ? 0 : -1}
    data-star={stream.feedId}
  >
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d="m8 1.8 1.9 4 4.4.6-3.2 3.1.8 4.4L8 11.8l-3.9 2.1.8-4.4L1.7 6.4l4.4-.6z" />
    </svg>
  </button>
);

const statusOf = (stream: CatalogEntry) =>
  stream.expectedDecommissionAt === null || stream.status === 'decommissioned' ? (
    <span class={`pill ${statusKinds[stream.status]}`}>{stream.status}</span>
  ) : (
    <StatusCell stream={stream} />
  );

const feedIdOf = ({ stream: { feedId }, isActive }: RowProps) => (
  <span class="feed-id">
    <code title={feedId}>{shortId(feedId)}</code>
    <button
      type="button"
      class="copy quiet"
      aria-label="Copy feed ID"
      title="Copy feed ID"
      tabIndex={isActive ? 0 : -1}
      data-copy={feedId}
    >
      <span class="copy-icon" aria-hidden="true" />
    </button>
  </span>
);

/** The rows and spaces of a list; unchanged rows are the same nodes as before, which Preact skips. */
const useParts = <E extends HTMLElement>(
  { streams, readable, watchlist, distinctions, shown, scroll, active }: RowsProps<E>,
  renderRow: (props: RowProps) => VNode,
  renderSpace: (key: string, rows: number) => VNode,
): readonly VNode[] => {
  const last = useRef<ReadonlyMap<number, { readonly props: RowProps; readonly node: VNode }>>(new Map());
  const known = new Map<number, { readonly props: RowProps; readonly node: VNode }>();
  const parts = listParts(scroll.rows, active, streams.length).flatMap((part) => {
    if (part.kind === 'space') return [renderSpace(part.at, part.rows)];
    const stream = streams[part.row];
    if (stream === undefined) return []; // the window is of a longer list, until the next effect
    const { feedId } = stream;
    const props: RowProps = {
      row: part.row,
      count: streams.length,
      stream,
      shown,
      isActive: part.row === active,
      isReadable: readable.has(feedId),
      isWatched: watchlist.has(feedId),
      distinction: distinctions.get(feedId),
    };
    const before = last.current.get(part.row);
    const same = before !== undefined && isSame(before.props, props) ? before : { props, node: renderRow(props) };
    known.set(part.row, same);
    return [same.node];
  });
  last.current = known;
  return parts;
};

const rowKeys = [
  'row',
  'count',
  'stream',
  'shown',
  'isActive',
  'isReadable',
  'isWatched',
  'distinction',
] as const satisfies readonly (keyof RowProps)[];

const isSame = (a: RowProps, b: RowProps): boolean => rowKeys.every((key) => a[key] === b[key]);

const Head = ({
  name,
  order,
  onSort,
}: {
  readonly name: ColumnName;
  readonly order: Order;
  readonly onSort: (column: ColumnName) => void;
}) => {
  const isSorted = order.column === name;
  const direction = order.descending ? 'descending' : 'ascending';
  const { label, widthPx } = columns[name];
  return (
    <th
      scope="col"
      class={`col-${name}`}
      aria-sort={isSorted ? direction : undefined}
      style={{ width: `${widthPx}px` }}
    >
      {isSortable(name) ? (
        <button type="button" class="sort" onClick={() => onSort(name)}>
          {label}
          <svg class={isSorted ? direction : 'unsorted'} viewBox="0 0 8 10" aria-hidden="true">
            <path d="M4 2 7 7H1z" />
          </svg>
        </button>
      ) : (
        label
      )}
    </th>
  );
};

const tableRow = (props: RowProps) => (
  <tr key={props.row} data-row={props.row} aria-rowindex={props.row + 2} class={props.isActive ? 'active' : ''}>
    {props.shown.map((name) => (
      <td key={name} class={`col-${name}`}>
        {cells[name](props)}
      </td>
    ))}
  </tr>
);

export const CatalogTable = ({
  order,
  onSort,
  ...props
}: RowsProps<HTMLTableSectionElement> & { readonly order: Order; readonly onSort: (column: ColumnName) => void }) => {
  const { streams, shown } = props;
  const parts = useParts(props, tableRow, (key, rows) => (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: an empty row takes no focus
    <tr key={key} class="room" aria-hidden="true">
      <td colSpan={shown.length} style={{ height: `${rows * rowHeights.table}px` }} />
    </tr>
  ));
  return (
    <table class={`catalog-table ${shown.includes('price') ? 'with-prices' : ''}`} aria-rowcount={streams.length + 1}>
      <caption class="unseen">Streams, sorted by {columns[order.column].label}</caption>
      <thead>
        <tr aria-rowindex={1}>
          {shown.map((name) => (
            <Head key={name} name={name} order={order} onSort={onSort} />
          ))}
        </tr>
      </thead>
      <tbody ref={props.scroll.list}>{parts}</tbody>
    </table>
  );
};

/** The facts in a card's last line but one, if their columns are shown. */
const cardFacts = ['class', 'type', 'attribute', 'schema', 'hours'] as const satisfies readonly ColumnName[];

const card = (props: RowProps) => {
  const { row, count, stream, shown } = props;
  const has = (name: ColumnName): boolean => shown.includes(name);
  const facts = cardFacts.filter(has).map((name) => cells[name](props));
  return (
    <li key={row} data-row={row} aria-setsize={count} aria-posinset={row + 1}>
      <div class="card-line">
        {cells.pair(props)}
        {has('price') && <PriceCell stream={stream} isReadable={props.isReadable} />}
      </div>
      <div class="card-day">
        {has('change') ? <ChangeCell stream={stream} /> : <span />}
        {has('trend') ? <TrendCell stream={stream} /> : <span />}
        {has('spread') && (
          <span class="spread-line">
            <SpreadCell stream={stream} />
            <span class="muted small">spread</span>
          </span>
        )}
      </div>
      <div class="card-line">
        {has('status') && statusOf(stream)}
        {has('age') && <AgeCell stream={stream} />}
      </div>
      <p class="card-facts muted small">{facts.join(' · ')}</p>
      {has('feed') && feedIdOf(props)}
    </li>
  );
};

export const CatalogCards = (props: RowsProps<HTMLUListElement>) => {
  const parts = useParts(props, card, (key, rows) => (
    <li key={key} class="room" aria-hidden="true" style={{ height: `${rows * rowHeights.cards}px` }} />
  ));
  return (
    <ul class="catalog-cards" ref={props.scroll.list}>
      {parts}
    </ul>
  );
};
