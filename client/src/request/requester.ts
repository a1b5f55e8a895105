// Owns how requests of the client go out: the types that its parts share. Signing, retries, fail-over and the clock are behind them,
// in signed-requester.ts.
import type { EmitEvent } from '../client-events.ts';
import type { SigningKey } from './credentials.ts';

/** What every call takes. */
export type CallOptions = {
  readonly signal?: AbortSignal;
  /** For the whole call, retries included; milliseconds. */
  readonly timeoutMs?: number;
};

/** A call of the client's own. */
export type InnerCallOptions = CallOptions & {
  /** Wait and try again on 429, whatever the client was told. */
  readonly retryRateLimited?: boolean;
};

/** What an answer tells beside its body: what other SDKs hide. */
export type AnswerDetails = {
  readonly status: number;
  readonly requestId: string | undefined;
  /** Undefined where the server sets no limit. */
  readonly rateLimit: { readonly limit: number; readonly remaining: number; readonly resetSeconds: number } | undefined;
  /** The server's clock when it answered, in milliseconds; the Date header, so whole seconds. */
  readonly serverTimeMs: number | undefined;
};

/** Headers of a request, and the key that signed them; none where there are no credentials. */
export type SignedHeaders = {
  readonly headers: Readonly<Record<string, string>>;
  readonly key: SigningKey | undefined;
};

/** Sends signed requests: retried by the rules, to the first base URL that answers. */
export type Requester = {
  /** GET of a target (path and query); resolves with the parsed body of a 2xx, rejects with a typed error. */
  readonly get: <T>(
    target: string,
    options?: InnerCallOptions,
  ) => Promise<{
    readonly body: T;
    readonly details: AnswerDetails;
    /** Does a page link to a next one? Undefined where the server sends no link. */
    readonly more?: boolean | undefined;
  }>;
  /** The headers for a target, signed now with the corrected clock; for streams, which open their own connections. */
  readonly sign: (method: 'GET' | 'HEAD', target: string) => Promise<SignedHeaders>;
  /** After a 401: are there other credentials than those that signed? */
  readonly renew: (signed: SignedHeaders) => Promise<boolean>;
  /** Where to connect, in order of preference, without a slash at the end. */
  readonly baseUrls: readonly string[];
  /** Where WebSockets connect and origins are asked for, in the same form; the base URLs unless the deployment has other hosts for them. */
  readonly wsUrls: readonly string[];
  /** Extensions that the server has refused, by name; they are not asked for again (D96). */
  readonly lacks?: Set<string>;
  readonly fetch: typeof fetch;
  readonly emit: EmitEvent;
  /** The corrected clock, in milliseconds. */
  readonly nowMs: () => number;
};
