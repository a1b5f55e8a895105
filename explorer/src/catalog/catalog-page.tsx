// The catalog page: every stream that the user may see, searched, filtered and sorted by the address's query.
import type { CatalogEntry } from '@sealpost/protocol';
import type { RefObject } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { watchlistMax } from '../state/settings/watchlist.ts';
import type { CatalogState } from '../state/user-catalog.ts';
import { Empty, Failure, Loading, Notice, Pill, useTitle } from '../ui/components.tsx';
import { formatCount } from '../ui/format.ts';
import { liveTexts } from '../ui/live-texts.ts';
import { focusPanelButton } from '../ui/panel.ts';
import { type ColumnName, fitColumns, visibleColumns } from './columns.ts';
import {
  activeFilters,
  type CatalogSelection,
  countRows,
  filterValuesOf,
  readSelection,
  type Selectable,
  selectStreams,
  toSearchable,
  withoutFilters,
  withValue,
} from './filter.ts';
import { FilterChips, FilterPanel } from './filters.tsx';
import { type LiveNeeds, useCatalogKeys, useLiveRows, useLiveTick, useRowClicks } from './list-hooks.ts';
import { ColumnPanel, Toolbar, usePanel } from './list-toolbar.tsx';
import { distinctionsOf } from './names.ts';
import { CatalogCards, CatalogTable, rowHeights } from './rows.tsx';
import { useMedia, useRowScroll, useWidth } from './scroll.ts';
import { isLiveOrder, type Order, orderProblem, readOrder, sortStreams, toggleOrder } from './sort.ts';
import { wholeMax } from './window.ts';
import '../styles/catalog.css';

export function CatalogPage() {
  const { catalog, live } = useExplorer();
  const page = useRef<HTMLDivElement>(null);
  useTitle('Streams');
  const state = catalog.state.value;
  return (
    <div class={live.state.value === 'reconnecting' ? 'catalog is-disconnected' : 'catalog'} ref={page}>
      {state.phase === 'ready' ? <ReadyCatalog state={state} page={page} /> : <UnreadyCatalog state={state} />}
    </div>
  );
}

type Ready = Extract<CatalogState, { readonly phase: 'ready' }>;

const UnreadyCatalog = ({ state }: { readonly state: Exclude<CatalogState, Ready> }) => {
  const { catalog } = useExplorer();
  return (
    <>
      <h1>Streams</h1>
      {state.phase === 'loading' ? (
        <Loading label="Loading the catalog" lines={12} />
      ) : (
        <>
          <Failure error={state.error} retry={catalog.reload} />
          {state.willRetry && <p class="muted">Retrying every few seconds.</p>}
        </>
      )}
    </>
  );
};

const noStreams: ReadonlySet<string> = new Set();

/** The streams that match the address's query, in its order. */
const useSelection = ({ streams, hidden }: Ready, query: URLSearchParams, order: Order) => {
  const { live, days, watchlist: storedWatchlist } = useExplorer();
  const searchable = useMemo(() => streams.map(toSearchable), [streams]);
  const key = withValue(query, 'sort', '').toString();
  const selection = useMemo(() => readSelection(query), [key]);
  // Unless the list is of the watchlist, a star does not change it, and so not its order either.
  const watchlist = selection.isWatched ? storedWatchlist.feedIds.value : noStreams;
  const from = useMemo((): Selectable => ({ streams: searchable, hidden, watchlist }), [searchable, hidden, watchlist]);
  const selected = useMemo(() => selectStreams(from, selection), [from, selection]);
  const { tick, isPaused } = useLiveTick(isLiveOrder(order));
  const sorted = useMemo(
    () =>
      sortStreams(selected, order, {
        latest: (feedId) => live.latest(feedId).peek(),
        day: (feedId) => days.of(feedId).peek(),
      }),
    [selected, order.column, order.descending, tick],
  );
  return { selection, from, sorted, isPaused };
};

/** Stars a stream, and what to tell screen readers about it. */
const useStar = (streams: readonly CatalogEntry[]) => {
  const { watchlist } = useExplorer();
  const [said, setSaid] = useState('');
  const star = (feedId: string): void => {
    const stream = streams.find((one) => one.feedId === feedId);
    if (stream === undefined) return;
    const pair = `${stream.baseAsset}/${stream.quoteAsset}`;
    const done = watchlist.toggle(feedId);
    if (done === 'full') setSaid(`The watchlist is full: ${watchlistMax} streams. Remove one first.`);
    else setSaid(`${pair} ${done === 'added' ? 'added to' : 'removed from'} the watchlist.`);
  };
  return { said, setSaid, star };
};

