// The sign-in dialog: its form, and the error when the server rejects the credentials.
import type { Credentials } from '@sealpost/client';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';

import { type Explanation, explainError } from '../state/session.ts';
import { checkCredentials } from '../state/sign-in.ts';
import '../styles/sign-in.css';

/** Opens the dialog. */
export function SignInButton({
  primary = false,
  children = 'Sign in',
}: {
  readonly primary?: boolean;
  readonly children?: ComponentChildren;
}) {
  const { signIn } = useExplorer();
  return (
    <button type="button" class={primary ? 'primary' : ''} onClick={signIn.open}>
      {children}
    </button>
  );
}

const readForm = (form: HTMLFormElement): { readonly given: Credentials; readonly remember: boolean } => {
  const fields = new FormData(form);
  const textOf = (name: string): string => String(fields.get(name) ?? '').trim();
  return { given: { userId: textOf('userId'), secret: textOf('secret') }, remember: fields.has('remember') };
};

export function SignInDialog() {
  const { signIn } = useExplorer();
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = signIn.isOpen.value;
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} aria-labelledby="sign-in-title" onClose={signIn.close}>
      {isOpen && <SignInForm />}
    </dialog>
  );
}

const SignInForm = () => {
  const { session, signIn } = useExplorer();
  const [failure, setFailure] = useState<Explanation | undefined>(undefined);
  const [isAsking, setAsking] = useState(false);
  const abort = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => abort.current?.abort(), []); // a closed dialog does not sign in
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const { given, remember } = readForm(event.currentTarget as HTMLFormElement); // the form listens
    const mistake = checkCredentials(given);
    setFailure(mistake);
    if (mistake !== undefined) return;
    setAsking(true);
    abort.current = new AbortController();
    const { signal } = abort.current;
    try {
      await session.signIn(given, remember, signal);
      signIn.close();
    } catch (error) {
      if (signal.aborted) return;
      setFailure(explainError(error));
      setAsking(false);
    }
  };
  return (
    <form class="sign-in stack" onSubmit={submit} noValidate>
      <h2 id="sign-in-title">Sign in</h2>
      <p class="muted">See live prices and history. Your secret signs requests in this browser and is never sent.</p>
      <label class="field">
        <span>User ID</span>
        <input name="userId" class="mono" autocomplete="username" spellcheck={false} autocapitalize="off" required />
      </label>
      <label class="field">
        <span>Secret</span>
        <input name="secret" class="mono" type="password" autocomplete="current-password" required />
      </label>
      <label class="check">
        <input name="remember" type="checkbox" aria-describedby="remember-note" />
        Remember on this device
      </label>
      <p id="remember-note" class="small muted">
        Keeps the secret in this browser until you sign out: anyone who uses this browser can read prices as you.
        Otherwise you stay signed in until you close the tab.
      </p>
      <div role="alert">
        {failure !== undefined && (
          <div class="notice error">
            <div>
              <p class="notice-title">{failure.problem}</p>
              <p class="notice-text">{failure.advice}</p>
            </div>
          </div>
        )}
      </div>
      <div class="sign-in-acts">
        <button type="button" onClick={signIn.close}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={isAsking}>
          {isAsking ? 'Signing in…' : 'Sign in'}
        </button>
      </div>
    </form>
  );
};
