// Sends the requests of a run: signed, paced, retried when a failure may be transient, and logged. Stops when the deployment is down.

import { setTimeout as sleep } from 'node:timers/promises';
import { authHeaders, backoffMs, signRequest } from '@sealpost/protocol';
import { type ClockBounds, createClockEstimate } from './clock.ts';
import {
  answerBytesMax,
  exchange,
  NoAnswerError,
  type NoAnswerReason,
  type ReceivedAnswer,
  type RequestToSend,
} from './exchange.ts';
import { createOutage } from './outage.ts';
import type { Pace } from './pace.ts';
import { SkipError } from './verdict.ts';

/** Makes the three headers of a request; `body` is empty unless given. */
export type SignHeaders = (
  method: string,
  target: string,
  timestampMs: number,
  body?: string,
) => Readonly<Record<string, string>>;

/** One attempt of a request. */
export type Attempt = { readonly request: RequestToSend } & (
  | { readonly answer: ReceivedAnswer; readonly failure?: undefined }
  | { readonly failure: NoAnswerError; readonly answer?: undefined }
);

export type AskChanges = Partial<Pick<RequestToSend, 'method' | 'signed' | 'headers' | 'lowerCaseNames'>>;

export type Ask = (target: string, changes?: AskChanges) => Promise<ReceivedAnswer>;

export type Requester = {
  /** A signed GET unless changed. Rejects with a `NoAnswerError`, or a `SkipError` once the deployment is down. */
  readonly ask: Ask;
  /** The headers of a request, signed now. */
  readonly headersOf: (request: RequestToSend) => Readonly<Record<string, string>>;
  /** Every attempt so far. */
  readonly attempts: readonly Attempt[];
  /** The server's clock less this one; undefined while it is not known. */
  readonly clockOffsetMs: () => number | undefined;
  readonly setClockOffset: (offsetMs: number) => void;
  /** The same, as narrow as all signed answers have made it; undefined while it is not known. */
  readonly clockBounds: () => ClockBounds | undefined;
  /** What signing adds to this clock. */
  readonly signingOffsetMs: () => number;
  /** Why no more requests are sent; undefined while they are. */
  readonly outage: () => string | undefined;
};

export type RequesterParts = {
  readonly url: URL;
  readonly sign: SignHeaders;
  /** Signs in the name of another user, with the user's own secret. */
  readonly signAs: (userId: string) => SignHeaders;
  readonly userAgent: string;
  readonly nowMs: () => number;
  readonly pace: Pace;
  readonly timeoutMs: number;
  /** Why no more requests may be sent, whatever the deployment does; undefined while they may. */
  readonly stopped: () => string | undefined;
  readonly signal: AbortSignal;
};

const retriesMax = 2;
const longReasons: readonly (NoAnswerReason | undefined)[] = ['timed out', 'too large'];
/** After this many failed attempts of a run no more is retried: each has been seen often enough. */
const retriedMax = 60;
/** A clock that is less wrong than this signs well enough; Date headers are only good to a second. */
const offsetNoticedMs = 2_500;

/** A user and a secret that no deployment has. */
export const strangers = { userId: '00000000-0000-4000-8000-000000000000', secret: 'not-the-secret' } as const;

/** The path without the query: rate limits count by it. */
const pathOf = (target: string): string => target.split('?', 1)[0] ?? target;

const transientStatuses: readonly number[] = [429, 500, 502, 503, 504];

const isTransient = ({ answer, failure }: Attempt): boolean =>
  answer === undefined
    ? failure.reason === 'no connection' || failure.reason === 'broken off'
    : transientStatuses.includes(answer.status);

