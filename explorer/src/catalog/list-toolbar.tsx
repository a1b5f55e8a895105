// The bar above the list: search, filters, watchlist, columns, export, and the sort order on a narrow page.
import type { CatalogEntry } from '@sealpost/protocol';
import type { RefObject } from 'preact';
import { useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { useEscape } from '../ui/panel.ts';
import { type ColumnName, columns, columnsFor, toggleColumn } from './columns.ts';
import { isWatchlist, watchlistName, withValue } from './filter.ts';
import { isSortable, type Order } from './sort.ts';

export type PanelName = 'filters' | 'columns';

/** The open panel. */
export function usePanel() {
  const [panel, setPanel] = useState<PanelName | undefined>(undefined);
  useEscape(panel, () => setPanel(undefined));
  return {
    panel,
    toggle: (name: PanelName): void => setPanel((open) => (open === name ? undefined : name)),
  };
}

type ToolbarProps = {
  readonly searchBox: RefObject<HTMLInputElement | null>;
  readonly order: Order;
  readonly filterCount: number;
  readonly panel: PanelName | undefined;
  readonly onPanel: (panel: PanelName) => void;
  /** The rows to export. */
  readonly streams: readonly CatalogEntry[];
  readonly readable: ReadonlySet<string>;
  readonly onSaid: (text: string) => void;
};

export function Toolbar({ searchBox, order, filterCount, panel, onPanel, ...exported }: ToolbarProps) {
  const { router, shortcuts } = useExplorer();
  const { query } = router.address.value;
  const hasKey = shortcuts.areLettersOn.value;
  return (
    <search class="toolbar">
      <div class="search-box">
        <label for="search" class="unseen">
          Search by name, asset or feed ID
        </label>
        <input
          id="search"
          ref={searchBox}
          type="search"
          value={query.get('q') ?? ''}
          placeholder="Search by name, asset or feed ID"
          autocomplete="off"
          spellcheck={false}
          aria-keyshortcuts={hasKey ? '/' : undefined}
          onInput={(event) => router.setQuery(withValue(query, 'q', event.currentTarget.value))}
        />
        {hasKey && (
          <span class="key" aria-hidden="true">
            /
          </span>
        )}
      </div>
      <button
        type="button"
        aria-expanded={panel === 'filters'}
        aria-controls="filters"
        onClick={() => onPanel('filters')}
      >
        Filters{filterCount > 0 && <span class="count">{filterCount}</span>}
      </button>
      <WatchlistButton />
      <button
        type="button"
        aria-expanded={panel === 'columns'}
        aria-controls="columns"
        onClick={() => onPanel('columns')}
      >
        Columns
      </button>
      <ExportButton {...exported} />
      <SortChoice order={order} />
    </search>
  );
}

/** Shows only the streams of the watchlist, or all again. */
const WatchlistButton = () => {
  const { router, watchlist } = useExplorer();
  const { query } = router.address.value;
  const isOn = isWatchlist(query);
  const { size } = watchlist.feedIds.value;
  return (
    <button
      type="button"
      class="watchlist-button"
      aria-pressed={isOn}
      onClick={() => router.setQuery(withValue(query, watchlistName, isOn ? '' : 'true'))}
    >
      <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
        <path d="m8 1.8 1.9 4 4.4.6-3.2 3.1.8 4.4L8 11.8l-3.9 2.1.8-4.4L1.7 6.4l4.4-.6z" />
      </svg>
      Watchlist{size > 0 && <span class="muted small">{size}</span>}
    </button>
  );
};

const ExportButton = ({ streams, readable, onSaid }: Pick<ToolbarProps, 'streams' | 'readable' | 'onSaid'>) => {
  const explorer = useExplorer();
  const [isBusy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    onSaid('Preparing the file.');
    try {
      const { exportStreams } = await explorer.chunks.load(() => import('./export.ts'));
      onSaid(await exportStreams(streams, explorer, readable));
    } catch {
      onSaid('The export failed. Try again, or reload the page.');
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" aria-disabled={isBusy} title="The rows shown, with exact values" onClick={() => void run()}>
      {isBusy ? 'Preparing…' : 'Export CSV'}
    </button>
  );
};

/** A select box, because a narrow page has few column heads to click. */
const SortChoice = ({ order }: { readonly order: Order }) => {
  const { router, session } = useExplorer();
  const { query } = router.address.value;
  const visible = columnsFor(session.userId.value !== undefined).filter(isSortable);
  const choose = (raw: string): void => router.setQuery(withValue(query, 'sort', raw === 'pair' ? '' : raw));
  return (
    <label class="sort-choice">
      <span class="unseen">Sort by</span>
      <select
        value={`${order.descending ? '-' : ''}${order.column}`}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {visible.flatMap((name) => [
          <option key={name} value={name}>
            {columns[name].label} ↑
          </option>,
          <option key={`-${name}`} value={`-${name}`}>
            {columns[name].label} ↓
          </option>,
        ])}
      </select>
    </label>
  );
};

type ColumnPanelProps = {
  readonly isSignedIn: boolean;
  readonly isNarrow: boolean;
  readonly visible: readonly ColumnName[];
  /** Those of the visible ones for which there is no space. */
  readonly tooMany: readonly ColumnName[];
};

/** Chooses the columns. On a phone, the same choice for the cards. */
export function ColumnPanel({ isSignedIn, isNarrow, visible, tooMany }: ColumnPanelProps) {
  const { listColumns } = useExplorer();
  const toggle = (name: ColumnName): void =>
    listColumns.set(toggleColumn(listColumns.value.peek(), name, isSignedIn, isNarrow));
  return (
    <section id="columns" class="filters card" aria-label="Columns">
      <fieldset class="column-choice">
        <legend>Columns</legend>
        <div class="boxes">
          {columnsFor(isSignedIn)
            .filter((name) => name !== 'pair')
            .map((name) => (
              <label key={name} class="check">
                <input type="checkbox" checked={visible.includes(name)} onChange={() => toggle(name)} />
                <span>{columns[name].label}</span>
                {tooMany.includes(name) && <span class="muted small">no space</span>}
              </label>
            ))}
        </div>
        <p class="muted small">
          {tooMany.length > 0
            ? 'Columns marked “no space” appear in a wider window, or when you hide others.'
            : 'Your browser keeps the choice.'}
        </p>
        <div>
          <button type="button" class="quiet" onClick={() => listColumns.set({})}>
            Reset to default
          </button>
        </div>
      </fieldset>
    </section>
  );
}
