// The catalog page: every stream that the user may see, searched, filtered and sorted by the address's query.
import type { CatalogEntry } from '@sealpost/protocol';
import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { CatalogState } from '../state/catalog.ts';
import { useExplorer } from '../state/explorer.ts';
import { Empty, Failure, Loading, Notice, Pill, useTitle } from '../ui/components.tsx';
import { formatCount } from '../ui/format.ts';
import { liveTexts } from '../ui/live-texts.ts';
import {
  activeFilters,
  filterValuesOf,
  readWanted,
  selectStreams,
  toSearchable,
  withoutFilters,
  withValue,
} from './filter.ts';
import { FilterChips, FilterPanel } from './filters.tsx';
import { useCatalogKeys, useLiveRows, useLiveTick } from './hooks.ts';
import { distinctionsOf } from './names.ts';
import { CatalogCards, CatalogTable, copyClicked, rowHeights } from './rows.tsx';
import { useMedia, useRowScroll } from './scroll.ts';
import {
  type ColumnName,
  columns,
  columnsFor,
  isLiveOrder,
  type Order,
  readOrder,
  sortStreams,
  toggleOrder,
} from './sort.ts';
import '../styles/catalog.css';

export const CatalogPage = () => {
  const { catalog } = useExplorer();
  useTitle('Streams');
  const state = catalog.state.value;
  if (state.phase === 'ready') return <ReadyCatalog state={state} />;
  return (
    <div class="stack">
      <h1>Streams</h1>
      {state.phase === 'loading' ? (
        <Loading label="Loading the catalog" lines={12} />
      ) : (
        <>
          <Failure error={state.error} retry={catalog.reload} />
          {state.willRetry && <p class="muted">Retrying every few seconds.</p>}
        </>
      )}
    </div>
  );
};

type Ready = Extract<CatalogState, { readonly phase: 'ready' }>;

/** The streams that match the address's query, in its order. */
const useSelection = ({ streams, hidden }: Ready, query: URLSearchParams, order: Order) => {
  const { live } = useExplorer();
  const searchable = useMemo(() => streams.map(toSearchable), [streams]);
  const wanted = useMemo(() => readWanted(query), [query]);
  const selected = useMemo(() => selectStreams(searchable, hidden, wanted), [searchable, hidden, wanted]);
  const tick = useLiveTick(isLiveOrder(order));
  const sorted = useMemo(
    () => sortStreams(selected, order, (feedId) => live.latest(feedId).peek()),
    [selected, order.column, order.descending, tick],
  );
  return { wanted, sorted };
};

const ReadyCatalog = ({ state }: { readonly state: Ready }) => {
  const { router, session } = useExplorer();
  const { query } = router.address.value;
  const [isPanelOpen, setPanelOpen] = useState(false);
  const searchBox = useRef<HTMLInputElement>(null);
  const order = readOrder(query);
  const { wanted, sorted } = useSelection(state, query, order);
  const isSignedIn = session.userId.value !== undefined;
  const distinctions = useMemo(() => distinctionsOf(state.streams), [state.streams]);
  const values = useMemo(() => filterValuesOf(state.streams), [state.streams]);
  const active = useMemo(() => activeFilters(query, values), [query, values]);
  const listed = useMemo(() => state.streams.filter(({ feedId }) => !state.hidden.has(feedId)), [state]);
  const clear = (): void => router.setQuery(withoutFilters(query));
  if (state.streams.length === 0) return <NoStreams />;
  return (
    <div class="catalog">
      <CatalogHead
        shown={sorted.length}
        total={query.get('hidden') === 'true' ? state.streams.length : listed.length}
      />
      <Toolbar
        searchBox={searchBox}
        order={order}
        filterCount={active.length}
        isPanelOpen={isPanelOpen}
        onPanel={() => setPanelOpen(!isPanelOpen)}
      />
      {isPanelOpen && <FilterPanel values={values} query={query} onChange={router.setQuery} isSignedIn={isSignedIn} />}
      {active.length > 0 && <FilterChips active={active} onChange={router.setQuery} onClear={clear} />}
      {wanted.problems.map(({ name, text }) => (
        <Notice
          key={name}
          kind="warning"
          title={`Ignored a filter in the address: ${text}`}
          action={
            <button type="button" onClick={() => router.setQuery(withValue(query, name, ''))}>
              Remove filter
            </button>
          }
        />
      ))}
      {sorted.length === 0 ? (
        <NoMatch onClear={clear} />
      ) : (
        <List
          streams={sorted}
          readable={state.readable}
          distinctions={distinctions}
          order={order}
          isSignedIn={isSignedIn}
          searchBox={searchBox}
        />
      )}
    </div>
  );
};

