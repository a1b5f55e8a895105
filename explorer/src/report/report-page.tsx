// The permalink of a report: the stream's report at a second and the adjacent ones, or why there is none.
import { type Client, SealpostError } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { streamHref } from '../state/router.ts';
import { Copy, Failure, Loading, Notice, Time, useTitle } from '../ui/components.tsx';
import { formatPrice } from '../ui/format.ts';
import { useLoaded } from '../ui/loaded.ts';
import { LookupAnswer, PriceAt } from '../ui/price-at/price-at.tsx';
import { lookUpPrice } from '../ui/price-at/price-lookup.ts';
import type { ReportAround } from '../ui/report/price-card.tsx';
import { readReport } from '../ui/report/reading.ts';
import { useReportCheck, verdictStateOf } from '../ui/report/report-check.ts';
import { ReportView } from '../ui/report/report-view.tsx';
import { SignInButton } from '../ui/sign-in-dialog.tsx';
import { readAddressMs, readReportAt, reportSpanOf, type Side } from './neighbors.ts';
import { hrefOf, SideNotes, StepButtons, useSteps } from './step-buttons.tsx';
import { createSteps, type Steps } from './steps.ts';
import '../styles/report.css';

type PageProps = { readonly feedId: string; readonly timestamp: number };

export function ReportPage({ feedId, timestamp }: PageProps) {
  const { session, catalog } = useExplorer();
  const stream = catalog.find(feedId);
  const pair = stream === undefined ? undefined : `${stream.baseAsset}/${stream.quoteAsset}`;
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
}

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

/** The title of a page without a verified price. */
const usePlainTitle = ({ pair, timestamp }: NamedProps): void => {
  const { times } = useExplorer();
  useTitle(`${pair ?? 'Report'} at ${times.format(timestamp * 1_000)}`);
};

const Anonymous = (props: NamedProps) => {
  usePlainTitle(props);
  return (
    <>
      <Heading {...props} />
      <Notice title="Sign in to read reports" action={<SignInButton primary />}>
        Already have a report? <a href="/inspect">Inspect it without an account</a>.
      </Notice>
    </>
  );
};

const missCodes: readonly string[] = ['report_not_found', 'timestamp_out_of_bounds'];

const SignedIn = (props: NamedProps) => {
  const { feedId, timestamp } = props;
  const { session, router, live } = useExplorer();
  const client = session.client.value;
  const { ms, problem } = readAddressMs(feedId, timestamp, router.address.value.query.get('ms'));
  const steps = useMemo(() => createSteps(client, live, feedId), [client, live, feedId]);
  useEffect(() => () => steps.close(), [steps]);
  const [, setLoads] = useState(0);
  const keep = (report: ReportJson): void => {
    steps.keep(timestamp, ms, report);
    setLoads((count) => count + 1);
  };
  const report = steps.find(timestamp, ms);
  return (
    <>
      {problem !== undefined && (
        <Notice kind="warning" title="The address has an incorrect “ms”">
          {problem} This page shows the report valid at the second.
        </Notice>
      )}
      {report !== undefined ? (
        <LoadedReport {...props} report={report} steps={steps} />
      ) : (
        <Load key={`${timestamp} ${ms}`} {...props} client={client} ms={ms} keep={keep} />
      )}
    </>
  );
};

type LoadProps = NamedProps & {
  readonly client: Client;
  readonly ms: number | undefined;
  readonly keep: (report: ReportJson) => void;
};

/** Loads the report of an address, or says why there is none. */
const Load = (props: LoadProps) => {
  const { client, keep } = props;
  usePlainTitle(props);
  const [answer, reload] = useLoaded(async (signal) => keep(await readReportAt(client, props, signal)), [client]);
  return (
    <>
      <Heading {...props} />
      {answer.phase !== 'failed' ? (
        <Loading label="Loading the report" lines={9} />
      ) : answer.error instanceof SealpostError && missCodes.includes(answer.error.code) ? (
        <Miss {...props} retry={reload} />
      ) : (
        <Failure error={answer.error} retry={reload} />
      )}
    </>
  );
};

const fromServer = { kind: 'server' } as const;

type LoadedReportProps = NamedProps & { readonly report: ReportJson; readonly steps: Steps };

const LoadedReport = ({ feedId, timestamp, pair, report, steps }: LoadedReportProps) => {
  const { times } = useExplorer();
  const read = useMemo(() => readReport(report.fullReport), [report]);
  const check = useReportCheck(read, report, fromServer);
  const { sides, step } = useSteps(steps, report);
  const around: ReportAround = { previous: spanOfSide(sides.previous), next: spanOfSide(sides.next) };
  const state = verdictStateOf(check);
  const price = read.decoded !== undefined && state === 'verified' ? ` ${formatPrice(read.decoded.price)}` : '';
  const warning = state === 'refused' ? 'Not verified: ' : '';
  useTitle(`${warning}${pair ?? 'Report'}${price} at ${times.format(timestamp * 1_000)}`);
  const permalink = `${window.location.origin}${hrefOf(report)}`;
  return (
    <>
      <div class="report-bar">
        <Heading feedId={feedId} timestamp={timestamp} pair={pair} />
        <nav class="row report-steps" aria-label="Adjacent reports">
          <StepButtons sides={sides} step={step} retry={() => steps.look(report)} />
          <Copy text={permalink} label="Copy permalink">
            <span class="wide-only">Permalink</span>
          </Copy>
        </nav>
      </div>
      <ReportView report={read} check={check} answer={report} asked={timestamp} around={around}>
        <SideNotes sides={sides} />
      </ReportView>
    </>
  );
};

const spanOfSide = (side: Side | undefined) => (side?.kind === 'report' ? reportSpanOf(side.report) : undefined);

type MissProps = PageProps & { readonly client: Client; readonly ms: number | undefined; readonly retry: () => void };

/** Why there is no report, the nearest ones, and a form to look up another time. */
const Miss = ({ feedId, timestamp, client, ms, retry }: MissProps) => {
  const [lookup] = useLoaded((signal) => lookUpPrice(client, feedId, timestamp, signal), [client, feedId, timestamp]);
  if (lookup.phase === 'loading') return <Loading label="Loading the nearest reports" lines={4} />;
  if (lookup.phase === 'failed') return <Failure error={lookup.error} retry={retry} />;
  const { value } = lookup;
  return (
    <>
      <h2 class="unseen">Nearest reports</h2>
      {ms !== undefined && value.kind === 'found' && (
        <Notice kind="warning" title="No report at that millisecond">
          The address asks for millisecond {ms}. This is the report valid at its second:
        </Notice>
      )}
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
