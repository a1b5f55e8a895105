// Next to an operation: the request in five languages, and a sample answer.
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { codeSamples } from '../ui/code-samples.ts';
import { firstValues, routeOf, sentArguments, targetOf } from './arguments.ts';
import { useDocs } from './docs-context.ts';
import type { DocsOperation } from './document.ts';
import { CodeBlock } from './prose.tsx';
import { sampleBody, shortenBody } from './sample-body.ts';
import { bodyForms } from './schema-rows.ts';
import { exchangeOnce } from './try-it/exchange.ts';

/** The request in the chosen language; all operations share the choice. */
export function RequestSample({ operation }: { readonly operation: DocsOperation }) {
  const { origin, streams, nowSeconds, language, setLanguage } = useDocs();
  const { session } = useExplorer();
  const query = sentArguments(operation, firstValues(operation, streams, nowSeconds));
  const route = routeOf(operation, query);
  if (route === undefined) return null;
  const isSigned =
    operation.auth === 'required' || (operation.auth === 'optional' && session.userId.value !== undefined);
  const samples = codeSamples({ origin, route, query, isSigned });
  const sample = samples.find((one) => one.language === language) ?? samples[0];
  if (sample === undefined) return null;
  return (
    <div class="docs-sample">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
      <div class="button-group docs-languages" role="group" aria-label={`Language of ${operation.id}`}>
        {samples.map((one) => (
          <button
            key={one.language}
            type="button"
            aria-pressed={one === sample}
            onClick={() => setLanguage(one.language)}
          >
            {one.title}
          </button>
        ))}
      </div>
      <CodeBlock text={sample.text.trimEnd()} label={`${operation.id} in ${sample.title}`} />
      <p class="muted small">{sample.needs}</p>
    </div>
  );
}

/** Becomes true when the element is first near the view. */
const useSeen = () => {
  const element = useRef<HTMLDivElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (element.current === null || isSeen) return undefined;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [isSeen]);
  return [element, isSeen] as const;
};

/** Longest answer that becomes a sample. */
const sampleCharactersMax = 262_144;

/** The server's own answer, read once when the sample comes into view; undefined before, and if the request fails. */
const useLiveSample = (operation: DocsOperation, isSeen: boolean): unknown => {
  const { streams, nowSeconds, send } = useDocs();
  const { session } = useExplorer();
  const [body, setBody] = useState<unknown>(undefined);
  const isSignedIn = session.userId.value !== undefined;
  const isAllowed = operation.auth !== 'required' || (isSignedIn && streams.feedIds.length > 0);
  const isWanted = isSeen && operation.transport === 'http' && operation.method === 'GET' && isAllowed;
  const [feedId] = streams.feedIds;
  useEffect(() => {
    setBody(undefined);
    if (!isWanted || operation.answers[0]?.contentType !== 'application/json') return undefined;
    const abort = new AbortController();
    const target = targetOf(operation, sentArguments(operation, firstValues(operation, streams, nowSeconds)));
    const isSigned = operation.auth !== 'none' && isSignedIn;
    exchangeOnce(send, { method: 'GET', target, headers: {}, isSigned }, abort.signal)
      .then(({ status, text }) => {
        if (status !== 200 || text.length > sampleCharactersMax || abort.signal.aborted) return;
        setBody(shortenBody(JSON.parse(text)));
      })
      .catch(() => {}); // the sample made from the schema stays
    return () => abort.abort();
  }, [isWanted, isSignedIn, feedId, operation]);
  return body;
};

export function AnswerSample({ operation }: { readonly operation: DocsOperation }) {
  const { docs, streams } = useDocs();
  const [element, isSeen] = useSeen();
  const live = useLiveSample(operation, isSeen);
  const answer = operation.answers.find(({ schema, contentType }) => schema && contentType === 'application/json');
  if (answer?.schema === undefined) return null;
  const isDocument = operation.id === 'openapi'; // it is this page
  if (isDocument) return null;
  const [form] = bodyForms(answer.schema);
  const shown = live ?? sampleBody(form ?? {}, docs.schemas, streams);
  return (
    <div class="docs-sample" ref={element}>
      <p class="docs-sample-title">
        Sample answer, {answer.status}{' '}
        <span class="muted small">{live === undefined ? 'from the schema' : 'from this server, shortened'}</span>
      </p>
      <CodeBlock text={JSON.stringify(shown, null, 2)} label={`sample answer of ${operation.id}`} />
    </div>
  );
}
