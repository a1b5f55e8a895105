// The API docs: what /openapi.json says, with this server's address and streams, and requests that can be sent from the page.
import type { OpenApiDocument } from '@sealpost/protocol/openapi';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { type SampleLanguage, sampleLanguages } from '../ui/code-samples.ts';
import { Copy, Loading, Notice, useTitle } from '../ui/components.tsx';
import { useLoaded } from '../ui/loaded.ts';
import { SignInButton } from '../ui/sign-in-dialog.tsx';
import { followAnchors, goToAnchor, missingAnchor } from './anchors.ts';
import { DocsContext, type DocsParts, useDocs } from './docs-context.ts';
import { type ApiDocs, errorAnchor, readDocument } from './document.ts';
import { Operation } from './operation.tsx';
import { InlineText, Prose } from './prose.tsx';
import { DocsSidebar } from './sidebar.tsx';
import { pickStreams } from './streams.ts';
import { createSender } from './try-it/exchange.ts';
import '../styles/docs.css';

const documentPath = '/openapi.json';

const loadDocs = async (signal: AbortSignal): Promise<ApiDocs> => {
  const response = await fetch(documentPath, { signal });
  if (!response.ok) throw new Error(`${documentPath} returned ${response.status}.`);
  return readDocument((await response.json()) as OpenApiDocument); // this server's own document
};

/** The chosen language, which all pages share. */
const useLanguage = (): readonly [SampleLanguage, (language: SampleLanguage) => void] => {
  const { sampleLanguage } = useExplorer();
  const language = sampleLanguages.find((one) => one === sampleLanguage.value.value) ?? 'curl';
  return [language, sampleLanguage.set];
};

export function DocsPage() {
  useTitle('API docs');
  const [state, reload] = useLoaded(loadDocs, []);
  if (state.phase === 'ready') return <Docs docs={state.value} />;
  return (
    <div class="stack">
      <h1>API docs</h1>
      {state.phase === 'loading' ? (
        <Loading label="Loading the API docs" lines={12} />
      ) : (
        <Notice
          kind="error"
          title="The API docs could not be loaded."
          action={
            <button type="button" onClick={reload}>
              Try again
            </button>
          }
        >
          Check your connection. The docs are read from <a href={documentPath}>{documentPath}</a>.
        </Notice>
      )}
    </div>
  );
}

const Docs = ({ docs }: { readonly docs: ApiDocs }) => {
  const { session, catalog, clock } = useExplorer();
  const [language, setLanguage] = useLanguage();
  const nowSeconds = useMemo(() => Math.floor(clock.nowMs.peek() / 1_000), [clock]);
  const send = useMemo(() => createSender(session), [session]);
  const state = catalog.state.value;
  const streams = useMemo(() => pickStreams(state), [state]);
  const { origin } = location;
  const parts: DocsParts = { docs, origin, streams, nowSeconds, language, setLanguage, send };
  const [missing, setMissing] = useState<string | undefined>(undefined);
  useEffect(() => followAnchors(window, () => setMissing(missingAnchor(window))), []);
  return (
    <DocsContext.Provider value={parts}>
      <div class="docs">
        <DocsSidebar onChoose={(anchor) => goToAnchor(window, anchor)} />
        <div class="docs-text">
          <h1>API docs</h1>
          {missing !== undefined && (
            <Notice kind="warning" title={`There is no section “${missing}”`}>
              Choose one from the contents, or search for it.
            </Notice>
          )}
          <p class="docs-lead">
            <InlineText text={docs.lead} />
          </p>
          <Guides />
          {docs.groups.map(({ id, title, about, operations }) => (
            <section key={id} id={id} class="docs-group" aria-labelledby={`${id}-title`}>
              <h2 id={`${id}-title`}>{title}</h2>
              <p>
                <InlineText text={about} />
              </p>
              {operations.map((operation) => (
                <Operation key={operation.id} operation={operation} />
              ))}
            </section>
          ))}
          <ErrorCodes />
        </div>
      </div>
    </DocsContext.Provider>
  );
};

const CopyLine = ({ text, label }: { readonly text: string; readonly label: string }) => (
  <span class="docs-line">
    <code>{text}</code>
    <Copy text={text} label={label} />
  </span>
);

const BaseUrl = () => {
  const { origin, streams, docs } = useDocs();
  const { session } = useExplorer();
  const [stream] = streams.entries;
  const open = docs.groups.flatMap(({ operations }) => operations).filter(({ auth }) => auth !== 'required');
  return (
    <section id="base-url" class="docs-guide" data-section tabIndex={-1} aria-labelledby="base-url-title">
      <h2 id="base-url-title">
        <a class="docs-anchor" href="#base-url">
          Base URL
        </a>
      </h2>
      <dl class="facts">
        <dt>This server</dt>
        <dd>
          <CopyLine text={origin} label="Copy the base URL" />
        </dd>
        <dt>WebSockets</dt>
        <dd>
          <CopyLine text={origin.replace(/^http/, 'ws')} label="Copy the WebSocket URL" />
        </dd>
        {stream !== undefined && (
          <>
            <dt>Feed ID in samples</dt>
            <dd>
              <a href={`/streams/${stream.feedId}`}>{stream.name}</a>{' '}
              <CopyLine text={stream.feedId} label={`Copy the feed ID of ${stream.name}`} />
            </dd>
          </>
        )}
        <dt>Document</dt>
        <dd>
          <a href={documentPath}>openapi.json</a>, OpenAPI 3.1, version {docs.version}
        </dd>
      </dl>
      {session.userId.value === undefined && (
        <Notice title="You are signed out" action={<SignInButton>Sign in</SignInButton>}>
          Sign in to try all requests from this page. These work without an account:{' '}
          {open.map(({ id, path }, i) => (
            <span key={id}>
              {i > 0 && ', '}
              <a href={`#${id}`}>{path}</a>
            </span>
          ))}
          .
        </Notice>
      )}
    </section>
  );
};

const Guides = () => {
  const { docs } = useDocs();
  return (
    <>
      <BaseUrl />
      {docs.guides.map(({ id, title, text }) => (
        <section key={id} id={id} class="docs-guide" data-section tabIndex={-1} aria-labelledby={`${id}-title`}>
          <h2 id={`${id}-title`}>
            <a class="docs-anchor" href={`#${id}`}>
              {title}
            </a>
          </h2>
          <Prose text={text} label={title} />
        </section>
      ))}
    </>
  );
};

const ErrorCodes = () => {
  const { docs } = useDocs();
  return (
    <section id="error-codes" class="docs-group" data-section tabIndex={-1} aria-labelledby="error-codes-title">
      <h2 id="error-codes-title">
        <a class="docs-anchor" href="#error-codes">
          Error codes
        </a>
      </h2>
      <dl class="docs-fields">
        {docs.errors.map(({ code, status, retry, message }) => (
          <div key={code} id={errorAnchor(code)} class="docs-field" tabIndex={-1}>
            <dt>
              <a class="docs-anchor" href={`#${errorAnchor(code)}`}>
                <code>{code}</code>
              </a>
              <Copy text={code} label={`Copy ${code}`} />
            </dt>
            <dd>
              <InlineText text={message} />{' '}
              <span class="docs-type">
                {status} · {retry ? 'retry' : 'do not retry'}
              </span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
};
