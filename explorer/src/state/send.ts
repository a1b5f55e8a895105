// Sends one request as it stands, signed with the user's secret if there is one, for pages that show requests. No retries.
import type { ReadonlySignal } from '@preact/signals';
import { type Credentials, signRequest } from '@sealpost/client';

export type PlainRequest = {
  readonly method: 'GET' | 'HEAD';
  /** Path and query, as sent. */
  readonly target: string;
  /** Headers besides the signature. */
  readonly headers: Readonly<Record<string, string>>;
  /** Signed with this time; undefined for a request without signature. */
  readonly timestampMs: number | undefined;
  readonly signal: AbortSignal;
};

/** An answer, and the headers that were sent for it. */
export type SentRequest = { readonly headers: Readonly<Record<string, string>>; readonly response: Response };

/** While signed out, requests have no signature. */
export const createSend =
  (credentials: ReadonlySignal<Credentials | undefined>, observedFetch: typeof fetch, origin: string) =>
  async ({ method, target, headers, timestampMs, signal }: PlainRequest): Promise<SentRequest> => {
    const given = credentials.peek();
    const signed =
      given === undefined || timestampMs === undefined
        ? {}
        : signRequest({ method, target, userId: given.userId, timestampMs }, given.secret);
    const sent = { ...signed, ...headers };
    const response = await observedFetch(`${origin}${target}`, {
      method,
      headers: sent,
      signal,
      redirect: 'manual',
      credentials: 'omit',
      cache: 'no-store',
    });
    return { headers: sent, response };
  };
