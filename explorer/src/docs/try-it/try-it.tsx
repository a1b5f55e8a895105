// "Try it": sends an operation's request from the page, signed in the browser, and shows what came back.
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { Notice } from '../../ui/components.tsx';
import { SignInButton } from '../../ui/sign-in-dialog.tsx';
import { type ArgumentValues, firstValues, sentArguments, sentHeaders, targetOf } from '../arguments.ts';
import { useDocs } from '../docs-context.ts';
import type { DocsOperation } from '../document.ts';
import { type Exchange, exchangeOnce, type TriedRequest } from './exchange.ts';
import { AnswerBody, ErrorNote, RequestText } from './try-answer.tsx';
import { ArgumentForm } from './try-form.tsx';
import { LiveMessages, SocketNote, useLiveTry } from './try-live.tsx';

export function TryIt({ operation }: { readonly operation: DocsOperation }) {
  const { session } = useExplorer();
  const userId = session.userId.value;
  if (operation.auth === 'required' && userId === undefined)
    return (
      <Notice title="Sign in to send this request" action={<SignInButton>Sign in</SignInButton>}>
        It needs a signature, which this page makes in the browser; the secret is never sent. Operations marked “No
        account needed” and “Signature optional” work without one.
      </Notice>
    );
  // Another user's answers must not stay on the page.
  return operation.transport === 'http' ? (
    <TryRequest key={userId} operation={operation} isSignedIn={userId !== undefined} />
  ) : (
    <TryLive key={userId} operation={operation} />
  );
}

/** The form's values; times are those of when the panel was opened. */
const useArguments = (operation: DocsOperation) => {
  const { streams } = useDocs();
  const { clock } = useExplorer();
  const fill = (): ArgumentValues => firstValues(operation, streams, Math.floor(clock.nowMs.peek() / 1_000));
  const [values, setValues] = useState(fill);
  return { values, setValues, reset: () => setValues(fill()) };
};

type Tried =
  | { readonly phase: 'idle' }
  | { readonly phase: 'waiting'; readonly request: TriedRequest }
  | { readonly phase: 'cancelled' }
  | { readonly phase: 'failed'; readonly request: TriedRequest }
  | { readonly phase: 'done'; readonly request: TriedRequest; readonly exchange: Exchange };

/** One request at a time; a new one cancels the one before. */
const useExchange = () => {
  const { send } = useDocs();
  const [state, setState] = useState<Tried>({ phase: 'idle' });
  const abort = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const start = async (request: TriedRequest): Promise<void> => {
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    setState({ phase: 'waiting', request });
    const next: Tried = await exchangeOnce(send, request, own.signal).then(
      (exchange) => ({ phase: 'done', request, exchange }),
      () => ({ phase: 'failed', request }),
    );
    if (abort.current === own && !own.signal.aborted) setState(next);
  };
  const cancel = (): void => {
    abort.current?.abort();
    setState({ phase: 'cancelled' });
  };
  return { state, start, cancel };
};

const TryRequest = ({ operation, isSignedIn }: { readonly operation: DocsOperation; readonly isSignedIn: boolean }) => {
  const { values, setValues, reset } = useArguments(operation);
  const { state, start, cancel } = useExchange();
  const { method, auth } = operation;
  const submit = (): void => {
    const target = targetOf(operation, sentArguments(operation, values));
    const headers = sentHeaders(operation, values);
    void start({ method, target, headers, isSigned: auth !== 'none' && isSignedIn });
  };
  const isWaiting = state.phase === 'waiting';
  return (
    <div class="stack">
      <ArgumentForm operation={operation} values={values} onChange={setValues} onSubmit={submit}>
        <div class="row">
          <button type="submit" class="primary">
            Send
          </button>
          <button type="button" aria-disabled={!isWaiting} onClick={() => isWaiting && cancel()}>
            Cancel
          </button>
          {operation.parameters.length > 0 && (
            <button type="button" class="quiet" onClick={reset}>
              Reset
            </button>
          )}
          <span class="muted small" role="status">
            {isWaiting && 'Waiting for the answer…'}
            {state.phase === 'cancelled' && 'Cancelled'}
            {state.phase === 'done' && `Answered with ${state.exchange.status}`}
          </span>
        </div>
      </ArgumentForm>
      {state.phase === 'failed' && (
        <Notice kind="error" title="No answer from the server.">
          Check your connection, then send the request again.
        </Notice>
      )}
      {state.phase === 'done' && (
        <>
          <RequestText request={state.request} sentHeaders={state.exchange.sentHeaders} />
          {state.exchange.status >= 400 && <ErrorNote text={state.exchange.text} />}
          <AnswerBody exchange={state.exchange} name={`${operation.id}.json`} />
        </>
      )}
    </div>
  );
};

/** The path of the event stream, which also stands in for WebSockets. */
const eventStream = { path: '/api/v1/reports/stream' } as const;

const TryLive = ({ operation }: { readonly operation: DocsOperation }) => {
  const { values, setValues, reset } = useArguments(operation);
  const { state, open, close } = useLiveTry(operation);
  const [request, setRequest] = useState<TriedRequest | undefined>(undefined);
  const isOpen = state.phase === 'connecting' || state.phase === 'open';
  const submit = (): void => {
    const target = targetOf(eventStream, sentArguments(operation, values));
    const next: TriedRequest = { method: 'GET', target, headers: sentHeaders(operation, values), isSigned: true };
    setRequest(next);
    void open(next);
  };
  return (
    <div class="stack">
      {operation.transport === 'websocket' && <SocketNote />}
      <ArgumentForm operation={operation} values={values} onChange={setValues} onSubmit={submit}>
        <div class="row">
          <button type="submit" class="primary">
            {isOpen ? 'Reconnect' : 'Connect'}
          </button>
          <button type="button" aria-disabled={!isOpen} onClick={() => isOpen && close()}>
            Disconnect
          </button>
          <button type="button" class="quiet" onClick={reset}>
            Reset
          </button>
        </div>
      </ArgumentForm>
      {request !== undefined && <LiveMessages operation={operation} request={request} state={state} />}
    </div>
  );
};
