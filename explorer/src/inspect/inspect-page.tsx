// The inspect page: decodes and verifies any report that the user gives, in the browser, without an account.
import { useMemo, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { reportHref, streamHref } from '../state/router.ts';
import { Empty, Notice, useTitle } from '../ui/components.tsx';
import { shortId } from '../ui/format.ts';
import { alterField } from '../ui/report/bytes.ts';
import { readReport } from '../ui/report/reading.ts';
import { useReportCheck } from '../ui/report/report-check.ts';
import { ReportView } from '../ui/report/report-view.tsx';
import { type Given, ReportInput, typed } from './input.tsx';
import { lineAndColumnOf, type Paste, type PastedReport, parsePaste } from './paste.ts';
import '../styles/report.css';

export function InspectPage() {
  useTitle('Inspect a report');
  const [given, give] = useState<Given>(typed(''));
  const paste = useMemo(() => parsePaste(given.text), [given]);
  const isCompact = paste.kind === 'reports';
  return (
    <div class="stack inspect">
      <header>
        <h1>Inspect a report</h1>
        {!isCompact && (
          <p class="muted">
            Decode a report and verify its signatures. The report stays in this browser; the signer sets come from the
            server. If the verification fails and you are signed in, the page reads the server’s report of the same
            stream and time, to show what was altered.
          </p>
        )}
      </header>
      <ReportInput given={given} give={give} isWrong={paste.kind === 'wrong'} isCompact={isCompact} />
      <div id="paste-problem">{paste.kind === 'wrong' && <Problem text={given.text} paste={paste} />}</div>
      {paste.kind === 'empty' && (
        <Empty title="Paste a report, or drop a file">
          The API returns a report as <code>fullReport</code>. <code>sealpost report latest FEED --raw</code> prints
          one. A file may have JSON, one JSON report per line, hex, or the bytes of a report.
        </Empty>
      )}
      {paste.kind === 'reports' && <Inspected key={given} reports={paste.reports} given={given} />}
    </div>
  );
}

/** What is wrong with the text, and where. */
const Problem = ({ text, paste }: { readonly text: string; readonly paste: Paste & { readonly kind: 'wrong' } }) => {
  const { problem, advice, at } = paste;
  const position = at === undefined ? undefined : lineAndColumnOf(text, at);
  return (
    <Notice kind="error" title={problem}>
      {position !== undefined && at !== undefined && (
        <p>
          At line {position.line}, column {position.column}:{' '}
          <code class="excerpt">
            {text.slice(Math.max(0, at - 24), at)}
            <mark>{text[at] ?? '⌁'}</mark>
            {text.slice(at + 1, at + 16)}
          </code>
        </p>
      )}
      <p>{advice}</p>
    </Notice>
  );
};

type InspectedProps = { readonly reports: readonly PastedReport[]; readonly given: Given };

/** The chosen report; `isAltered` after "Alter one bit". */
const Inspected = ({ reports, given }: InspectedProps) => {
  const { catalog } = useExplorer();
  const [index, setIndex] = useState(0);
  const [isAltered, setAltered] = useState(false);
  const { fullReport, claim } = reports[index] ?? (reports[0] as PastedReport); // there is at least one
  const original = useMemo(() => readReport(fullReport), [fullReport]);
  const target = original.segments.filter(({ name, part }) => part === 'body' && name !== 'feedId').at(-1);
  const read = useMemo(
    () => (isAltered && target !== undefined ? readReport(alterField(fullReport, target)) : original),
    [original, isAltered],
  );
  const source = useMemo(
    () => (isAltered ? { ...given.source, original: fullReport } : given.source),
    [given, isAltered, fullReport],
  );
  const check = useReportCheck(read, claim, source);
  const stream = catalog.find(read.feedId);
  const pair = stream && `${stream.baseAsset}/${stream.quoteAsset}`;
  const isExample = source.kind === 'example';
  return (
    <ReportView report={read} check={check} isExample={isExample}>
      <div class="report-bar">
        <div class="report-heading">
          <h2>{pair ?? (isExample ? 'Example report' : 'Stream not listed on this server')}</h2>
          <p class="small muted">
            <code class="feed-id">{read.feedId}</code>
          </p>
        </div>
        <nav class="row" aria-label="Report actions">
          {target !== undefined && (
            <button
              type="button"
              aria-pressed={isAltered}
              title={`Changes the last bit of ${target.name}, to show what a forgery looks like.`}
              onClick={() => setAltered(!isAltered)}
            >
              {isAltered ? 'Restore the bit' : 'Alter one bit'}
            </button>
          )}
          {stream !== undefined && (
            <a class="button" href={streamHref(read.feedId)}>
              Stream
            </a>
          )}
          {stream !== undefined && read.window !== undefined && (
            <a class="button" href={reportHref(read.feedId, Math.floor(read.window.observationsMs / 1_000))}>
              Open on this server
            </a>
          )}
        </nav>
      </div>
      {reports.length > 1 && (
        <ReportList
          reports={reports}
          index={index}
          choose={(next) => {
            setIndex(next);
            setAltered(false);
          }}
        />
      )}
    </ReportView>
  );
};

type ListProps = {
  readonly reports: readonly PastedReport[];
  readonly index: number;
  readonly choose: (index: number) => void;
};

type ListLine = { readonly feedId: string; readonly observationsMs: number | undefined };

/** Decodes no more than the list shows: there may be a thousand reports. */
const readLine = ({ fullReport }: PastedReport): ListLine => {
  const { feedId, window } = readReport(fullReport);
  return { feedId, observationsMs: window?.observationsMs };
};

/** Lines of the list that are shown without scrolling. */
const listLines = 6;

/** Every report of the text, to choose one; the arrow keys move through it. */
const ReportList = ({ reports, index, choose }: ListProps) => {
  const { catalog, times } = useExplorer();
  const lines = useMemo(() => reports.map(readLine), [reports]);
  const nameOf = ({ feedId, observationsMs }: ListLine): string => {
    const stream = catalog.find(feedId);
    const name = stream === undefined ? shortId(feedId) : `${stream.baseAsset}/${stream.quoteAsset}`;
    return observationsMs === undefined ? name : `${name}, valid to ${times.format(observationsMs)}`;
  };
  return (
    <label class="field report-list">
      <span>{reports.length} reports</span>
      <select
        size={Math.min(listLines, reports.length)}
        value={index}
        onChange={(event) => choose(Number(event.currentTarget.value))}
      >
        {lines.map((line, i) => (
          <option key={i} value={i}>
            {i + 1}. {nameOf(line)}
          </option>
        ))}
      </select>
    </label>
  );
};
