// Sends the requests of a call, with fail-over, retries and back-off, until one is answered or the call times out.
import { type BackoffRules, backOffMs, retryAfterMsOf } from '../backoff.ts';
import type { EmitEvent } from '../client-events.ts';
import { SealpostError } from '../errors.ts';
import { readWhole, type Settings } from '../options.ts';
import type { AnswerDetails } from './answer.ts';
import { type Answered, type AttemptState, attempt, type Outcome } from './attempt.ts';
import { type Call, type InnerCallOptions, openCall, timerMaxMs } from './call.ts';
import { type Clock, createClock } from './clock.ts';
import type { SigningKey } from './credentials.ts';
import { createEndpoints, createHolds, type Endpoints, type Holds } from './endpoints.ts';
import { authOf, pathOf } from './paths.ts';

/** Headers of a request, and the key that signed them; undefined without credentials. */
export type SignedHeaders = {
  readonly headers: Readonly<Record<string, string>>;
  readonly key: SigningKey | undefined;
};

/** Sends signed requests, with retries and fail-over. */
export type Requester = {
  /** GET of a target (path and query). Resolves with the parsed body of a 2xx; rejects with a SealpostError. */
  readonly get: <T>(
    target: string,
    options?: InnerCallOptions,
  ) => Promise<{
    readonly body: T;
    readonly details: AnswerDetails;
    /** True if the page links to a next one; undefined if the server sends no link. */
    readonly more?: boolean | undefined;
  }>;
  /** The headers for a target, signed now with the corrected clock. For streams, which open their own connections. */
  readonly sign: (method: 'GET' | 'HEAD', target: string) => Promise<SignedHeaders>;
  /** After a 401: reads the credentials again; true if they have changed. */
  readonly renew: (signed: SignedHeaders) => Promise<boolean>;
  /** Base URLs in order of preference, without a trailing slash. */
  readonly baseUrls: readonly string[];
  /** The same for WebSockets and the request for origins. */
  readonly wsUrls: readonly string[];
  /** Names of extensions that the server has rejected and that are not requested again (D96). */
  readonly lacks?: Set<string>;
  /** The most that the server was found to allow at once; absent until it rejects more (D251). A `limit` of 0: none may be given. */
  readonly bounds?: { limit?: number; feedIds?: number } | undefined;
  readonly fetch: typeof fetch;
  readonly emit: EmitEvent;
  /** The corrected clock, in milliseconds. */
  readonly nowMs: () => number;
};

/** More connections than any program opens at once. */
const uniqueWithinMs = 1_000;

/** Makes the requester. The secret stays in the function that signs. */
export function createRequester(settings: Settings): Requester {
  const clock = createClock(settings.nowMs);
  const baseUrls = createEndpoints(settings.baseUrls, () => performance.now());
  const nowMs = (): number => {
    const { machineMs, offsetMs } = clock.now();
    return machineMs + offsetMs;
  };
  let signedMs = 0;
  /** No time twice: a signature opens one live connection, and those of one millisecond and target are the same. A clock that was set back counts. */
  const uniqueMs = (): number => {
    const ms = nowMs();
    signedMs = ms <= signedMs && signedMs - ms < uniqueWithinMs ? signedMs + 1 : ms;
    return signedMs;
  };
  return {
    get: async <T>(target: string, options: InnerCallOptions = {}) => {
      if (settings.signer === undefined && authOf(pathOf(target)) === 'required')
        throw new SealpostError('missing_credentials', 'This call needs a user ID and a secret.');
      const timeoutMs = readWhole('timeoutMs', options.timeoutMs ?? settings.timeoutMs, 1, timerMaxMs);
      const call = openCall(options, timeoutMs);
      try {
        const { body, ...rest } = await answerTo(target, call, withOptions(settings, options), baseUrls, clock);
        return { body: body as T, ...rest }; // the caller checks the shape
      } finally {
        call.close();
      }
    },
    sign: async (method, target) => {
      const key = await settings.signer?.key();
      return { headers: { ...settings.headers, ...key?.sign(method, target, uniqueMs()) }, key };
    },
    renew: async ({ key }) => key !== undefined && (await settings.signer?.renew(key)) === true,
    get baseUrls() {
      return baseUrls.inOrder();
    },
    get wsUrls() {
      return settings.wsUrls === settings.baseUrls ? baseUrls.inOrder() : settings.wsUrls;
    },
    fetch: settings.fetch,
    lacks: new Set(),
    bounds: {},
    emit: settings.emit,
    nowMs,
  };
}

