// A program to copy, in the language that the user chose last.
import { useExplorer } from '../state/explorer.ts';
import type { CodeSample } from './code-samples.ts';
import { Copy } from './components.tsx';
import '../styles/code-sample.css';

/** `label` says what the programs do, for screen readers. */
export function CodeSampleBox({ samples, label }: { readonly samples: readonly CodeSample[]; readonly label: string }) {
  const { sampleLanguage } = useExplorer();
  const sample = samples.find(({ language }) => language === sampleLanguage.value.value) ?? samples[0];
  if (sample === undefined) return null;
  return (
    <div class="code-sample">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
      <div class="code-sample-languages" role="group" aria-label={`${label}: language`}>
        {samples.map(({ language, title }) => (
          <button
            key={language}
            type="button"
            aria-pressed={language === sample.language}
            onClick={() => sampleLanguage.set(language)}
          >
            {title}
          </button>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
      <pre class="code-sample-text" tabIndex={0}>
        <code>{sample.text.trimEnd()}</code>
      </pre>
      <div class="code-sample-foot">
        <p class="muted small">{sample.needs}</p>
        <Copy text={sample.text} label={`Copy the ${sample.title} program`}>
          Copy
        </Copy>
      </div>
    </div>
  );
}
