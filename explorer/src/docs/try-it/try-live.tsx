// A live connection from the page: connect, the last messages, disconnect. It ends when the panel closes.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Notice } from '../../ui/components.tsx';
import { useDocs } from '../docs-context.ts';
import type { DocsOperation } from '../document.ts';
import { CodeBlock } from '../prose.tsx';
import { headersOf, type TriedRequest } from './exchange.ts';
import { readEventTexts, shortenHex, socketMessage } from './live-messages.ts';
import { ErrorNote, RequestText } from './try-answer.tsx';

const messagesMax = 50;

type Message = { readonly number: number; readonly text: string };

export type LiveTry = {
  readonly phase: 'idle' | 'connecting' | 'open' | 'ended';
  readonly messages: readonly Message[];
  readonly sentHeaders: Readonly<Record<string, string>> | undefined;
  readonly headers: readonly (readonly [string, string])[];
  /** The body of a rejection, or why the connection ended. */
  readonly trouble: { readonly status?: number; readonly text: string } | undefined;
};

const idle: LiveTry = { phase: 'idle', messages: [], sentHeaders: undefined, headers: [], trouble: undefined };

/** A connection that the panel opens and closes. */
export function useLiveTry(operation: DocsOperation) {
  const { send } = useDocs();
  const [state, setState] = useState<LiveTry>(idle);
  const abort = useRef<AbortController | undefined>(undefined);
  const close = (): void => {
    abort.current?.abort();
    abort.current = undefined;
    setState((last) => ({ ...last, phase: last.phase === 'idle' ? 'idle' : 'ended' }));
  };
  useEffect(() => () => abort.current?.abort(), []);
  const open = async (request: TriedRequest): Promise<void> => {
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    const change = (next: (last: LiveTry) => LiveTry): void => {
      if (abort.current === own) setState(next);
    };
    change(() => ({ ...idle, phase: 'connecting' }));
    let count = 0;
    const receive = (event: string): void => {
      const text = operation.transport === 'websocket' ? socketMessage(event, operation.path.includes('/v2/')) : event;
      if (text === undefined) return;
      count += 1;
      const message = { number: count, text };
      change((last) => ({ ...last, messages: [message, ...last.messages].slice(0, messagesMax) }));
    };
    try {
      const { headers, response } = await send(request, own.signal);
      change((last) => ({ ...last, sentHeaders: headers, headers: headersOf(response.headers) }));
      if (response.status !== 200 || response.body === null) {
        const trouble = { status: response.status, text: await response.text() };
        return change((last) => ({ ...last, phase: 'ended', trouble }));
      }
      change((last) => ({ ...last, phase: 'open' }));
      await readEventTexts(response.body, receive);
      change((last) => ({ ...last, phase: 'ended', trouble: { text: 'The server ended the connection.' } }));
    } catch {
      change((last) => ({ ...last, phase: 'ended', trouble: { text: 'The connection was lost.' } }));
    }
  };
  return { state, open, close };
}

const phaseTexts = {
  idle: '',
  connecting: 'Connecting…',
  open: 'Connected',
  ended: 'Disconnected',
} as const satisfies Record<LiveTry['phase'], string>;

export function LiveMessages({
  operation,
  request,
  state,
}: {
  readonly operation: DocsOperation;
  readonly request: Pick<TriedRequest, 'method' | 'target'>;
  readonly state: LiveTry;
}) {
  const { phase, messages, sentHeaders, trouble } = state;
  return (
    <>
      {sentHeaders !== undefined && <RequestText request={request} sentHeaders={sentHeaders} />}
      {trouble !== undefined && <ErrorNote text={trouble.text} />}
      {phase !== 'idle' && (
        <p class="docs-sample-title" role="status">
          {phaseTexts[phase]}
          {trouble !== undefined && `: ${trouble.status ?? trouble.text}`}
        </p>
      )}
      {phase === 'open' && messages.length === 0 && <p class="muted">Waiting for the next report.</p>}
      {messages.length > 0 && (
        <>
          <p class="muted small">
            Message {messages[0]?.number.toLocaleString('en-US')}, newest first; the last {messagesMax} are kept. Long
            reports are shortened here and copied whole.
          </p>
          <ol class="docs-messages" reversed>
            {messages.map(({ number, text }) => (
              <li key={number}>
                <CodeBlock text={shortenHex(text)} copied={text} label={`message ${number} of ${operation.id}`} />
              </li>
            ))}
          </ol>
        </>
      )}
    </>
  );
}

/** Why a WebSocket is not one here. */
export const SocketNote = () => (
  <Notice title="Shown from the event stream">
    Browsers cannot send signed headers with a WebSocket. This page reads the same reports from{' '}
    <a href="#reportStream">the event stream</a> and shows them as the messages that the WebSocket sends. To open a real
    one, run the sample of this operation.
  </Notice>
);
