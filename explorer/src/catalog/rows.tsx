// The list of streams: a table, or cards on a narrow page. Only the rows around the view exist. Rows are keyed by index, so that
// sorting and filtering update rows instead of creating new ones.
import type { CatalogEntry } from '@sealpost/protocol';
import type { ComponentChildren } from 'preact';
import { streamHref } from '../state/router.ts';
import { statusKinds, writeClipboard } from '../ui/components.tsx';
import { shortId } from '../ui/format.ts';
import { AgeCell, PriceCell, StatusCell } from './cells.tsx';
import type { RowScroll } from './scroll.ts';
import { type ColumnName, columns, type Order } from './sort.ts';

/** Row heights in pixels, as set in catalog.css; the row window is computed from them. */
export const rowHeights = { table: 52, cards: 148 } as const;

export type RowsProps<E extends HTMLElement> = {
  readonly streams: readonly CatalogEntry[];
  readonly readable: ReadonlySet<string>;
  readonly shown: readonly ColumnName[];
  readonly scroll: RowScroll<E>;
  /** The row with the keyboard focus. */
  readonly active: number;
  readonly isSignedIn: boolean;
  /** By feed ID: what distinguishes a stream from the others of its pair. */
  readonly distinctions: ReadonlyMap<string, string>;
};

type CellProps = {
  readonly stream: CatalogEntry;
  readonly isActive: boolean;
  readonly isReadable: boolean;
  readonly distinction: string | undefined;
};

// Cells that never change live are plain functions, not components: fast scrolling creates hundreds of them per frame.
const cells: Readonly<Record<ColumnName, (props: CellProps) => ComponentChildren>> = {
  pair: (props) => pairLink(props),
  price: ({ stream, isReadable }) => <PriceCell stream={stream} isReadable={isReadable} />,
  age: ({ stream }) => <AgeCell stream={stream} />,
  status: ({ stream }) => statusOf(stream),
  class: ({ stream }) => stream.assetClass,
  type: ({ stream }) => stream.feedType,
  attribute: ({ stream }) => stream.attributeType,
  schema: ({ stream }) => stream.schemaVersion,
  hours: ({ stream }) => stream.marketHours,
  feed: (props) => feedIdOf(props),
};

/** The whole row is its link. Only one row is in the tab order; the arrow keys move to the others. */
const pairLink = ({ stream, isActive, distinction }: CellProps) => (
  <a class="pair-link" href={streamHref(stream.feedId)} tabIndex={isActive ? 0 : -1}>
    <span class="pair">{`${stream.baseAsset}/${stream.quoteAsset}`}</span>
    <span class="asset-name">
      {distinction === undefined ? stream.assetName : `${stream.assetName} · ${distinction}`}
    </span>
  </a>
);

const statusOf = (stream: CatalogEntry) =>
  stream.expectedDecommissionAt === null || stream.status === 'decommissioned' ? (
    <span class={`pill ${statusKinds[stream.status]}`}>{stream.status}</span>
  ) : (
    <StatusCell stream={stream} />
  );

const feedIdOf = ({ stream: { feedId }, isActive }: CellProps) => (
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

const copiedMs = 1_600;

/** One click listener for the copy buttons of all rows. */
export const copyClicked = async (event: Event): Promise<void> => {
  const button = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-copy]') : null;
  if (button === null) return;
  event.preventDefault();
  const state = await writeClipboard(button.dataset.copy ?? '');
  button.classList.add(state);
  button.title = state === 'done' ? 'Copied' : 'Your browser blocked copying. Select the text on the stream’s page';
  setTimeout(() => {
    button.classList.remove(state);
    button.title = 'Copy feed ID';
  }, copiedMs);
};

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
  return (
    <th scope="col" class={`col-${name}`} aria-sort={isSorted ? direction : undefined}>
      <button type="button" class="sort" onClick={() => onSort(name)}>
        {columns[name].label}
        <svg class={isSorted ? direction : 'unsorted'} viewBox="0 0 8 10" aria-hidden="true">
          <path d="M4 2 7 7H1z" />
        </svg>
      </button>
    </th>
  );
};

export const CatalogTable = ({
  streams,
  shown,
  scroll: { list, rows },
  active,
  readable,
  distinctions,
  order,
  onSort,
}: RowsProps<HTMLTableSectionElement> & { readonly order: Order; readonly onSort: (column: ColumnName) => void }) => (
  <table class={`catalog-table ${shown.includes('price') ? 'with-prices' : ''}`} aria-rowcount={streams.length + 1}>
    <caption class="unseen">Streams, sorted by {columns[order.column].label}</caption>
    <thead>
      <tr aria-rowindex={1}>
        {shown.map((name) => (
          <Head key={name} name={name} order={order} onSort={onSort} />
        ))}
      </tr>
    </thead>
    <tbody ref={list}>
      <Room height={rows.before} span={shown.length} />
      {streams.slice(rows.first, rows.end).map((stream, i) => {
        const index = rows.first + i;
        const props = {
          stream,
          isActive: index === active,
          isReadable: readable.has(stream.feedId),
          distinction: distinctions.get(stream.feedId),
        };
        return (
          <tr key={index} data-row={index} aria-rowindex={index + 2} class={index === active ? 'active' : ''}>
            {shown.map((name) => (
              <td key={name} class={`col-${name}`}>
                {cells[name](props)}
              </td>
            ))}
          </tr>
        );
      })}
      <Room height={rows.after} span={shown.length} />
    </tbody>
  </table>
);

/** Takes the height of the rows that do not exist. */
const Room = ({ height, span }: { readonly height: number; readonly span: number }) =>
  height === 0 ? null : (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: an empty row takes no focus
    <tr class="room" aria-hidden="true">
      <td colSpan={span} style={{ height: `${height}px` }} />
    </tr>
  );

export const CatalogCards = ({
  streams,
  readable,
  distinctions,
  scroll: { list, rows },
  active,
  isSignedIn,
}: RowsProps<HTMLUListElement>) => (
  <ul class="catalog-cards" ref={list} style={{ paddingTop: `${rows.before}px`, paddingBottom: `${rows.after}px` }}>
    {streams.slice(rows.first, rows.end).map((stream, i) => {
      const index = rows.first + i;
      const props = {
        stream,
        isActive: index === active,
        isReadable: readable.has(stream.feedId),
        distinction: distinctions.get(stream.feedId),
      };
      return (
        <li key={index} data-row={index} aria-setsize={streams.length} aria-posinset={index + 1}>
          <div class="card-line">
            {pairLink(props)}
            {isSignedIn && <PriceCell stream={stream} isReadable={props.isReadable} />}
          </div>
          <div class="card-line">
            {statusOf(stream)}
            {isSignedIn && <AgeCell stream={stream} />}
          </div>
          <p class="card-facts muted small">
            {stream.assetClass} · {stream.feedType} · {stream.attributeType} · {stream.schemaVersion}
          </p>
          {feedIdOf(props)}
        </li>
      );
    })}
  </ul>
);
