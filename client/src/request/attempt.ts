// One attempt of a call at one base URL: signs and sends it, and signs again if the server rejects the clock or the credentials.
import { SealpostError } from '../errors.ts';
import type { Settings } from '../options.ts';
import type { AnswerDetails } from './answer.ts';
import { detailsOf, isResult, type RawAnswer, readBody, readText, toError } from './answer.ts';
import { raceSignal } from './call.ts';
import type { Clock, ClockReading } from './clock.ts';
import type { SigningKey } from './credentials.ts';
import { authOf, pathOf } from './paths.ts';

export type Answered = { readonly body: object; readonly details: AnswerDetails; readonly more: boolean | undefined };

/** The result of an attempt. */
export type Outcome = Answered | SealpostError;

/** The state of a call that its attempts share; clock and credentials are corrected at most once per call. */
export type AttemptState = {
  readonly target: string;
  readonly signal: AbortSignal;
  attempts: number;
  hasCorrectedClock: boolean;
  hasRenewedKey: boolean;
};

/** Whether the Link header has a next page; undefined without one, because `Link` is an extension (D95). */
const moreOf = (headers: Headers): boolean | undefined => {
  const link = headers.get('Link') ?? '';
  if (/\brel="?next\b/.test(link)) return true;
  return /\brel="?last\b/.test(link) ? false : undefined;
};

/** Tries once. Throws only when the call is over. */
export async function attempt(baseUrl: string, call: AttemptState, settings: Settings, clock: Clock): Promise<Outcome> {
  const { outcome, signed } = await tryOnce(baseUrl, call, settings, clock);
  if (!(outcome instanceof SealpostError) || call.hasCorrectedClock) return outcome;
  const correction = clock.correct(outcome, signed);
  if (correction === undefined) return outcome;
  call.hasCorrectedClock = true;
  const { offsetMs } = clock.now();
  const { outcome: again } = await tryOnce(baseUrl, call, settings, clock);
  const isRefused = again instanceof SealpostError && (again.status === 400 || again.status === 401);
  // Still rejected, so a correction that was based on the Date header was wrong.
  if (isRefused && correction.undo !== undefined) correction.undo();
  else if (correction.isNew) settings.onWarning(skewWarning(offsetMs));
  return again;
}

/** An outcome, and when its request was signed. */
type Tried = { readonly outcome: Outcome; readonly signed: ClockReading };

/** Signs and sends a request, and once more if its credentials are rejected and there are new ones. */
const tryOnce = async (baseUrl: string, call: AttemptState, settings: Settings, clock: Clock): Promise<Tried> => {
  const url = new URL(`${baseUrl}${call.target}`);
  const signer = authOf(pathOf(call.target)) === 'none' ? undefined : settings.signer;
  let signed = clock.now();
  try {
    const key = signer && (await raceSignal(signer.key(), call.signal));
    // Read after the key, because the secret function may take a while.
    signed = clock.now();
    const outcome = await send(url, baseUrl, key, signed, call, settings);
    const isRefused = outcome instanceof SealpostError && isKeyRefused(outcome) && !call.hasRenewedKey;
    if (!isRefused || signer === undefined || key === undefined) return { outcome, signed };
    call.hasRenewedKey = true;
    if (!(await raceSignal(signer.renew(key), call.signal))) return { outcome, signed };
  } catch (error) {
    if (error instanceof SealpostError && !call.signal.aborted) return { outcome: error, signed };
    throw error;
  }
  return tryOnce(baseUrl, call, settings, clock);
};

/** Whether new credentials may help; they do not if the account may not read the stream. */
export const isKeyRefused = ({ status, code, isInferred }: SealpostError): boolean =>
  status === 401 && (isInferred || code !== 'stream_not_accessible');

/** Sends the request and emits an event; returns a response that is an error. */
const send = async (
  url: URL,
  baseUrl: string,
  key: SigningKey | undefined,
  signed: ClockReading,
  call: AttemptState,
  { fetch, headers: own, attemptTimeoutMs: idleTimeoutMs, emit, nowMs }: Settings,
): Promise<Outcome> => {
  const target = url.href.slice(baseUrl.length); // as the server behind a proxy with a prefix receives it (D252)
  call.attempts += 1;
  const startedMs = performance.now();
  const report = (code: string | undefined, answer?: ExchangedAnswer): void =>
    emit({
      kind: 'attempt',
      url: baseUrl,
      path: pathOf(target),
      attempt: call.attempts,
      status: answer?.status,
      code,
      requestId: answer?.headers.get('X-Request-Id') ?? undefined,
      bytes: answer?.bytes ?? 0,
      durationMs: performance.now() - startedMs,
    });
  const signature = key?.sign('GET', target, signed.machineMs + signed.offsetMs);
  const options = { fetch, headers: { ...own, ...signature }, signal: call.signal, idleTimeoutMs };
  const answer = await exchange(url, options).catch((error: unknown) => {
    report(error instanceof SealpostError ? error.code : 'aborted');
    throw error;
  });
  if (!isResult(answer.status)) {
    const error = toError(answer, url.host, nowMs());
    report(error.code, answer);
    return error;
  }
  report(undefined, answer);
  return {
    body: readBody(answer, url.host),
    details: detailsOf(answer.status, answer.headers),
    more: moreOf(answer.headers),
  };
};

const skewWarning = (offsetMs: number) => ({
  code: 'clock_skew' as const,
  message: `The clock of this machine is ${Math.abs(offsetMs)} ms ${offsetMs > 0 ? 'behind' : 'ahead of'} the server’s. Requests are signed with the server’s time; synchronize the clock.`,
});

/**
 * Redirects are not followed: they would send the signed headers to another server. No browser cache: the Date and rate-limit headers would be those of an
 * earlier response.
 */
export const requestInit = { redirect: 'manual', credentials: 'omit', cache: 'no-store' } as const;

export type ExchangeOptions = {
  readonly fetch: typeof fetch;
  readonly headers: Readonly<Record<string, string>>;
  /** Ends the exchange with its reason. */
  readonly signal: AbortSignal;
  /** The exchange fails after this long without a byte; milliseconds. */
  readonly idleTimeoutMs: number;
};

/** A response, and the size of its body. */
export type ExchangedAnswer = RawAnswer & { readonly bytes: number };

/** Sends a GET. Resolves with any response; rejects with the signal's reason, or with a `network_error`. */
export async function exchange(
  url: URL,
  { fetch, headers, signal, idleTimeoutMs }: ExchangeOptions,
): Promise<ExchangedAnswer> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal.reason);
  const onIdle = () => controller.abort(new Error(`No byte for ${idleTimeoutMs} ms.`));
  let timer = setTimeout(onIdle, idleTimeoutMs);
  const rearm = (): void => {
    clearTimeout(timer);
    timer = setTimeout(onIdle, idleTimeoutMs);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  // Also ends the wait for a fetch that ignores its signal.
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true });
  });
  ended.catch(() => {}); // the race may be over already
  const send = async (): Promise<ExchangedAnswer> => {
    const response = await fetch(url.href, { ...requestInit, headers, signal: controller.signal });
    rearm();
    return { status: response.status, headers: response.headers, ...(await readText(response, rearm)) };
  };
  try {
    return await Promise.race([send(), ended]);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw error instanceof SealpostError ? error : networkError(url, error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

const networkError = ({ host }: URL, cause: unknown): SealpostError =>
  new SealpostError('network_error', `${host} cannot be reached (${fetchFailure(cause)}).`, { cause });

/** Why fetch failed: the system's code where there is one, never the request. */
export function fetchFailure(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const { code, message } = Object(inner) as { readonly code?: unknown; readonly message?: unknown }; // shown as text only
  return typeof code === 'string' ? code : typeof message === 'string' ? message : 'the connection failed';
}
