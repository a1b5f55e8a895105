// One operation: what it does, its parameters and answers, a sample, and "Try it".
import { useState } from 'preact/hooks';
import { Copy, Pill } from '../ui/components.tsx';
import { useEscape } from '../ui/panel.ts';
import { useDocs } from './docs-context.ts';
import { type DocsOperation, errorAnchor } from './document.ts';
import { AnswerFields, ParameterFields } from './operation-fields.tsx';
import { InlineText } from './prose.tsx';
import { AnswerSample, RequestSample } from './request-sample.tsx';
import { TryIt } from './try-it/try-it.tsx';

const authTexts = {
  required: 'Signed request',
  optional: 'Signature optional',
  none: 'No account needed',
} as const satisfies Record<DocsOperation['auth'], string>;

const transportTexts = { websocket: 'WebSocket', events: 'Server-sent events', http: undefined } as const;

const Answers = ({ operation }: { readonly operation: DocsOperation }) => (
  <>
    <h4 class="docs-part">Answers</h4>
    {operation.answers.map((answer, i) => (
      <details key={answer.status} class="docs-answer" open={i === 0}>
        <summary>
          <Pill kind={/^[45]/.test(answer.status) ? 'warn' : 'ok'}>{answer.status}</Pill>{' '}
          {answer.about.replaceAll('`', '')}
        </summary>
        <AnswerFields answer={answer} />
      </details>
    ))}
    <details class="docs-answer">
      <summary>
        <Pill kind="bad">Errors</Pill> {operation.refusals.map(({ status }) => status).join(', ')}
      </summary>
      <dl class="docs-fields">
        {operation.refusals.map(({ status, about, codes }) => (
          <div key={status} class="docs-field">
            <dt>{status}</dt>
            <dd>
              <InlineText text={about} />{' '}
              {codes.map((code) => (
                <a key={code} class="docs-error-link" href={`#${errorAnchor(code)}`}>
                  <code>{code}</code>
                </a>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  </>
);

export function Operation({ operation }: { readonly operation: DocsOperation }) {
  const { origin } = useDocs();
  const [isOpen, setOpen] = useState(false);
  const { id, method, path, summary, description, auth, transport, hasHead, parameters } = operation;
  const transportText = transportTexts[transport];
  const panelId = `${id}-try`;
  useEscape(isOpen ? panelId : undefined, () => setOpen(false));
  return (
    <article id={id} class="docs-operation card" data-section tabIndex={-1} aria-labelledby={`${id}-title`}>
      <h3 id={`${id}-title`}>
        <a class="docs-anchor" href={`#${id}`}>
          <span class={`docs-method ${method.toLowerCase()}`}>{method}</span> <code>{breakable(path)}</code>
        </a>
        <Copy text={`${origin}${path}`} label={`Copy the URL of ${method} ${path}`} />
      </h3>
      <p class="docs-summary">
        <InlineText text={description === undefined ? summary : `${summary} ${description}`} />
      </p>
      <div class="row">
        <button
          type="button"
          class="primary"
          aria-expanded={isOpen}
          aria-controls={panelId}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? 'Close' : 'Try it'}
          <span class="unseen">
            {' '}
            {method} {path}
          </span>
        </button>
        <Pill kind="plain">{authTexts[auth]}</Pill>
        {transportText !== undefined && <Pill kind="plain">{transportText}</Pill>}
        {hasHead && <Pill kind="plain">HEAD supported</Pill>}
      </div>
      <div id={panelId} class="docs-try" hidden={!isOpen}>
        {isOpen && <TryIt operation={operation} />}
      </div>
      <div class="docs-operation-columns">
        <div class="docs-operation-text">
          {parameters.length > 0 && (
            <>
              <h4 class="docs-part">Parameters</h4>
              <ParameterFields operation={operation} />
            </>
          )}
          <Answers operation={operation} />
        </div>
        <div class="docs-operation-code">
          <RequestSample operation={operation} />
          <AnswerSample operation={operation} />
        </div>
      </div>
    </article>
  );
}

/** A path that may break before each slash. */
const breakable = (path: string) =>
  path.split(/(?=\/)/).map((piece, i) => (
    <span key={i}>
      {i > 0 && <wbr />}
      {piece}
    </span>
  ));