export function createRequester(parts: RequesterParts): Requester {
  const { url, pace, timeoutMs, signal } = parts;
  const attempts: Attempt[] = [];
  const state: { offsetMs?: number; failures: number } = { failures: 0 };
  const outage = createOutage();
  const stopped = (path: string): string | undefined => parts.stopped() ?? outage.ofPath(path) ?? pace.refusal(path);
  const clock = createClockEstimate();
  const addedMs = (): number => {
    const { offsetMs = 0 } = state;
    return Math.abs(offsetMs) < offsetNoticedMs ? 0 : offsetMs;
  };
  const headersOf = (request: RequestToSend): Readonly<Record<string, string>> =>
    buildHeaders(request, parts, Math.round(parts.nowMs() + addedMs()));
  const attempt = async (request: RequestToSend): Promise<Attempt> => {
    const path = pathOf(request.target);
    await pace.turn(path, signal);
    const bounds = { deadlineMs: timeoutMs, bytesMax: answerBytesMax, signal };
    const sentMs = parts.nowMs();
    const made = await exchange(url, request, headersOf(request), bounds).then(
      (answer): Attempt => ({ request, answer }),
      (failure: unknown): Attempt => {
        if (failure instanceof NoAnswerError) return { request, failure };
        throw failure;
      },
    );
    attempts.push(made);
    if (made.answer !== undefined) {
      const { headers, firstByteMs } = made.answer;
      pace.note(path, made.answer);
      // A cache may answer anonymous requests, with the date of another answer.
      if (request.signed !== false) clock.note(sentMs, sentMs + firstByteMs, headers.date);
    }
    const failed = made.answer === undefined || isTransient(made);
    outage.note(path, failed, longReasons.includes(made.failure?.reason));
    state.failures += failed ? 1 : 0;
    return made;
  };
  const ask: Ask = async (target, { method = 'GET', signed = {}, headers = {}, ...rest } = {}) => {
    const request: RequestToSend = { method, target, signed, headers, ...rest };
    const why = (): string | undefined => stopped(pathOf(target));
    for (let retry = 0; ; retry += 1) {
      const reason = why();
      if (reason !== undefined) throw new SkipError(reason);
      const made = await attempt(request);
      if (!isTransient(made) || retry >= retriesMax || state.failures > retriedMax || why() !== undefined) {
        if (made.answer !== undefined) return made.answer;
        throw made.failure;
      }
      await sleep(backoffMs(retry, 200, 10_000), undefined, { signal });
    }
  };
  return {
    ask,
    headersOf,
    attempts,
    clockOffsetMs: () => state.offsetMs,
    clockBounds: clock.bounds,
    signingOffsetMs: addedMs,
    setClockOffset: (offsetMs) => {
      state.offsetMs = offsetMs;
    },
    outage: () => parts.stopped() ?? outage.ofDeployment(),
  };
}

/** The headers as sent: names and values of a check replace those that signing made. */
const buildHeaders = (
  { method, target, signed, headers, lowerCaseNames }: RequestToSend,
  { sign, signAs, userAgent }: RequesterParts,
  timestampMs: number,
): Readonly<Record<string, string>> => {
  const own = {
    'User-Agent': userAgent,
    ...(signed === false
      ? {}
      : signHeaders({ method, target, signed }, signed.inOtherName ? signAs(strangers.userId) : sign, timestampMs)),
  };
  const all = new Map<string, string>(Object.entries(own));
  for (const [name, value] of Object.entries(headers)) {
    for (const given of all.keys()) if (given.toLowerCase() === name.toLowerCase()) all.delete(given);
    if (value !== undefined) all.set(name, value);
  }
  return Object.fromEntries([...all].map(([name, value]) => [lowerCaseNames ? name.toLowerCase() : name, value]));
};

const signHeaders = (
  { method, target, signed }: { method: string; target: string; signed: Exclude<RequestToSend['signed'], false> },
  sign: SignHeaders,
  nowMs: number,
): Readonly<Record<string, string>> => {
  const timestampMs = nowMs + (signed.skewMs ?? 0);
  const [signedMethod, signedTarget] = [signed.method ?? method, signed.target ?? target];
  const headers = sign(signedMethod, signedTarget, timestampMs, signed.body);
  const userId = signed.asOtherUser ? strangers.userId : (headers[authHeaders.userId] ?? '');
  if (!signed.withOtherSecret && !signed.asOtherUser) return headers;
  return signRequest({ method: signedMethod, target: signedTarget, userId, timestampMs }, strangers.secret);
};
