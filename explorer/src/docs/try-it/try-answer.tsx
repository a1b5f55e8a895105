// What "Try it" shows of a request and its answer.
import { Notice, Pill } from '../../ui/components.tsx';
import { useDocs } from '../docs-context.ts';
import { errorAnchor } from '../document.ts';
import { CodeBlock, InlineText } from '../prose.tsx';
import { bodyBytesMax, bodyCharactersMax, type Exchange, formatBody, readJson, type TriedRequest } from './exchange.ts';

/** The request as it was sent. The secret is no part of it: it only makes the signature. */
export function RequestText({
  request,
  sentHeaders,
}: {
  readonly request: Pick<TriedRequest, 'method' | 'target'>;
  readonly sentHeaders: Readonly<Record<string, string>>;
}) {
  const { origin } = useDocs();
  const lines = [
    `${request.method} ${origin}${request.target}`,
    ...Object.entries(sentHeaders).map(([name, value]) => `${name}: ${value}`),
  ];
  return (
    <div class="docs-sample">
      <p class="docs-sample-title">Request</p>
      <CodeBlock text={lines.join('\n')} label="request" />
    </div>
  );
}

/** The entry of an error code, where the answer has one. */
export function ErrorNote({ text }: { readonly text: string }) {
  const { docs } = useDocs();
  const { code, message } = readJson(text);
  const known = docs.errors.find((error) => error.code === code);
  if (known === undefined) return null;
  return (
    <Notice kind="warning" title={typeof message === 'string' ? message : known.message}>
      <a href={`#${errorAnchor(known.code)}`}>
        <code>{known.code}</code>
      </a>
      : <InlineText text={known.message} /> {known.retry ? 'Retry later.' : 'Change the request before you retry.'}
    </Notice>
  );
}

const kindOf = (status: number): 'ok' | 'warn' | 'bad' => (status < 400 ? 'ok' : status < 500 ? 'warn' : 'bad');

const sizeText = (bytes: number): string =>
  bytes < 10_000
    ? `${bytes.toLocaleString('en-US')} B`
    : `${(bytes / 1_000).toLocaleString('en-US', { maximumFractionDigits: 0 })} KB`;

/** Some browsers begin to read the URL after the click. */
const revokeAfterMs = 1_000;

const download = (body: Blob, name: string): void => {
  const url = URL.createObjectURL(body);
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), revokeAfterMs);
};

export function AnswerBody({ exchange, name }: { readonly exchange: Exchange; readonly name: string }) {
  const { status, headers, tookMs, body, text, isCut } = exchange;
  const { text: formatted, isCut: isShortened } = formatBody(text);
  return (
    <div class="docs-sample">
      <p class="docs-sample-title row">
        Answer <Pill kind={kindOf(status)}>{status}</Pill>
        <span class="muted small">
          {Math.round(tookMs).toLocaleString('en-US')} ms · {sizeText(body.size)}
        </span>
      </p>
      <CodeBlock text={headers.map(([header, value]) => `${header}: ${value}`).join('\n')} label="answer headers" />
      {text === '' ? (
        <p class="muted">The answer has no body.</p>
      ) : (
        <CodeBlock text={formatted} copied={text} label="answer" />
      )}
      {isShortened && (
        <p class="small">
          The first {bodyCharactersMax.toLocaleString('en-US')} characters are shown.{' '}
          {isCut && `Only ${bodyBytesMax / 2 ** 20} MB were read.`}
        </p>
      )}
      {text !== '' && (
        <button type="button" class="docs-download" onClick={() => download(body, name)}>
          Download the answer
        </button>
      )}
    </div>
  );
}
