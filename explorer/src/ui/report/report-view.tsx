// One report, read or pasted: verdict, price and validity, signatures, fields and bytes, raw JSON, verifier arguments, "Copy as".
import type { ReportJson } from '@sealpost/protocol';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { createByteLink } from './byte-link.ts';
import { checkingForms, readingForms } from './copy-as.ts';
import { ReportCopyAs } from './copy-as-box.tsx';
import { compareReports } from './difference.ts';
import { ReportDump } from './dump.tsx';
import { ReportFieldTable } from './field-table.tsx';
import { ReportPayload } from './payload.tsx';
import { type ReportAround, ReportPrice } from './price-card.tsx';
import { ReportJsonText } from './raw-json.tsx';
import type { ReportReading } from './reading.ts';
import { type ReportCheck, signedReportOf, verdictStateOf } from './report-check.ts';
import { ReportSignatures } from './signatures.tsx';
import { ReportVerdict } from './verdict.tsx';
import '../../styles/report.css';

type ViewProps = {
  readonly report: ReportReading;
  readonly check: ReportCheck;
  /** The report as the API returned it; undefined if the user gave it. */
  readonly answer?: ReportJson;
  /** The requested second, if the report is from the server. */
  readonly asked?: number;
  readonly around?: ReportAround | undefined;
  readonly isExample?: boolean;
  /** What stands between the verdict and the price. */
  readonly children?: ComponentChildren;
};

/** A report with its verdict, which comes first. */
export function ReportView({ report, check, answer, asked, around, isExample = false, children }: ViewProps) {
  const { times } = useExplorer();
  const link = useMemo(createByteLink, [report]);
  const { origin } = window.location;
  const forms =
    answer === undefined
      ? checkingForms(report.fullReport)
      : readingForms(origin, report.feedId, answer.observationsTimestamp);
  const state = verdictStateOf(check);
  const signed = signedReportOf(check);
  const difference = signed && compareReports(signed, report, times.format);
  return (
    <div class="report">
      <ReportVerdict {...{ report, check, difference, isExample }} />
      {children}
      <Contents hasAnswer={answer !== undefined} />
      <div class="report-top">
        <ReportPrice {...{ report, asked, around, state, isExample }} />
        <ReportSignatures {...{ report, check, link, isExample }} />
      </div>
      <div class="report-middle">
        <ReportFieldTable {...{ report, link, state, difference }} />
        <ReportDump {...{ report, link, difference }} />
      </div>
      <div class="report-bottom">
        <ReportPayload fullReport={report.fullReport} />
        <div class="report-texts">
          {answer !== undefined && <ReportJsonText report={answer} />}
          <ReportCopyAs title="Copy as" forms={forms} />
        </div>
      </div>
    </div>
  );
}

const contents = [
  ['signatures-title', 'Signatures'],
  ['fields-title', 'Fields'],
  ['bytes-title', 'Bytes'],
  ['payload-title', 'Verify on-chain'],
  ['json-title', 'Raw JSON'],
  ['copy-title', 'Copy as'],
] as const;

/** Links to the parts of the page. They scroll without an entry in the history, and move the focus to the part. */
const Contents = ({ hasAnswer }: { readonly hasAnswer: boolean }) => (
  <nav class="report-contents small" aria-label="Parts of this page">
    {contents
      .filter(([id]) => hasAnswer || id !== 'json-title')
      .map(([id, title]) => (
        <a
          key={id}
          href={`#${id}`}
          onClick={(event) => {
            event.preventDefault();
            const heading = document.getElementById(id);
            heading?.setAttribute('tabindex', '-1');
            heading?.focus({ preventScroll: true });
            heading?.closest('section')?.scrollIntoView({ block: 'start' });
          }}
        >
          {title}
        </a>
      ))}
  </nav>
);
