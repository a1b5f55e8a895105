// The card that downloads a time range as CSV or Parquet: an estimate before, progress and "Cancel" during, and a file only at the end.
import type { CatalogEntry } from '@sealpost/protocol';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import type { TimesZone } from '../../state/settings/times.ts';
import { Failure, Notice } from '../../ui/components.tsx';
import { formatCount } from '../../ui/format.ts';
import { explainTooOld, readTooOld } from '../../ui/price-at/price-lookup.ts';
import { parseTime } from '../../ui/price-at/time-input.ts';
import {
  type Download,
  DownloadError,
  type DownloadedFile,
  type DownloadFormat,
  type DownloadPlan,
  type DownloadProgress,
  downloadMax,
  fileNameOf,
  openDownload,
} from './download.ts';
import { estimateDownload, requireSize, type StreamActivity } from './download-size.ts';

type Phase =
  | { readonly phase: 'idle' }
  | { readonly phase: 'running'; readonly progress: DownloadProgress | undefined }
  | { readonly phase: 'failed'; readonly error: unknown }
  | { readonly phase: 'empty'; readonly plan: DownloadPlan; readonly skipped: number }
  | { readonly phase: 'saved'; readonly file: string; readonly reports: number; readonly skipped: number };

const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

const types = { csv: 'text/csv;charset=utf-8', parquet: 'application/vnd.apache.parquet' } as const;
/** How long a browser may take to begin saving. */
const savingMs = 30_000;

const save = ({ parts }: DownloadedFile, name: string, format: DownloadFormat): void => {
  const blobParts = parts.map((part) => (typeof part === 'string' ? part : new Uint8Array(part)));
  const url = URL.createObjectURL(new Blob(blobParts, { type: types[format] }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), savingMs);
};

/** What to download, and what was known of it at the start. */
type Job = { readonly plan: DownloadPlan; readonly activity: StreamActivity };

/** One download at a time; it ends with the component. */
const useDownload = () => {
  const { session, chunks } = useExplorer();
  const [state, setState] = useState<Phase>({ phase: 'idle' });
  const abort = useRef<AbortController | undefined>(undefined);
  const opened = useRef<{ readonly job: Job; readonly download: Download } | undefined>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const run = async (job: Job): Promise<void> => {
    abort.current?.abort();
    abort.current = new AbortController();
    const { signal } = abort.current;
    const report = (next: Phase): void => {
      if (!signal.aborted) setState(next);
    };
    report({ phase: 'running', progress: undefined });
    const { plan } = job;
    try {
      const client = session.client.peek();
      if (opened.current === undefined) {
        await requireSize(client, plan, job.activity, signal);
        const opening = await openDownload(plan, sleep, chunks);
        signal.throwIfAborted();
        opened.current = { job, download: opening };
      }
      const { download } = opened.current;
      const file = await download.run(client, (progress) => report({ phase: 'running', progress }), signal);
      opened.current = undefined;
      if (file.reports === 0) return report({ phase: 'empty', plan, skipped: file.skipped });
      const name = fileNameOf(plan);
      save(file, name, plan.format);
      report({ phase: 'saved', file: name, reports: file.reports, skipped: file.skipped });
    } catch (error) {
      if (error instanceof DownloadError) opened.current = undefined; // it would fail again
      report({ phase: 'failed', error });
    }
  };
  const stop = (): void => {
    abort.current?.abort();
    opened.current = undefined;
    setState({ phase: 'idle' });
  };
  return {
    state,
    start: (job: Job) => {
      opened.current = undefined;
      void run(job);
    },
    /** Continues after a failure. */
    resume: () => {
      if (opened.current !== undefined) void run(opened.current.job);
    },
    canResume: () => opened.current !== undefined,
    cancel: stop,
    /** Discards what a failed download has read. */
    discard: () => {
      if (state.phase === 'failed') stop();
    },
  };
};

const formats = { csv: 'CSV', parquet: 'Parquet' } as const;