const CatalogHead = ({ shown, total }: { readonly shown: number; readonly total: number }) => {
  const { session } = useExplorer();
  return (
    <div class="catalog-head">
      <h1>Streams</h1>
      <p class="muted" role="status">
        {shown === total ? formatCount(total) : `${formatCount(shown)} of ${formatCount(total)}`}
      </p>
      {session.userId.value === undefined ? <SignInHint /> : <LivePill />}
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

const NoMatch = ({ onClear }: { readonly onClear: () => void }) => (
  <Empty
    title="No matching streams"
    action={
      <button type="button" class="primary" onClick={onClear}>
        Clear filters
      </button>
    }
  >
    Search covers names, assets and feed IDs. Streams must match all active filters.
  </Empty>
);

type ToolbarProps = {
  readonly searchBox: RefObject<HTMLInputElement | null>;
  readonly order: Order;
  readonly filterCount: number;
  readonly isPanelOpen: boolean;
  readonly onPanel: () => void;
};

const Toolbar = ({ searchBox, order, filterCount, isPanelOpen, onPanel }: ToolbarProps) => {
  const { router } = useExplorer();
  const { query } = router.address.value;
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
          aria-keyshortcuts="/"
          onInput={(event) => router.setQuery(withValue(query, 'q', event.currentTarget.value))}
        />
        <span class="key" aria-hidden="true">
          /
        </span>
      </div>
      <button type="button" aria-expanded={isPanelOpen} aria-controls="filters" onClick={onPanel}>
        Filters{filterCount > 0 && <span class="count">{filterCount}</span>}
      </button>
      <SortChoice order={order} />
    </search>
  );
};

/** A select box, because a narrow page has no column heads to click. */
const SortChoice = ({ order }: { readonly order: Order }) => {
  const { router, session } = useExplorer();
  const { query } = router.address.value;
  const shown = columnsFor(session.userId.value !== undefined);
  const choose = (raw: string): void => router.setQuery(withValue(query, 'sort', raw === 'pair' ? '' : raw));
  return (
    <label class="sort-choice">
      <span class="unseen">Sort by</span>
      <select
        value={`${order.descending ? '-' : ''}${order.column}`}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {shown.flatMap((name) => [
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

type ListProps = {
  readonly streams: readonly CatalogEntry[];
  readonly readable: ReadonlySet<string>;
  readonly distinctions: ReadonlyMap<string, string>;
  readonly order: Order;
  readonly isSignedIn: boolean;
  readonly searchBox: RefObject<HTMLInputElement | null>;
};

const List = ({ streams, readable, distinctions, order, isSignedIn, searchBox }: ListProps) => {
  const { router } = useExplorer();
  const isNarrow = useMedia('(max-width: 60rem)');
  const scroll = useRowScroll<HTMLTableSectionElement & HTMLUListElement>(
    streams.length,
    isNarrow ? rowHeights.cards : rowHeights.table,
  );
  const active = useCatalogKeys(streams, scroll, searchBox);
  useLiveRows(streams, scroll.inView, isLiveOrder(order));
  const props = { streams, readable, distinctions, scroll, active, isSignedIn, shown: columnsFor(isSignedIn) };
  const sort = (column: ColumnName): void => router.setQuery(toggleOrder(router.address.peek().query, column));
  useEffect(() => {
    document.addEventListener('click', copyClicked);
    return () => document.removeEventListener('click', copyClicked);
  }, []);
  return isNarrow ? <CatalogCards {...props} /> : <CatalogTable {...props} order={order} onSort={sort} />;
};