/** The columns that the user wants, and those of them that fit. */
const useColumns = (page: RefObject<HTMLElement | null>, isSignedIn: boolean, isNarrow: boolean) => {
  const { listColumns } = useExplorer();
  const choice = listColumns.value.value;
  const width = useWidth(page);
  const visible = useMemo(() => visibleColumns(choice, isSignedIn, isNarrow), [choice, isSignedIn, isNarrow]);
  const fittingNow = isNarrow ? visible : fitColumns(visible, width - borderPx);
  const key = fittingNow.join(' ');
  const fitting = useMemo(() => fittingNow, [key]); // the same array for the same columns: rows compare it
  return { visible, fitting };
};

/** Both borders of the table. */
const borderPx = 2;

const ReadyCatalog = ({ state, page }: { readonly state: Ready; readonly page: RefObject<HTMLElement | null> }) => {
  const { router, session } = useExplorer();
  const { query } = router.address.value;
  const { panel, toggle } = usePanel();
  const searchBox = useRef<HTMLInputElement>(null);
  const order = readOrder(query);
  const { selection, from, sorted, isPaused } = useSelection(state, query, order);
  const isSignedIn = session.userId.value !== undefined;
  const isNarrow = useMedia('(max-width: 40rem)');
  const { visible, fitting } = useColumns(page, isSignedIn, isNarrow);
  const { said, setSaid, star } = useStar(state.streams);
  const isAll = selection.filter.hidden === true;
  const listed = useMemo(
    () => (isAll ? state.streams : state.streams.filter(({ feedId }) => !state.hidden.has(feedId))),
    [state, isAll],
  );
  const allValues = useMemo(() => filterValuesOf(state.streams), [state]); // chips spell the values of hidden streams, too
  const values = useMemo(() => (isAll ? allValues : filterValuesOf(listed)), [listed]);
  const active = useMemo(() => activeFilters(query, allValues), [query, allValues]);
  const setFilters = (next: URLSearchParams): void => {
    router.setQuery(next);
    if (activeFilters(next, allValues).length === 0) focusPanelButton('filters'); // the chips are gone, and the button that cleared them
  };
  const isOnlySearched = active.length === 0 && selection.search !== '';
  const clear = (): void => {
    setFilters(withoutFilters(query));
    if (isOnlySearched) searchBox.current?.focus();
  };
  if (state.streams.length === 0) return <NoStreams />;
  const list = { streams: sorted, readable: state.readable, visible: fitting, order, isNarrow, searchBox };
  return (
    <>
      <CatalogHead matching={sorted.length} total={listed.length} isPaused={isPaused} />
      <Toolbar
        searchBox={searchBox}
        order={order}
        filterCount={active.length}
        panel={panel}
        onPanel={toggle}
        streams={sorted}
        readable={state.readable}
        onSaid={setSaid}
      />
      {panel === 'filters' && <Filters from={from} selection={selection} values={values} isSignedIn={isSignedIn} />}
      {panel === 'columns' && (
        <ColumnPanel
          {...{ isSignedIn, isNarrow, visible }}
          tooMany={visible.filter((name) => !fitting.includes(name))}
        />
      )}
      {active.length > 0 && <FilterChips active={active} onChange={setFilters} onClear={clear} />}
      <Problems problems={selection.problems} />
      <p class="list-said small muted" role="status">
        {said}
      </p>
      {sorted.length === 0 ? (
        <NoMatch isWatched={selection.isWatched} isOnlySearched={isOnlySearched} onClear={clear} />
      ) : (
        <List {...list} allStreams={state.streams} isSignedIn={isSignedIn} onStar={star} />
      )}
    </>
  );
};

type FiltersProps = {
  readonly from: Selectable;
  readonly selection: CatalogSelection;
  readonly values: ReturnType<typeof filterValuesOf>;
  readonly isSignedIn: boolean;
};

const Filters = ({ from, selection, values, isSignedIn }: FiltersProps) => {
  const { router } = useExplorer();
  const counts = useMemo(() => countRows(from, selection), [from, selection]);
  return (
    <FilterPanel
      values={values}
      counts={counts}
      filter={selection.filter}
      query={router.address.value.query}
      onChange={router.setQuery}
      isSignedIn={isSignedIn}
    />
  );
};

const Problems = ({ problems }: Pick<CatalogSelection, 'problems'>) => {
  const { router } = useExplorer();
  const { query } = router.address.value;
  const problem = orderProblem(query);
  const all = [
    ...problems.map(({ name, text }) => ({ name, text, kind: 'filter' })),
    ...(problem === undefined ? [] : [{ name: 'sort', text: problem, kind: 'order' }]),
  ];
  return (
    <>
      {all.map(({ name, text, kind }) => (
        <Notice
          key={name}
          kind="warning"
          title={`Ignored ${kind === 'order' ? 'the order' : 'a filter'} in the address: ${text}`}
          action={
            <button type="button" onClick={() => router.setQuery(withValue(query, name, ''))}>
              Remove {kind}
            </button>
          }
        />
      ))}
    </>
  );
};

