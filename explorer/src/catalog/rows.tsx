// The list of streams: a table, or cards on a narrow page. Rows that change are drawn a few per frame (row-nodes.ts).
import type { CatalogEntry } from '@sealpost/protocol';
import type { ComponentChildren } from 'preact';
import { streamHref } from '../state/router.ts';
import { statusKinds } from '../ui/components.tsx';
import { shortId } from '../ui/format.ts';
import { AgeCell, ChangeCell, PriceCell, SpreadCell, StatusCell, TrendCell } from './cells.tsx';
import { type ColumnName, columns } from './columns.ts';
import { type RowProps, type RowsProps, useParts } from './row-nodes.ts';
import { isSortable, type Order } from './sort.ts';

/** Row heights in pixels, as set in catalog.css; the row window is computed from them. */
export const rowHeights = { table: 52, cards: 180 } as const;

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
    <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
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

// Some browsers no longer tell screen readers that a table is one if CSS lays its rows out as grids.
const [isTable, isRowGroup, isRow, isHead, isCell] = (
  ['table', 'rowgroup', 'row', 'columnheader', 'cell'] as const
).map((role) => ({ role }));

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
      {...isHead}
      scope="col"
      class={`col-${name}`}
      aria-sort={isSorted ? direction : undefined}
      style={{ '--width': `${widthPx}px` }}
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
  <tr
    key={props.slot}
    {...isRow}
    data-row={props.row}
    aria-rowindex={props.row + 2}
    class={props.isActive ? 'active' : ''}
  >
    {props.visible.map((name) => (
      <td key={name} {...isCell} class={`col-${name}`}>
        {isCellDrawn(name, props) && cells[name](props)}
      </td>
    ))}
  </tr>
);

/** Rows that scroll by quickly show their name and price. */
const isCellDrawn = (name: ColumnName, { isBrief }: RowProps): boolean =>
  !isBrief || name === 'pair' || name === 'price';

export function CatalogTable({
  order,
  onSort,
  ...props
}: RowsProps<HTMLTableSectionElement> & { readonly order: Order; readonly onSort: (column: ColumnName) => void }) {
  const { streams, visible } = props;
  const parts = useParts(props, tableRow, (key, rows) => (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: an empty row takes no focus
    <tr key={key} class="room" aria-hidden="true">
      <td colSpan={visible.length} style={{ height: `${rows * rowHeights.table}px` }} />
    </tr>
  ));
  return (
    <table
      {...isTable}
      class={`catalog-table ${visible.includes('price') ? 'with-prices' : ''}`}
      aria-rowcount={streams.length + 1}
      style={{ '--columns': visible.map((name) => `minmax(0, ${columns[name].widthPx}fr)`).join(' ') }}
    >
      <caption class="unseen">Streams, sorted by {columns[order.column].label}</caption>
      <thead {...isRowGroup}>
        <tr {...isRow} aria-rowindex={1}>
          {visible.map((name) => (
            <Head key={name} name={name} order={order} onSort={onSort} />
          ))}
        </tr>
      </thead>
      <tbody {...isRowGroup} ref={props.scroll.list}>
        {parts}
      </tbody>
    </table>
  );
}

/** The facts in a card's last line but one, if their columns are shown. */
const cardFacts = ['class', 'type', 'attribute', 'schema', 'hours'] as const satisfies readonly ColumnName[];

const card = (props: RowProps) => {
  const { slot, row, count, stream, visible } = props;
  const has = (name: ColumnName): boolean => visible.includes(name) && isCellDrawn(name, props);
  const facts = cardFacts.filter(has).map((name) => cells[name](props));
  return (
    <li key={slot} data-row={row} aria-setsize={count} aria-posinset={row + 1}>
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

export function CatalogCards(props: RowsProps<HTMLUListElement>) {
  const parts = useParts({ ...props, count: props.streams.length }, card, (key, rows) => (
    <li key={key} class="room" aria-hidden="true" style={{ height: `${rows * rowHeights.cards}px` }} />
  ));
  return (
    <ul class="catalog-cards" ref={props.scroll.list}>
      {parts}
    </ul>
  );
}
