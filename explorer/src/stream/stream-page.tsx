// The stream page: live price, chart, recent reports, completeness, and details.
import { type CatalogEntry, isSchemaVersion, schemaVersionOf } from '@sealpost/protocol';
import { useEffect, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { AddAlert } from '../ui/add-alert.tsx';
import { AddressProblems } from '../ui/address-problems.tsx';
import { Empty, Failure, Loading, Notice, StatusPill, useTitle } from '../ui/components.tsx';
import { PriceAt } from '../ui/price-at/price-at.tsx';
import { SignInButton } from '../ui/sign-in-dialog.tsx';
import { Chart } from './chart/chart.tsx';
import { useStreamChart } from './chart/chart-hooks.ts';
import { viewProblems } from './chart/chart-view.ts';
import { StreamCompleteness } from './completeness-card.tsx';
import { StreamFacts } from './facts.tsx';
import { useHistory } from './history.ts';
import { LivePill, StreamPrice } from './price.tsx';
import { dayProblems } from './reports/day-address.ts';
import { StreamDownload } from './reports/download-card.tsx';
import { StreamReports } from './reports/reports-card.tsx';
import { StreamFields } from './stream-fields.tsx';
import { UseIt } from './use-it.tsx';
import '../styles/stream.css';

export function StreamPage({ feedId }: { readonly feedId: string }) {
  const { catalog, session } = useExplorer();
  const state = catalog.state.value;
  if (state.phase === 'loading') return <Loading label="Loading the stream" lines={8} />;
  if (state.phase === 'failed') return <Failure error={state.error} retry={catalog.reload} />;
  const stream = catalog.find(feedId);
  if (stream === undefined) return <UnknownStream feedId={feedId} />;
  if (state.readable.has(feedId)) return <ReadableStreamPage key={feedId} stream={stream} readable={state.readable} />;
  return <ClosedStream stream={stream} isSignedIn={session.userId.value !== undefined} />;
}

const UnknownStream = ({ feedId }: { readonly feedId: string }) => {
  const { session } = useExplorer();
  useTitle('Unknown stream');
  return (
    <Empty
      title="Stream not found"
      level={1}
      action={
        <div class="row">
          <a class="button" href="/">
            See all streams
          </a>
          {session.userId.value === undefined && <SignInButton />}
        </div>
      }
    >
      <p>
        No {session.userId.value === undefined ? 'public stream' : 'stream visible to your account'} has the feed ID{' '}
        <code class="stream-unknown">{feedId}</code>. It may be hidden, or belong to another network.
      </p>
    </Empty>
  );
};

const pairOf = ({ baseAsset, quoteAsset }: CatalogEntry): string => `${baseAsset}/${quoteAsset}`;

const StreamHead = ({ stream, isLive }: { readonly stream: CatalogEntry; readonly isLive: boolean }) => {
  const { clock } = useExplorer();
  const { status, expectedDecommissionAt } = stream;
  return (
    <div class="stream-head">
      <nav aria-label="Path" class="small">
        <a href="/">Streams</a> <span class="muted">/ {stream.name}</span>
      </nav>
      <div class="row">
        <h1>{pairOf(stream)}</h1>
        <StatusPill status={status} expectedDecommissionAt={expectedDecommissionAt} nowMs={clock.nowMs.value} />
        {isLive && <LivePill />}
        {isLive && status !== 'decommissioned' && <AddAlert feedId={stream.feedId} />}
      </div>
      <p class="muted">
        {stream.assetName} · {stream.attributeType} · {stream.feedType}
      </p>
      <UseIt feedId={stream.feedId} />
    </div>
  );
};

/** A stream whose prices this user may not read: its details, and how to get access. */
const ClosedStream = ({ stream, isSignedIn }: { readonly stream: CatalogEntry; readonly isSignedIn: boolean }) => {
  useTitle(pairOf(stream));
  return (
    <div class="stack">
      <StreamHead stream={stream} isLive={false} />
      {isSignedIn ? (
        <Notice kind="warning" title="Your account does not include this stream">
          Ask the server’s operator to entitle your account to it.
        </Notice>
      ) : (
        <Notice title="Sign in to see the price" action={<SignInButton primary />}>
          Prices, charts and signed reports need an account.
        </Notice>
      )}
      <StreamFacts stream={stream} />
    </div>
  );
};

/** From this width on, the page has two columns; stream.css has the same. */
const wide = '(min-width: 64rem)';

const useIsWide = (): boolean => {
  const [isWide, setWide] = useState(() => window.matchMedia(wide).matches);
  useEffect(() => {
    const media = window.matchMedia(wide);
    const read = (): void => setWide(media.matches);
    read(); // the width may have changed since the first render
    media.addEventListener('change', read);
    return () => media.removeEventListener('change', read);
  }, []);
  return isWide;
};

type ReadableProps = { readonly stream: CatalogEntry; readonly readable: ReadonlySet<string> };

const ReadableStreamPage = ({ stream, readable }: ReadableProps) => {
  const explorer = useExplorer();
  const { feedId } = stream;
  const history = useHistory(explorer, feedId);
  const chart = useStreamChart(feedId, history);
  const { change, candles } = chart.viewed.value;
  const spans = history.value;
  const isWide = useIsWide();
  const { query } = explorer.router.address.value;
  return (
    <div class="stack">
      <StreamHead stream={stream} isLive />
      <LiveTrouble />
      <AddressProblems problems={[...viewProblems(query, readable), ...dayProblems(query)]} />
      <div class="stream-columns">
        <div class="stack">
          <section class="card stack" aria-label="Price">
            <StreamPrice stream={stream} change={change} />
            <Chart stream={stream} chart={chart} />
          </section>
          {!isWide && <PriceAt feedId={feedId} />}
          <StreamFields stream={stream} />
          <StreamReports feedId={feedId} status={stream.status} spans={spans} candles={candles} />
          {isSchemaVersion(schemaVersionOf(feedId)) && <StreamDownload stream={stream} />}
        </div>
        <div class="stack stream-side">
          {isWide && <PriceAt feedId={feedId} />}
          <StreamCompleteness feedId={feedId} spans={spans} />
          <StreamFacts stream={stream} />
        </div>
      </div>
    </div>
  );
};

/** Why there are no live prices, if reconnecting does not help. */
const LiveTrouble = () => {
  const { live } = useExplorer();
  return live.problem.value === undefined ? null : <Failure error={live.problem.value} />;
};
