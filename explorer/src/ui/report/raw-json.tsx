// The "Raw JSON" card: the report as the API returns it, to copy or download.
import type { ReportJson } from '@sealpost/protocol';
import { Copy } from '../components.tsx';

/** The body of the API's response. */
export const answerText = ({ feedID, validFromTimestamp, observationsTimestamp, fullReport }: ReportJson): string =>
  JSON.stringify({ report: { feedID, validFromTimestamp, observationsTimestamp, fullReport } });

export function ReportJsonText({ report }: { readonly report: ReportJson }) {
  const text = answerText(report);
  return (
    <section class="card raw-json" aria-labelledby="json-title">
      <h2 id="json-title">Raw JSON</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
      <pre class="code" tabIndex={0}>
        <code>{text}</code>
      </pre>
      <div class="code-foot">
        <p class="muted small">The body of the API’s response, unchanged.</p>
        <div class="row">
          <Copy text={text} label="Copy JSON">
            Copy
          </Copy>
          <button type="button" onClick={() => saveJson(text, nameOf(report))}>
            Download
          </button>
        </div>
      </div>
    </section>
  );
}

const nameOf = ({ feedID, observationsTimestamp }: ReportJson): string =>
  `report-${feedID.slice(0, 10)}-${observationsTimestamp}.json`;

/** Saves a text as a file. */
const saveJson = (text: string, name: string): void => {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url)); // the download has begun by then
};
