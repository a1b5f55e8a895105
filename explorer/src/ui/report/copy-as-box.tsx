// The "Copy as" card: the same read or check as curl, TypeScript or CLI.
import { useState } from 'preact/hooks';
import { Copy } from '../components.tsx';
import type { CopyForm } from './copy-as.ts';

type CopyAsProps = { readonly title: string; readonly forms: readonly CopyForm[] };

export function ReportCopyAs({ title, forms }: CopyAsProps) {
  const [chosen, setChosen] = useState(forms[0]?.id);
  const form = forms.find(({ id }) => id === chosen) ?? forms[0];
  if (form === undefined) return null;
  return (
    <section class="card copy-as" aria-labelledby="copy-title">
      <div class="row">
        <h2 id="copy-title">{title}</h2>
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
        <div class="button-group" role="group" aria-label="Form">
          {forms.map(({ id, title: name }) => (
            <button key={id} type="button" aria-pressed={id === form.id} onClick={() => setChosen(id)}>
              {name}
            </button>
          ))}
        </div>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
      <pre class="code" tabIndex={0}>
        <code>{form.text.trimEnd()}</code>
      </pre>
      <div class="code-foot">
        <p class="muted small">{form.needs}</p>
        <Copy text={form.text} label={`Copy as ${form.title}`}>
          Copy
        </Copy>
      </div>
    </section>
  );
}
