// Owns one attempt of a call at one base URL: signed now, and once more where the server's clock is another.
import { type Route, routes } from '@sealpost/protocol';
import { detailsOf, readBody, toError } from './answer.ts';
import type { Clock, Moment } from './clock.ts';
import { SealpostError } from './errors.ts';
import { exchange } from './exchange.ts';
import type { Settings } from './options.ts';
import type { AnswerDetails } from './requester.ts';

export type Answered = { readonly body: object; readonly details: AnswerDetails; readonly more: boolean | undefined };

/** What an attempt came to. */
export type Outcome = Answered | SealpostError;

/** One attempt needs this of its call; the clock is corrected once in a call, never in a loop. */
export type AttemptState = { readonly target: string; readonly signal: AbortSignal; hasCorrectedClock: boolean };

const routeOf = (path: string): Route | undefined => Object.values(routes).find((route) => route.path === path);

/** Are credentials needed for a path, of use, or not looked at? */
export const authOf = (path: string): Route['auth'] => routeOf(path)?.auth ?? 'required';

/** What the Link header says about a next page; undefined where it says nothing: `Link` is an extension (D95). */
const moreOf = (headers: Headers): boolean | undefined => {
  const link = headers.get('Link') ?? '';
  if (/\brel="?next\b/.test(link)) return true;
  return /\brel="?last\b/.test(link) ? false : undefined;
};

/** Tries once, and once more where the clock was refused. Throws only when the call is over. */
export const attempt = async (
  baseUrl: string,
  call: AttemptState,
  settings: Settings,
  clock: Clock,
): Promise<Outcome> => {
  const signed = clock.now();
  const outcome = await send(baseUrl, call, settings, signed);
  if (!(outcome instanceof SealpostError) || call.hasCorrectedClock) return outcome;
  const correction = clock.correct(outcome, signed);
  if (correction === undefined) return outcome;
  call.hasCorrectedClock = true;
  const { offsetMs } = clock.now();
  const again = await send(baseUrl, call, settings, clock.now());
  const isRefused = again instanceof SealpostError && (again.status === 400 || again.status === 401);
  // A Date header is no proof: the clock was not what is refused.
  if (isRefused && correction.undo !== undefined) correction.undo();
  else if (correction.isNew) settings.onWarning(skewWarning(offsetMs));
  return again;
};

/** Signs and sends; an answer that is an error is returned. */
const send = async (baseUrl: string, call: AttemptState, settings: Settings, signed: Moment): Promise<Outcome> => {
  const url = new URL(call.target, baseUrl);
  const target = `${url.pathname}${url.search}`; // as it is sent
  const sign = authOf(url.pathname) === 'none' ? undefined : settings.sign;
  const headers = sign?.('GET', target, signed.machineMs + signed.offsetMs) ?? {};
  try {
    const { fetch, attemptTimeoutMs: idleTimeoutMs, nowMs } = settings;
    const answer = await exchange(url, { fetch, headers, signal: call.signal, idleTimeoutMs });
    if (answer.status !== 200 && answer.status !== 206) return toError(answer, url.host, nowMs());
    return {
      body: readBody(answer, url.host),
      details: detailsOf(answer.status, answer.headers),
      more: moreOf(answer.headers),
    };
  } catch (error) {
    if (error instanceof SealpostError && !call.signal.aborted) return error;
    throw error;
  }
};

const skewWarning = (offsetMs: number) => ({
  code: 'clock_skew' as const,
  message: `The clock of this machine is ${Math.abs(offsetMs)} ms ${offsetMs > 0 ? 'behind' : 'ahead of'} the server’s. Requests are signed with the server’s time; synchronize the clock.`,
});
