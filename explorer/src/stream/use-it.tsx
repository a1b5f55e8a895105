// The top of a stream's page for programmers: its feed ID, and programs that read it.
import { useState } from 'preact/hooks';
import { CodeSampleBox } from '../ui/code-sample-box.tsx';
import { codeSamples, type SampleRequest } from '../ui/code-samples.ts';
import { Copy } from '../ui/components.tsx';
import { useEscape } from '../ui/panel.ts';

const reads = {
  latest: { title: 'Latest report', label: 'Read the latest report' },
  live: { title: 'Live reports', label: 'Receive live reports' },
} as const;

type ReadName = keyof typeof reads;

const requestOf = (name: ReadName, feedId: string): SampleRequest => {
  const { origin } = window.location;
  return name === 'latest'
    ? { origin, route: 'reportLatest', query: { feedID: feedId } }
    : { origin, route: 'reportStream', query: { feedIDs: feedId } };
};

export function UseIt({ feedId }: { readonly feedId: string }) {
  const [isOpen, setOpen] = useState(false);
  useEscape(isOpen ? 'use-it' : undefined, () => setOpen(false));
  return (
    <div class="use-it">
      <div class="row use-it-row">
        <span class="muted small">Feed ID</span>
        <code>{feedId}</code>
        <Copy text={feedId} label="Copy feed ID" />
        <button type="button" aria-expanded={isOpen} aria-controls="use-it" onClick={() => setOpen(!isOpen)}>
          Use it
        </button>
      </div>
      <div id="use-it" hidden={!isOpen}>
        {isOpen && <Programs feedId={feedId} />}
      </div>
    </div>
  );
}

const Programs = ({ feedId }: { readonly feedId: string }) => {
  const [chosen, setChosen] = useState<ReadName>('latest');
  const names = Object.keys(reads) as ReadName[]; // the keys of that table
  return (
    <section class="card stack" aria-label="Use it">
      <fieldset class="button-group" aria-label="What to read">
        {names.map((name) => (
          <button key={name} type="button" aria-pressed={name === chosen} onClick={() => setChosen(name)}>
            {reads[name].title}
          </button>
        ))}
      </fieldset>
      <CodeSampleBox samples={codeSamples(requestOf(chosen, feedId))} label={reads[chosen].label} />
      <p class="small muted">
        More requests are in the <a href="/docs">API docs</a>.
      </p>
    </section>
  );
};
