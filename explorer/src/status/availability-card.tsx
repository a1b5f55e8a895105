// Lag and availability of each stream over the last day: a table with search, order and pages; cards on a narrow page. Only the streams of a page are
// measured, or all of them while a measured column sorts.
import type { CatalogEntry } from '@sealpost/protocol';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { AddressProblems } from '../ui/address-problems.tsx';
import { Failure, Loading, Notice } from '../ui/components.tsx';
import { formatCount } from '../ui/format.ts';
import { SignInButton } from '../ui/sign-in-dialog.tsx';
import {
  type AvailabilityOrder,
  availabilityColumnNames,
  availabilityColumns,
  availabilityProblems,
  type Measured,
  readAvailabilityOrder,
  searchStreams,
  sortByAvailability,
  writeAvailabilityOrder,
} from './availability.ts';
import { StreamList, StripLegend } from './availability-rows.tsx';
import { type Measurements, useMeasurements } from './measuring.ts';

const pageSize = 50;

export function AvailabilityCard() {
  const { session } = useExplorer();
  return (
    <section class="card stack" aria-labelledby="availability-title">
      <h2 id="availability-title">Lag and availability</h2>
      {session.userId.value === undefined && !session.isPending.value ? <SignInFirst /> : <Streams />}
    </section>
  );
}

const SignInFirst = () => (
  <Notice title="Sign in to see each stream" action={<SignInButton />}>
    With an account you see the lag of every stream that you may read, its availability over the last 24 hours, and its
    gaps.
  </Notice>
);

const Streams = () => {
  const { catalog } = useExplorer();
  const state = catalog.state.value;
  if (state.phase === 'loading') return <Loading label="Loading the streams" lines={6} />;
  if (state.phase === 'failed') return <Failure error={state.error} retry={catalog.reload} />;
  const readable = state.streams.filter(({ feedId }) => state.readable.has(feedId));
  if (readable.length === 0) return <p class="muted">This account may not read any stream.</p>;
  return <MeasuredStreams streams={readable} />;
};

/** Search, order and page, which are in the address. */
const useChoice = (streams: readonly CatalogEntry[]) => {
  const { router } = useExplorer();
  const { query } = router.address.value;
  const [text, order] = [query.get('q') ?? '', readAvailabilityOrder(query.get('sort'))];
  const matching = useMemo(() => searchStreams(streams, text), [streams, text]);
  const pages = Math.max(1, Math.ceil(matching.length / pageSize));
  const page = Math.min(pages, Math.max(1, Math.floor(Number(query.get('page'))) || 1));
  const change = (changes: Readonly<Record<string, string>>): void => {
    const next = new URLSearchParams(router.address.peek().query);
    for (const [name, value] of Object.entries(changes))
      if (value === '') next.delete(name);
      else next.set(name, value);
    router.setQuery(next);
  };
  return {
    text,
    order,
    matching,
    page,
    pages,
    problems: availabilityProblems(query, pages),
    search: (q: string) => change({ q, page: '' }),
    sort: (next: AvailabilityOrder) =>
      change({ sort: writeAvailabilityOrder(next) === 'stream' ? '' : writeAvailabilityOrder(next), page: '' }),
    goTo: (to: number) => change({ page: to === 1 ? '' : String(to) }),
  };
};

const MeasuredStreams = ({ streams }: { readonly streams: readonly CatalogEntry[] }) => {
  const choice = useChoice(streams);
  const { matching, order, page } = choice;
  const [neededIds, setNeededIds] = useState<readonly string[]>([]);
  const measurements = useMeasurements(neededIds);
  const results = measurements.measured.value;
  const sorted = sortByAvailability(matching, order, (feedId) => results.get(feedId));
  const onPage = sorted.slice((page - 1) * pageSize, page * pageSize);
  const needed = availabilityColumns[order.column].isMeasured ? matching : onPage;
  const key = needed
    .map(({ feedId }) => feedId)
    .toSorted()
    .join();
  useEffect(() => setNeededIds(key === '' ? [] : key.split(',')), [key]);
  return (
    <>
      <p class="small muted">
        Lag is the age of a stream’s newest observation. Availability is the share of the last 24 hours in which a
        report is valid, from the stream’s first report on; the newest 90 seconds do not count yet. Measured every 30
        seconds.
      </p>
      <Toolbar choice={choice} />
      <AddressProblems problems={choice.problems} />
      <Problem measurements={measurements} neededIds={neededIds} />
      {matching.length === 0 ? (
        <p class="muted">No stream matches the search.</p>
      ) : (
        <StreamList streams={onPage} results={results} order={order} onSort={choice.sort} />
      )}
      <Pages choice={choice} results={results} needed={needed} />
      <StripLegend />
    </>
  );
};

const Problem = ({
  measurements,
  neededIds,
}: {
  readonly measurements: Measurements;
  readonly neededIds: readonly string[];
}) => {
  const error = measurements.failure.value;
  if (error === undefined) return null;
  return <Failure error={error} retry={() => measurements.measure(neededIds, true)} />;
};

type Choice = ReturnType<typeof useChoice>;

const Toolbar = ({ choice: { text, order, search, sort } }: { readonly choice: Choice }) => (
  <search class="row status-toolbar">
    <label class="status-search">
      <span class="unseen">Search streams</span>
      <input
        type="search"
        value={text}
        placeholder="Search streams"
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => search(event.currentTarget.value)}
      />
    </label>
    <label class="status-sort">
      <span class="unseen">Sort by</span>
      <select
        value={writeAvailabilityOrder(order)}
        onChange={(event) => sort(readAvailabilityOrder(event.currentTarget.value))}
      >
        {availabilityColumnNames.flatMap((name) => [
          <option key={name} value={name}>
            {availabilityColumns[name].label} ↑
          </option>,
          <option key={`-${name}`} value={`-${name}`}>
            {availabilityColumns[name].label} ↓
          </option>,
        ])}
      </select>
    </label>
  </search>
);

const Pages = ({
  choice: { matching, page, pages, goTo },
  results,
  needed,
}: {
  readonly choice: Choice;
  readonly results: ReadonlyMap<string, Measured>;
  readonly needed: readonly CatalogEntry[];
}) => {
  const measured = needed.filter(({ feedId }) => results.has(feedId)).length;
  const first = (page - 1) * pageSize + 1;
  const last = Math.min(matching.length, page * pageSize);
  return (
    <div class="row status-pages">
      <p class="small muted" role="status">
        {matching.length === 0
          ? 'No streams'
          : `${formatCount(first)} to ${formatCount(last)} of ${formatCount(matching.length)}`}
        {measured < needed.length && `, ${formatCount(measured)} of ${formatCount(needed.length)} measured`}
      </p>
      {pages > 1 && (
        <div class="row">
          <PageButton label="Previous" isOff={page === 1} onClick={() => goTo(page - 1)} />
          <PageButton label="Next" isOff={page === pages} onClick={() => goTo(page + 1)} />
        </div>
      )}
    </div>
  );
};

/** Not `disabled` at the ends: a disabled button would lose the focus. */
const PageButton = ({
  label,
  isOff,
  onClick,
}: {
  readonly label: string;
  readonly isOff: boolean;
  readonly onClick: () => void;
}) => (
  <button type="button" aria-disabled={isOff} onClick={() => !isOff && onClick()}>
    {label}
  </button>
);
