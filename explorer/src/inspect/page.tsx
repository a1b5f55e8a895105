// The inspect page: decodes and verifies any pasted report in the browser, without an account.
import { useMemo, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { reportHref, streamHref } from '../state/router.ts';
import { Empty, Notice, useTitle } from '../ui/components.tsx';
import { alterField } from '../ui/report/bytes.ts';
import { readReport } from '../ui/report/reading.ts';
import { ReportView } from '../ui/report/view.tsx';
import { type Paste, parsePaste, placeOf } from './paste.ts';
import '../styles/report.css';

export const InspectPage = () => {
  useTitle('Inspect a report');
  const [text, setText] = useState('');
  const [index, setIndex] = useState(0);
  const paste = useMemo(() => parsePaste(text), [text]);
  const change = (next: string): void => {
    setText(next);
    setIndex(0);
  };
  return (
    <div class="stack inspect">
      <header>
        <h1>Inspect a report</h1>
        <p class="muted">
          Decode a report and verify its signatures. The report stays in this browser; only the list of signers comes
          from the server.
        </p>
      </header>
      <label class="field">
        <span>A full report in hex, a JSON response with reports, or one JSON report per line</span>
        <textarea
          class="paste"
          rows={5}
          value={text}
          spellcheck={false}
          autocomplete="off"
          placeholder='0x0009…  or  {"report":{"feedID":"0x0003…","fullReport":"0x0009…"}}'
          aria-invalid={paste.kind === 'wrong'}
          aria-describedby="paste-problem"
          onInput={(event) => change(event.currentTarget.value)}
        />
      </label>
      <div id="paste-problem">{paste.kind === 'wrong' && <Problem text={text} paste={paste} />}</div>
      {paste.kind === 'empty' && (
        <Empty title="Paste a report to start">
          The API returns it as <code>fullReport</code>. <code>sealpost report latest FEED --raw</code> prints one.
        </Empty>
      )}
      {paste.kind === 'reports' && <Inspected {...{ paste, index, setIndex }} replace={change} />}
    </div>
  );
};

/** What is wrong with the text, and where. */
const Problem = ({ text, paste }: { readonly text: string; readonly paste: Paste & { readonly kind: 'wrong' } }) => {
  const { problem, advice, at } = paste;
  const place = at === undefined ? undefined : placeOf(text, at);
  return (
    <Notice kind="error" title={problem}>
      {place !== undefined && at !== undefined && (
        <p>
          At line {place.line}, column {place.column}:{' '}
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

type InspectedProps = {
  readonly paste: Paste & { readonly kind: 'reports' };
  readonly index: number;
  readonly setIndex: (index: number) => void;
  /** Replaces the pasted text. */
  readonly replace: (text: string) => void;
};

const Inspected = ({ paste: { reports }, index, setIndex, replace }: InspectedProps) => {
  const { catalog } = useExplorer();
  const pasted = reports[index];
  const read = useMemo(() => (pasted === undefined ? undefined : readReport(pasted.fullReport)), [pasted]);
  if (pasted === undefined || read === undefined) return null;
  const stream = catalog.find(read.feedId);
  const [target] = read.segments.filter(({ name, part }) => part === 'body' && name !== 'feedId').slice(-1);
  return (
    <>
      <div class="report-bar">
        <div class="report-heading">
          <h2>
            {stream === undefined ? 'Stream not listed on this server' : `${stream.baseAsset}/${stream.quoteAsset}`}
          </h2>
          <p class="small muted">
            <code class="feed-id">{read.feedId}</code>
          </p>
        </div>
        <nav class="row" aria-label="Report actions">
          {reports.length > 1 && (
            <label class="check">
              Report
              <select value={index} onChange={(event) => setIndex(Number(event.currentTarget.value))}>
                {reports.map((report, i) => (
                  <option key={`${i} ${report.fullReport.slice(-32)}`} value={i}>
                    {i + 1} of {reports.length}
                  </option>
                ))}
              </select>
            </label>
          )}
          {target !== undefined && (
            <button
              type="button"
              title={`Changes the last bit of ${target.name}. Press again to restore it.`}
              onClick={() => replace(alterField(read.fullReport, target))}
            >
              Alter one bit
            </button>
          )}
          {stream !== undefined && (
            <a class="button" href={streamHref(read.feedId)}>
              Stream
            </a>
          )}
          {stream !== undefined && read.decoded !== undefined && (
            <a class="button" href={reportHref(read.feedId, read.decoded.observationsTimestamp)}>
              Open on this server
            </a>
          )}
        </nav>
      </div>
      <ReportView report={read} claim={pasted.claim} />
    </>
  );
};
