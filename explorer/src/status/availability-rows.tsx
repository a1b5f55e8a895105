// The rows of the table of lag and availability; cards on a narrow page.
import type { CatalogEntry } from '@sealpost/protocol';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { streamHref } from '../state/router.ts';
import { StatusPill } from '../ui/components.tsx';
import { formatAge, formatCount } from '../ui/format.ts';
import {
  type AvailabilityColumn,
  type AvailabilityOrder,
  availabilityColumnNames,
  availabilityColumns,
  describeStrip,
  formatAvailability,
  hourCount,
  type Measured,
  shareOf,
  stripOf,
  toggleAvailabilityOrder,
} from './availability.ts';

/** A live stream whose newest observation is older than this is behind, as in /status.json. */
const behindAfterMs = 60_000;

/** Does the page have no room for a table? */
const useIsNarrow = (): boolean => {
  const media = useMemo(() => window.matchMedia('(max-width: 52rem)'), []);
  const [isNarrow, setNarrow] = useState(media.matches);
  useEffect(() => {
    const follow = (): void => setNarrow(media.matches);
    follow(); // the width may have changed since the first render
    media.addEventListener('change', follow);
    return () => media.removeEventListener('change', follow);
  }, [media]);
  return isNarrow;
};

export type StreamListProps = {
  readonly streams: readonly CatalogEntry[];
  readonly results: ReadonlyMap<string, Measured>;
  readonly order: AvailabilityOrder;
  readonly onSort: (order: AvailabilityOrder) => void;
};

export function StreamList({ streams, results, order, onSort }: StreamListProps) {
  if (useIsNarrow())
    return (
      <ul class="status-cards">
        {streams.map((stream) => (
          <Card key={stream.feedId} stream={stream} measured={results.get(stream.feedId)} />
        ))}
      </ul>
    );
  return (
    <table class="status-streams">
      <caption class="unseen">
        Lag and availability of streams, sorted by {availabilityColumns[order.column].label}
      </caption>
      <thead>
        <tr>
          {availabilityColumnNames.flatMap((name) => [
            <Head key={name} name={name} order={order} onSort={onSort} />,
            ...(name === 'lag'
              ? [
                  <th key="strip" scope="col">
                    Last 24 hours
                  </th>,
                ]
              : []),
          ])}
        </tr>
      </thead>
      <tbody>
        {streams.map((stream) => (
          <Row key={stream.feedId} stream={stream} measured={results.get(stream.feedId)} />
        ))}
      </tbody>
    </table>
  );
}