const withOptions = (settings: Settings, { retryRateLimited }: InnerCallOptions): Settings =>
  retryRateLimited === undefined ? settings : { ...settings, retryRateLimited };

/** Tries all base URLs, round after round, with back-off in between. */
const answerTo = async (
  target: string,
  { signal, remainingMs }: Call,
  settings: Settings,
  baseUrls: Endpoints,
  clock: Clock,
): Promise<Answered> => {
  const { retries, retryRateLimited, random, sleep, emit } = settings;
  const state: AttemptState = { target, signal, attempts: 0, hasCorrectedClock: false, hasRenewedKey: false };
  let waitedMs = 0;
  const holds = createHolds(() => waitedMs);
  for (let round = 1; ; round += 1) {
    const outcome = await askEach(state, settings, baseUrls, clock, holds);
    if (!(outcome instanceof SealpostError)) return outcome;
    const step = nextStep(outcome, retryRateLimited);
    if (round > retries || step === 'never') throw outcome;
    const earliestMs = Math.min(...settings.baseUrls.map((url) => holds.remainingMs(url)));
    const waitMs = backOffMs(retryRules, round - 1, random, step === 'later' ? retryAfterMsOf(outcome) : earliestMs);
    if (waitMs >= remainingMs()) throw outcome; // the call would time out during the wait
    emit({ kind: 'retry', path: pathOf(target), delayMs: waitMs, code: outcome.code });
    await sleep(waitMs, signal);
    waitedMs += waitMs;
    signal.throwIfAborted();
  }
};

/** Tries every base URL that is not held once, until one gives a result that another would give too. One is free in each round. */
const askEach = async (
  state: AttemptState,
  settings: Settings,
  baseUrls: Endpoints,
  clock: Clock,
  { hold, remainingMs }: Holds,
): Promise<Outcome> => {
  let failure: SealpostError | undefined;
  for (const baseUrl of baseUrls.inOrder()) {
    if (remainingMs(baseUrl) > 0) continue;
    const outcome = await attempt(baseUrl, state, settings, clock);
    if (outcome instanceof SealpostError && nextStep(outcome, settings.retryRateLimited) === 'elsewhere') {
      hold(retryAfterMsOf(outcome), baseUrl);
      // Keeps the error with the longest Retry-After.
      if (failure === undefined || retryAfterMsOf(outcome) > retryAfterMsOf(failure)) failure = outcome;
      continue;
    }
    if (baseUrls.answered(baseUrl)) settings.onWarning({ code: 'failover', message: `Failed over to ${baseUrl}.` });
    return outcome;
  }
  return failure as SealpostError; // there is a base URL that is free, and it failed
};

/** Back-off between the rounds of a call. */
const retryRules: BackoffRules = { minMs: 250, maxMs: 8_000 };

/**
 * What to do after a failed attempt: try another base URL at once, retry later, or give up because the same request fails again.
 */
type NextStep = 'elsewhere' | 'later' | 'never';

/** 5xx and network errors are transient; 429 is retried only with the option; no other 4xx is sent twice. */
const nextStep = (error: SealpostError, retryRateLimited: boolean): NextStep => {
  if (error.status === undefined) return error.code === 'network_error' ? 'elsewhere' : 'never';
  if (error.status >= 500) return 'elsewhere';
  return error.status === 429 && retryRateLimited ? 'later' : 'never';
};