/** What the page knows of the stream's reports. */
const useStreamActivity = ({ feedId, status }: CatalogEntry): StreamActivity => {
  const { live } = useExplorer();
  const newest = live.latest(feedId).value?.report.observationsTimestamp;
  const isLive = live.state.value === 'live';
  const isEnded = status === 'decommissioned';
  return {
    intervalMs: live.intervalMs(feedId).value,
    isEmpty: newest === undefined && (live.isEmpty(feedId).value || (isEnded && isLive)),
    newestSecond: isEnded || isLive ? newest : undefined,
  };
};

export function StreamDownload({ stream }: { readonly stream: CatalogEntry }) {
  const { clock, times } = useExplorer();
  const [fromText, setFrom] = useState('-1h');
  const [toText, setTo] = useState('');
  const [format, setFormat] = useState<DownloadFormat>('csv');
  const { state, start, resume, canResume, cancel, discard } = useDownload();
  const activity = useStreamActivity(stream);
  const nowMs = clock.nowMs.value;
  const zone = times.zone.value;
  const range = rangeOf(fromText, toText, zone, nowMs);
  const plan = typeof range === 'string' ? undefined : { feedId: stream.feedId, name: stream.name, format, ...range };
  const isRunning = state.phase === 'running';
  useEffect(discard, [fromText, toText, format, zone]);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!isRunning && plan !== undefined) start({ plan, activity });
  };
  return (
    <section class="card stack" aria-labelledby="download-title">
      <h2 id="download-title">Download reports</h2>
      <form class="download-form" onSubmit={submit}>
        <TimeField id="download-from" label="From" text={fromText} onText={setFrom} isOff={isRunning} />
        <TimeField id="download-to" label="To (empty: now)" text={toText} onText={setTo} isOff={isRunning} />
        <fieldset class="button-group" aria-label="Format">
          {(['csv', 'parquet'] as const).map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === format}
              aria-disabled={isRunning}
              onClick={() => !isRunning && setFormat(name)}
            >
              {formats[name]}
            </button>
          ))}
        </fieldset>
        <DownloadButton isRunning={isRunning} isOff={plan === undefined} cancel={cancel} />
      </form>
      <p class="small muted" id="download-estimate">
        {plan === undefined ? range : <Estimate plan={plan} activity={activity} />}
      </p>
      <Outcome state={state} resume={canResume() ? resume : undefined} />
    </section>
  );
}

type DownloadButtonProps = { readonly isRunning: boolean; readonly isOff: boolean; readonly cancel: () => void };

/** One button, so that it keeps the focus. Only its click cancels, not Enter in a field; the second click of a double click does nothing. */
const DownloadButton = ({ isRunning, isOff, cancel }: DownloadButtonProps) => (
  <button
    type={isRunning ? 'button' : 'submit'}
    class={isRunning ? '' : 'primary'}
    aria-disabled={!isRunning && isOff}
    onClick={(event) => {
      if (!isRunning) return;
      event.preventDefault(); // it is a submit button again before the browser acts
      if (event.detail !== 2) cancel();
    }}
  >
    {isRunning ? 'Cancel' : 'Download'}
  </button>
);

/** The seconds to download, or what is wrong with them. */
const rangeOf = (
  fromText: string,
  toText: string,
  zone: TimesZone,
  nowMs: number,
): { readonly from: number; readonly to: number } | string => {
  const now = Math.floor(nowMs / 1_000);
  const from = parseTime(fromText, zone, nowMs);
  const to = toText.trim() === '' ? ({ seconds: now, problem: undefined } as const) : parseTime(toText, zone, nowMs);
  if (from.problem !== undefined) return from.problem;
  if (to.problem !== undefined) return to.problem;
  const end = Math.min(to.seconds, now);
  if (from.seconds > end) return 'The range is empty: “From” is later than “To” or now.';
  return { from: from.seconds, to: end };
};

