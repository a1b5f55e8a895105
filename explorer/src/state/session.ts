// The signed-in user: credentials, kept for the tab or, if the user chooses, on the device (stored-credentials.ts), and the client that uses them.
// The secret is never sent. A demo's sign-in link has a one-time code, which is removed from the address bar first.
import { batch, computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { type Client, type Credentials, createClient, SealpostError } from '@sealpost/client';
import { LoadingError } from './code/chunks.ts';
import type { Platform } from './platform.ts';
import { createRateLimits, type RateLimit } from './rate-limits.ts';
import { createSend, type PlainRequest, type SentRequest } from './send.ts';
import { followLinks, newLinkAdvice } from './sign-in-link.ts';
import { type CredentialLocation, createCredentialStore, type StoredCredentials } from './stored-credentials.ts';

export type Session = {
  /** Undefined while signed out. */
  readonly userId: ReadonlySignal<string | undefined>;
  readonly client: ReadonlySignal<Client>;
  /** True while credentials from a link or from storage are checked. Pages wait for it. */
  readonly isPending: ReadonlySignal<boolean>;
  /** Why credentials from a link or from storage were rejected. */
  readonly refusal: ReadonlySignal<unknown>;
  readonly dismissRefusal: () => void;
  /** True if a sign-in link was opened while signed in; the user decides with `decideSwitch`. */
  readonly isSwitchOffered: ReadonlySignal<boolean>;
  readonly decideSwitch: (doSwitch: boolean) => void;
  /** From the last signed response; undefined before, and if the account has no limits. */
  readonly rateLimit: ReadonlySignal<RateLimit | undefined>;
  /** The same by route, most recent first. */
  readonly rateLimits: ReadonlySignal<readonly RateLimit[]>;
  /** Where the credentials are kept. */
  readonly credentialLocation: ReadonlySignal<CredentialLocation>;
  /** Checks the credentials with the server; rejects with its error, or when aborted. They stay until the tab is closed; `remember`: until sign-out. */
  readonly signIn: (credentials: Credentials, remember: boolean, signal?: AbortSignal) => Promise<void>;
  readonly signOut: () => void;
  /** Signs one request and sends it as it stands; see send.ts. */
  readonly send: (request: PlainRequest) => Promise<SentRequest>;
};

export function createSession(platform: Platform): Session {
  const limits = createRateLimits();
  const refusal = signal<unknown>(undefined);
  const isPending = signal(false);
  const { credentials, credentialLocation, store, hold, forget } = createHolder(platform, limits.forget);
  const observedFetch = observeFetch(platform, limits.receive);
  const open = createOpen(platform, observedFetch);
  const accept = (given: Credentials, remember: boolean): void =>
    batch(() => {
      hold(given, remember);
      refusal.value = undefined;
    });
  const signIn: Session['signIn'] = async (given, remember, signal) => {
    await open(given, { retries: 1 }).feeds(signal && { signal });
    signal?.throwIfAborted();
    accept(given, remember);
  };
  const tryOut = async ({ given, remember }: StoredCredentials): Promise<void> => {
    try {
      await signIn(given, remember);
    } catch (error) {
      // During an outage the credentials may still be good: keep them, and let the pages show the outage.
      if (!isOutage(error)) throw error;
      accept(given, remember);
    }
  };
  const tryStored = async (stored: StoredCredentials): Promise<void> => {
    try {
      await tryOut(stored);
    } catch (error) {
      if (isRejected(error)) store.remove(); // anything else may be over with the next reload
      throw error;
    }
  };
  const refuse = (error: unknown): void => {
    refusal.value = error;
  };
  const links = followLinks(platform, {
    store,
    tryStored,
    userId: () => credentials.value?.userId,
    attempt: createAttempt(isPending, refuse),
    tryOut,
  });
  return {
    userId: computed(() => credentials.value?.userId),
    client: computed(() => open(credentials.value)),
    isPending,
    refusal,
    dismissRefusal: () => refuse(undefined),
    isSwitchOffered: links.isSwitchOffered,
    decideSwitch: links.decideSwitch,
    rateLimit: computed(() => limits.byRoute.value[0]),
    rateLimits: limits.byRoute,
    credentialLocation,
    signIn,
    signOut: () => {
      forget();
      store.removeEverywhere();
    },
    send: createSend(credentials, observedFetch, platform.location.origin),
  };
}

/** Sets `isPending` while an act runs, and refuses on failure. */
const createAttempt =
  (isPending: Signal<boolean>, refuse: (error: unknown) => void) =>
  async (act: () => Promise<void>): Promise<void> => {
    isPending.value = true;
    try {
      await act();
    } catch (error) {
      refuse(error);
    }
    isPending.value = false;
  };

/** The credentials in use, and where they are kept; forgotten too when the user signs out in another tab. */
const createHolder = (platform: Platform, onForget: () => void) => {
  const credentials = signal<Credentials | undefined>(undefined);
  const credentialLocation = signal<CredentialLocation>('page');
  const forget = (): void =>
    batch(() => {
      store.remove();
      onForget();
      credentialLocation.value = 'page';
      credentials.value = undefined;
    });
  const store = createCredentialStore(platform, forget);
  const hold = (given: Credentials, remember: boolean): void => {
    credentials.value = given;
    credentialLocation.value = store.write(given, remember);
  };
  return { credentials, credentialLocation, store, hold, forget };
};

/** Each response updates the rate limits. */
const observeFetch =
  (platform: Platform, receive: (path: string, headers: Headers) => void): typeof fetch =>
  async (input, init) => {
    const response = await platform.fetch(input, init);
    receive(new URL(String(input), platform.location.origin).pathname, response.headers);
    return response;
  };

/** Makes clients for this page's server. */
const createOpen =
  ({ location }: Platform, observedFetch: typeof fetch) =>
  (given: Credentials | undefined, options: { readonly retries?: number } = {}): Client =>
    createClient({ baseUrl: location.origin, fetch: observedFetch, onWarning: () => {}, ...options, ...given });

/** A 403 without a code: whoever sent it knows the account and does not let it read this. */
const isForbidden = (error: SealpostError): boolean => error.isInferred && error.status === 403;

/** The credentials are wrong, now and later. */
const isRejected = (error: unknown): boolean =>
  error instanceof SealpostError && ['unauthorized', 'invalid_option'].includes(error.code) && !isForbidden(error);

const isOutage = (error: unknown): boolean =>
  error instanceof SealpostError &&
  (['network_error', 'timeout', 'rate_limited'].includes(error.code) || (error.status ?? 0) >= 500);

export type Explanation = { readonly problem: string; readonly advice: string };

/** What went wrong and what to do, in words for users. */
export function explainError(error: unknown): Explanation {
  if (error instanceof LoadingError)
    return { problem: error.message, advice: 'Check your connection, then try again. The server may be restarting.' };
  if (!(error instanceof SealpostError)) return { problem: 'Something went wrong.', advice: 'Reload the page.' };
  if (isForbidden(error))
    return {
      problem: 'Your account may not read this.',
      advice: 'Ask the server’s operator for access, or sign in with another account.',
    };
  if (error.code === 'not_supported')
    return { problem: error.message, advice: 'Ask the server’s operator to update it.' };
  const known = error.advice === newLinkAdvice ? undefined : explanations[error.code]?.(error.details);
  return known ?? { problem: error.message, advice: error.advice };
}

/** Texts for users, where the client's are for programmers. */
const explanations: Readonly<Record<string, (details: Readonly<Record<string, unknown>>) => Explanation>> = {
  network_error: () => ({
    problem: 'The server does not respond.',
    advice: 'Check your connection, then try again. The server may be restarting.',
  }),
  timeout: () => ({ problem: 'The request timed out.', advice: 'Try again in a moment.' }),
  missing_credentials: () => ({ problem: 'This needs an account.', advice: 'Sign in with a user ID and a secret.' }),
  unauthorized: () => ({
    problem: 'Sign-in failed.',
    advice: 'Check the user ID and secret; the account may be disabled.',
  }),
  clock_skew: ({ serverTimeMs }) => ({
    problem: `This device’s clock is ${describeSkew(serverTimeMs)} the server’s.`,
    advice: 'Correct the clock, then try again: signed requests include the time.',
  }),
  too_many_failures: ({ retryAfterSeconds }) => ({
    problem: 'Too many failed requests from your IP address.',
    advice: `Wait ${waitOf(retryAfterSeconds)}, check the user ID and secret, then try again.`,
  }),
  rate_limited: ({ retryAfterSeconds }) => ({
    problem: 'Your account has reached its rate limit.',
    advice: `Wait ${waitOf(retryAfterSeconds)}, then try again.`,
  }),
};

const waitOf = (seconds: unknown): string =>
  typeof seconds === 'number' && seconds > 1 ? `${Math.ceil(seconds)} seconds` : 'a second';

const describeSkew = (serverTimeMs: unknown): string => {
  if (typeof serverTimeMs !== 'number') return 'too far from';
  const seconds = Math.round((Date.now() - serverTimeMs) / 1_000);
  return seconds === 0 ? 'off' : `${Math.abs(seconds)} seconds ${seconds > 0 ? 'ahead of' : 'behind'}`;
};
