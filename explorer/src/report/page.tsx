// The permalink of a report: the stream's report at a second and the adjacent ones, or why there is none.
import { type Client, SealpostError } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import { useMemo } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { reportHref, streamHref } from '../state/router.ts';
import { Copy, Failure, Loading, Notice, Time, useTitle } from '../ui/components.tsx';
import { formatAge, formatPrice } from '../ui/format.ts';
import { type Loaded, useLoaded } from '../ui/loaded.ts';
import { LookupAnswer, PriceAt } from '../ui/price-at/price-at.tsx';
import { lookUp, type WindowJson } from '../ui/price-at/price-lookup.ts';
import { readReport } from '../ui/report/reading.ts';
import { type ReportAround, ReportView } from '../ui/report/view.tsx';
import { SignInButton } from '../ui/sign-in-dialog.tsx';
import '../styles/report.css';

type PageProps = { readonly feedId: string; readonly timestamp: number };

export const ReportPage = ({ feedId, timestamp }: PageProps) => {
  const { session, catalog, times } = useExplorer();
  const stream = catalog.find(feedId);
  const pair = stream === undefined ? undefined : `${stream.baseAsset}/${stream.quoteAsset}`;
  useTitle(`${pair ?? 'Report'} at ${times.format(timestamp * 1_000)}`);
  return (
    <div class="stack report-page">
      <nav class="row small" aria-label="Path">
        <a href="/">Streams</a>
        <span class="muted" aria-hidden="true">
          /
        </span>
        <a href={streamHref(feedId)}>{pair ?? 'Stream'}</a>
        <span class="muted" aria-hidden="true">
          /
        </span>
        <span>Report</span>
      </nav>
      {session.userId.value === undefined ? (
        <Anonymous feedId={feedId} timestamp={timestamp} pair={pair} />
      ) : (
        <SignedIn feedId={feedId} timestamp={timestamp} pair={pair} />
      )}
    </div>
  );
};

type NamedProps = PageProps & { readonly pair: string | undefined };

const Heading = ({ feedId, timestamp, pair }: NamedProps) => (
  <header class="report-heading">
    <h1>
      {pair ?? 'Report'} <span class="muted">at</span>{' '}
      <span class="whole">
        <Time ms={timestamp * 1_000} />
      </span>
    </h1>
    <p class="row small muted">
      <code class="feed-id">{feedId}</code>
      <Copy text={feedId} label="Copy feed ID" />
    </p>
  </header>
);

const Anonymous = (props: NamedProps) => (
  <>
    <Heading {...props} />
    <Notice title="Sign in to read reports" action={<SignInButton primary />}>
      Already have a report? <a href="/inspect">Inspect it without an account</a>.
    </Notice>
  </>
);

const SignedIn = (props: NamedProps) => {
  const { feedId, timestamp } = props;
  const { session } = useExplorer();
  const client = session.client.value;
  const [answer, reload] = useLoaded((signal) => client.at(feedId, timestamp, { signal }), [client, feedId, timestamp]);
  if (answer.phase === 'loading')
    return (
      <>
        <Heading {...props} />
        <Loading label="Loading the report" lines={9} />
      </>
    );
  if (answer.phase === 'ready') return <Found {...props} report={answer.value.report} client={client} />;
  const { error } = answer;
  return (
    <>
      <Heading {...props} />
      {error instanceof SealpostError && missCodes.includes(error.code) ? (
        <Miss {...props} client={client} retry={reload} />
      ) : (
        <Failure error={error} retry={reload} />
      )}
    </>
  );
};

const missCodes: readonly string[] = ['report_not_found', 'timestamp_out_of_bounds'];

/** The window of an adjacent report, from the details of a miss. */
const windowOf = (raw: unknown): WindowJson | undefined => {
  const { validFromTimestamp, observationsTimestamp } = Object(raw);
  const isWindow = Number.isSafeInteger(validFromTimestamp) && Number.isSafeInteger(observationsTimestamp);
  return isWindow ? { validFromTimestamp, observationsTimestamp } : undefined;
};

type Neighbors = { readonly previous: WindowJson | undefined; readonly next: WindowJson | undefined };

/** The reports before and after a window, across gaps; undefined if there is none or it cannot be read. */
const readNeighbors = async (
  client: Client,
  feedId: string,
  { validFromTimestamp, observationsTimestamp }: WindowJson,
  signal: AbortSignal,
): Promise<Neighbors> => {
  const [previous, next] = await Promise.all([
    client.at(feedId, validFromTimestamp - 1, { signal }).then(
      ({ report }): WindowJson => report,
      (error: unknown) => (error instanceof SealpostError ? windowOf(error.details.previous) : undefined),
    ),
    client.page(feedId, observationsTimestamp + 1, 1, { signal }).then(
      ({ reports }) => reports[0],
      () => undefined,
    ),
  ]);
  return { previous, next };
};