const Head = ({
  name,
  order,
  onSort,
}: Pick<StreamListProps, 'order' | 'onSort'> & {
  readonly name: AvailabilityColumn;
}) => {
  const direction = order.descending ? 'descending' : 'ascending';
  const isSorted = order.column === name;
  return (
    <th
      scope="col"
      class={availabilityColumns[name].isMeasured ? 'number' : undefined}
      aria-sort={isSorted ? direction : undefined}
    >
      <button
        type="button"
        class="quiet status-head-button"
        onClick={() => onSort(toggleAvailabilityOrder(order, name))}
      >
        {availabilityColumns[name].label}
        <span aria-hidden="true">{isSorted ? (order.descending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  );
};

type StreamProps = { readonly stream: CatalogEntry; readonly measured: Measured | undefined };

const Row = ({ stream, measured }: StreamProps) => (
  <tr>
    <td>
      <StreamLink stream={stream} />
    </td>
    <td>
      <Status stream={stream} />
    </td>
    <td class="number">
      <Lag stream={stream} measured={measured} />
    </td>
    <td>
      <Strip measured={measured} />
    </td>
    <td class="number">
      <Share measured={measured} />
    </td>
    <td class="number">{gapsOf(measured)}</td>
    <td class="number">{longestOf(measured)}</td>
  </tr>
);

const Card = ({ stream, measured }: StreamProps) => (
  <li class="status-card">
    <div class="row status-card-head">
      <StreamLink stream={stream} />
      <Status stream={stream} />
    </div>
    <Strip measured={measured} />
    <dl class="status-card-figures small">
      <div>
        <dt>Lag</dt>
        <dd>
          <Lag stream={stream} measured={measured} />
        </dd>
      </div>
      <div>
        <dt>Availability</dt>
        <dd>
          <Share measured={measured} />
        </dd>
      </div>
      <div>
        <dt>Gaps</dt>
        <dd>{gapsOf(measured)}</dd>
      </div>
      <div>
        <dt>Longest gap</dt>
        <dd>{longestOf(measured)}</dd>
      </div>
    </dl>
  </li>
);

const StreamLink = ({ stream: { feedId, baseAsset, quoteAsset, name } }: { readonly stream: CatalogEntry }) => (
  <span class="status-stream">
    <a href={streamHref(feedId)}>{`${baseAsset}/${quoteAsset}`}</a>
    <span class="small muted">{name}</span>
  </span>
);

const Status = ({ stream: { status, expectedDecommissionAt } }: { readonly stream: CatalogEntry }) => {
  const { clock } = useExplorer();
  return <StatusPill status={status} expectedDecommissionAt={expectedDecommissionAt} nowMs={clock.nowMs.peek()} />;
};

const unknown = <span class="muted">–</span>;

const Lag = ({ stream, measured }: StreamProps) => {
  if (stream.status === 'decommissioned') return <span class="muted">ended</span>;
  if (measured === undefined) return unknown;
  const { lagMs } = measured;
  if (lagMs === undefined) return <span class="muted">no data yet</span>;
  const text = lagMs < 10_000 ? `${(lagMs / 1_000).toFixed(1)} s` : formatAge(lagMs);
  return lagMs > behindAfterMs ? <span class="warn">{text} behind</span> : <span>{text}</span>;
};

const Share = ({ measured }: { readonly measured: Measured | undefined }) => {
  const share = measured && shareOf(measured);
  if (share === undefined) return unknown;
  return <span class={share >= 1 ? '' : share >= 0.99 ? 'warn' : 'bad'}>{formatAvailability(share)}</span>;
};

const isMeasured = (measured: Measured | undefined): measured is Measured => measured?.coverage.from !== undefined;

const gapsOf = (measured: Measured | undefined) =>
  isMeasured(measured) ? formatCount(measured.coverage.gapCount) : unknown;

const longestOf = (measured: Measured | undefined) => {
  if (!isMeasured(measured)) return unknown;
  const { longestGap } = measured.coverage;
  return longestGap === null ? 'none' : formatAge(longestGap.seconds * 1_000);
};

const noCells = Array.from({ length: hourCount }, (_, i) => i);

const Strip = ({ measured }: { readonly measured: Measured | undefined }) => {
  const { times } = useExplorer();
  if (measured === undefined)
    return (
      <div class="status-strip" aria-hidden="true">
        {noCells.map((i) => (
          <span key={i} class="status-cell unknown" />
        ))}
      </div>
    );
  const cells = stripOf(measured);
  return (
    <div class="status-strip" role="img" aria-label={describeStrip(cells)}>
      {cells.map(({ from, grade, text }) => (
        <span key={from} class={`status-cell ${grade}`} title={`From ${times.format(from * 1_000)}: ${text}`} />
      ))}
    </div>
  );
};

/** What the cells of a strip mean. */
export const StripLegend = () => (
  <ul class="status-legend small muted">
    {(
      [
        ['whole', 'complete'],
        ['partly', 'partly'],
        ['none', 'no report'],
        ['unknown', 'not measured, or before the first report'],
      ] as const
    ).map(([grade, text]) => (
      <li key={grade}>
        <span class="status-key">
          <span class={`status-cell ${grade}`} />
        </span>{' '}
        {text}
      </li>
    ))}
  </ul>
);