type HeadProps = { readonly matching: number; readonly total: number; readonly isPaused: boolean };

const CatalogHead = ({ matching, total, isPaused }: HeadProps) => {
  const { session } = useExplorer();
  return (
    <div class="catalog-head">
      <h1>Streams</h1>
      <p class="muted" role="status">
        {matching === total ? formatCount(total) : `${formatCount(matching)} of ${formatCount(total)}`}
      </p>
      {session.userId.value === undefined ? <SignInHint /> : <LivePill />}
      {isPaused && (
        <Pill kind="plain" title="Rows stay in place while one has the focus or you point at one.">
          Order paused
        </Pill>
      )}
    </div>
  );
};

const SignInHint = () => {
  const { signIn } = useExplorer();
  return (
    <p class="sign-in-hint muted small">
      Browse streams freely.{' '}
      <button type="button" class="link" onClick={signIn.open}>
        Sign in for live prices
      </button>
    </p>
  );
};

/** Whether the prices in view are live. */
const LivePill = () => {
  const { live } = useExplorer();
  const state = live.state.value;
  const problem = live.problem.value;
  if (problem !== undefined) return <Failure error={problem} />;
  if (state === 'off') return null;
  const [kind, text] = liveTexts[state];
  return <Pill kind={kind}>{text}</Pill>;
};

const NoStreams = () => {
  const { catalog } = useExplorer();
  return (
    <Empty
      title="No streams yet"
      level={1}
      action={
        <button type="button" onClick={catalog.reload}>
          Reload
        </button>
      }
    >
      The server’s operator adds them with <code>sealpost stream import</code>.
    </Empty>
  );
};

type NoMatchProps = {
  readonly isWatched: boolean;
  /** Whether there is a search and no filter. */
  readonly isOnlySearched: boolean;
  readonly onClear: () => void;
};

const NoMatch = ({ isWatched, isOnlySearched, onClear }: NoMatchProps) => {
  const { watchlist } = useExplorer();
  const isEmpty = isWatched && watchlist.feedIds.value.size === 0;
  return (
    <Empty
      title={isEmpty ? 'Your watchlist is empty' : 'No matching streams'}
      action={
        <button type="button" class="primary" onClick={onClear}>
          {isEmpty ? 'Show all streams' : isOnlySearched ? 'Clear search' : 'Clear filters'}
        </button>
      }
    >
      {isEmpty
        ? 'Add streams with the star next to their name, or with the key s. Your browser keeps the list.'
        : `Search covers names, assets and feed IDs.${isOnlySearched ? '' : ' Streams must match all active filters.'}`}
    </Empty>
  );
};

type ListProps = {
  readonly streams: readonly CatalogEntry[];
  readonly allStreams: readonly CatalogEntry[];
  readonly readable: ReadonlySet<string>;
  readonly visible: readonly ColumnName[];
  readonly order: Order;
  readonly isSignedIn: boolean;
  readonly isNarrow: boolean;
  readonly searchBox: RefObject<HTMLInputElement | null>;
  readonly onStar: (feedId: string) => void;
};

/** Which streams need prices and days: those in view, or all if they exist in the page or are sorted by it. */
const needsOf = ({ streams, visible, order, isSignedIn }: ListProps): LiveNeeds => {
  const isWhole = streams.length <= wholeMax;
  const hasDays = isSignedIn && (visible.includes('change') || visible.includes('trend') || order.column === 'change');
  return {
    isForAll: isSignedIn && (isWhole || isLiveOrder(order)),
    days: !hasDays ? 'none' : isWhole || order.column === 'change' ? 'all' : 'view',
  };
};

const List = (props: ListProps) => {
  const { streams, allStreams, readable, visible, order, isNarrow, searchBox, onStar } = props;
  const { router, watchlist } = useExplorer();
  const distinctions = useMemo(() => distinctionsOf(allStreams), [allStreams]);
  const scroll = useRowScroll<HTMLTableSectionElement & HTMLUListElement>(
    streams.length,
    isNarrow ? rowHeights.cards : rowHeights.table,
  );
  const active = useCatalogKeys(streams, scroll, searchBox, onStar);
  useLiveRows(streams, readable, scroll, needsOf(props));
  useRowClicks(onStar);
  const rows = { streams, readable, distinctions, scroll, active, visible, watchlist: watchlist.feedIds.value };
  const sort = (column: ColumnName): void => router.setQuery(toggleOrder(router.address.peek().query, column));
  return isNarrow ? <CatalogCards {...rows} /> : <CatalogTable {...rows} order={order} onSort={sort} />;
};