const formatBytes = (bytes: number): string =>
  bytes < 1_000_000 ? `${formatCount(Math.max(1, bytes / 1_000))} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;

const Estimate = ({ plan, activity }: Job) => {
  const { times } = useExplorer();
  const { reports, requests, bytes } = estimateDownload(plan, activity);
  if (activity.isEmpty) return <>This stream has no reports.</>;
  const range = `${times.format(plan.from * 1_000)} to ${times.format(plan.to * 1_000)}`;
  if (reports === 0 && activity.newestSecond !== undefined)
    return (
      <>
        {range}: no reports. The newest is from {times.format(activity.newestSecond * 1_000)}.
      </>
    );
  return (
    <>
      {range}: about {formatCount(reports)} reports, {formatCount(requests)} {requests === 1 ? 'request' : 'requests'},{' '}
      {formatBytes(bytes)}. At most {formatCount(downloadMax)} reports at a time
      {reports > downloadMax ? ': shorten the range, or use sealpost export' : ''}.
    </>
  );
};

type FieldProps = {
  readonly id: string;
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly isOff: boolean;
};

const TimeField = ({ id, label, text, onText, isOff }: FieldProps) => (
  <div class="field">
    <label for={id}>{label}</label>
    <input
      id={id}
      autoComplete="off"
      autoCapitalize="off"
      spellcheck={false}
      placeholder="2026-11-15 09:28 or -1d"
      aria-describedby="download-estimate"
      readOnly={isOff}
      value={text}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  </div>
);

const Outcome = ({ state, resume }: { readonly state: Phase; readonly resume: (() => void) | undefined }) => {
  const { times } = useExplorer();
  if (state.phase === 'running') return <Running progress={state.progress} />;
  if (state.phase === 'saved')
    return (
      <p role="status" class="download-saved">
        Saved {formatCount(state.reports)} reports as <code>{state.file}</code>.
        {state.skipped > 0 && ` ${formatCount(state.skipped)} reports whose fields are not known are not in it.`}
      </p>
    );
  if (state.phase === 'empty')
    return (
      <p role="status">
        {state.skipped === 0 ? (
          `There are no reports from ${times.format(state.plan.from * 1_000)} to ${times.format(state.plan.to * 1_000)}.`
        ) : (
          <>
            The fields of the reports of this range are not known. <code>sealpost export</code> writes the reports as
            they were signed.
          </>
        )}{' '}
        Nothing was saved.
      </p>
    );
  if (state.phase === 'idle') return null;
  const tooOld = readTooOld(state.error);
  if (tooOld !== undefined)
    return (
      <Notice kind="warning" title="Before retained history">
        {explainTooOld(tooOld, times.format)}
      </Notice>
    );
  if (state.error instanceof DownloadError)
    return (
      <Notice kind="warning" title="Nothing was saved">
        {state.error.message}
      </Notice>
    );
  return <Failure error={state.error} {...(resume !== undefined && { retry: resume })} />;
};

const Running = ({ progress }: { readonly progress: DownloadProgress | undefined }) => {
  const { reports = 0, share = 0, waitSeconds } = progress ?? {};
  return (
    <div class="download-progress">
      <progress value={share} max={1} aria-label="Progress of the download" />
      <span class="small">
        {progress === undefined ? 'Starting…' : `${formatCount(reports)} reports, ${Math.floor(share * 100)} %`}
      </span>
      <span class="small" role="status">
        {waitSeconds !== undefined && 'Rate limit reached. '}
      </span>
      {waitSeconds !== undefined && <Countdown key={progress} seconds={waitSeconds} />}
    </div>
  );
};

/** Not announced: it changes every second. */
const Countdown = ({ seconds }: { readonly seconds: number }) => {
  const { clock } = useExplorer();
  const [startMs] = useState(() => clock.nowMs.peek());
  const left = Math.ceil(seconds - (clock.nowMs.value - startMs) / 1_000);
  return <span class="small">{left > 0 ? `Continuing in ${left} s` : 'Continuing…'}</span>;
};