const toSpan = ({ validFromTimestamp, observationsTimestamp }: WindowJson) => ({
  fromMs: validFromTimestamp * 1_000,
  toMs: observationsTimestamp * 1_000,
});

type FoundProps = NamedProps & { readonly report: ReportJson; readonly client: Client };

const Found = ({ feedId, timestamp, pair, report, client }: FoundProps) => {
  const { times } = useExplorer();
  const read = useMemo(() => readReport(report.fullReport), [report]);
  const [neighbors, reload] = useLoaded((signal) => readNeighbors(client, feedId, report, signal), [client, report]);
  const around: ReportAround | undefined =
    neighbors.phase !== 'ready'
      ? undefined
      : {
          previous: neighbors.value.previous && toSpan(neighbors.value.previous),
          next: neighbors.value.next && toSpan(neighbors.value.next),
        };
  const price = read.decoded === undefined ? '' : ` ${formatPrice(read.decoded.price)}`;
  useTitle(`${pair ?? 'Report'}${price} at ${times.format(timestamp * 1_000)}`);
  const permalink = `${window.location.origin}${reportHref(feedId, report.observationsTimestamp)}`;
  return (
    <>
      <div class="report-bar">
        <Heading feedId={feedId} timestamp={timestamp} pair={pair} />
        <nav class="row" aria-label="Adjacent reports">
          <Step direction="previous" feedId={feedId} own={report} neighbors={neighbors} reload={reload} />
          <Step direction="next" feedId={feedId} own={report} neighbors={neighbors} reload={reload} />
          <Copy text={permalink} label="Copy permalink">
            Permalink
          </Copy>
        </nav>
      </div>
      <ReportView report={read} claim={report} asked={timestamp} around={around} />
    </>
  );
};

type StepProps = {
  readonly direction: 'previous' | 'next';
  readonly feedId: string;
  readonly own: WindowJson;
  readonly neighbors: Loaded<Neighbors>;
  readonly reload: () => void;
};

/** A link to an adjacent report; it shows the gap between the two, if any. */
const Step = ({ direction, feedId, own, neighbors, reload }: StepProps) => {
  const { times } = useExplorer();
  const text = direction === 'previous' ? '← Previous' : 'Next →';
  if (neighbors.phase === 'loading')
    return (
      <button type="button" disabled>
        {text}
      </button>
    );
  const found = neighbors.phase === 'ready' ? neighbors.value[direction] : undefined;
  if (found === undefined)
    return direction === 'previous' ? (
      <button type="button" disabled title="No earlier report, or it is before retained history.">
        {text}
      </button>
    ) : (
      <button type="button" onClick={reload} title="This was the newest report. Check for a newer one.">
        Newest · check again
      </button>
    );
  const gap =
    direction === 'previous'
      ? own.validFromTimestamp - found.observationsTimestamp - 1
      : found.validFromTimestamp - own.observationsTimestamp - 1;
  const over = gap > 0 ? `, after a gap of ${formatAge(gap * 1_000)}` : '';
  return (
    <a
      class="button"
      href={reportHref(feedId, found.observationsTimestamp)}
      title={`Valid to ${times.format(found.observationsTimestamp * 1_000)}${over}`}
    >
      {text}
      {gap > 0 && <span class="warn small"> gap {formatAge(gap * 1_000)}</span>}
    </a>
  );
};

type MissProps = PageProps & { readonly client: Client; readonly retry: () => void };

/** Why there is no report, the nearest ones, and a form to look up another time. */
const Miss = ({ feedId, timestamp, client, retry }: MissProps) => {
  const [lookup] = useLoaded((signal) => lookUp(client, feedId, timestamp, signal), [client, feedId, timestamp]);
  if (lookup.phase === 'loading') return <Loading label="Loading the nearest reports" lines={4} />;
  if (lookup.phase === 'failed') return <Failure error={lookup.error} retry={retry} />;
  const { value } = lookup;
  return (
    <>
      <h2 class="unseen">Nearest reports</h2>
      <LookupAnswer feedId={feedId} lookup={value} />
      <p class="row">
        {value.kind === 'miss' && value.next === undefined && (
          <button type="button" onClick={retry}>
            Check again
          </button>
        )}
        <a class="button" href={streamHref(feedId)}>
          Go to the stream
        </a>
      </p>
      <PriceAt feedId={feedId} seconds={timestamp} />
    </>
  );
};
