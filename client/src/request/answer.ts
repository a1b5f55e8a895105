// Reads a response: its body within a bound, the facts in its headers, and the error where it is one.
import { daySeconds, oneLine } from '@sealpost/protocol';
import { SealpostError } from '../errors.ts';

/** The response's status, and what its headers say. */
export type AnswerDetails = {
  readonly status: number;
  readonly requestId: string | undefined;
  /** Undefined if the server sends no limit. */
  readonly rateLimit: { readonly limit: number; readonly remaining: number; readonly resetSeconds: number } | undefined;
  /** The server's Date header in milliseconds, so whole seconds. */
  readonly serverTimeMs: number | undefined;
};

/** Bytes of a body at most: a page of 1,000 of the largest reports is 8 MB. */
const answerBytesMax = 64 * 2 ** 20;

/** An answer with its whole body. */
export type RawAnswer = { readonly status: number; readonly headers: Headers; readonly text: string };

/** Reads the body to its end, and counts its bytes; `onChunk` is called as they come. */
export const readText = async (
  response: Response,
  onChunk: () => void,
): Promise<{ readonly text: string; readonly bytes: number }> => {
  if (response.body === null) return { text: '', bytes: 0 };
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let [text, bytes] = ['', 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { text: text + decoder.decode(), bytes };
    onChunk();
    bytes += value.length;
    if (bytes > answerBytesMax) {
      await reader.cancel();
      throw new SealpostError('unexpected_answer', `The response has more than ${answerBytesMax} bytes.`, {
        status: response.status,
      });
    }
    text += decoder.decode(value, { stream: true });
  }
};

/** A header that is a number from 0 on. */
const numberIn = (headers: Headers, name: string): number | undefined => {
  const raw = headers.get(name);
  return raw !== null && /^[0-9]{1,15}$/.test(raw.trim()) ? Number(raw) : undefined;
};

const dateIn = (headers: Headers, name: string): number | undefined => {
  const ms = Date.parse(headers.get(name) ?? '');
  return Number.isNaN(ms) ? undefined : ms;
};

/** What the headers tell beside the body. */
export const detailsOf = (status: number, headers: Headers): AnswerDetails => {
  const [limit, remaining, resetSeconds] = ['Limit', 'Remaining', 'Reset'].map((name) =>
    numberIn(headers, `RateLimit-${name}`),
  );
  const isLimited = limit !== undefined && remaining !== undefined && resetSeconds !== undefined;
  return {
    status,
    requestId: headers.get('X-Request-Id') ?? undefined,
    rateLimit: isLimited ? { limit, remaining, resetSeconds } : undefined,
    serverTimeMs: dateIn(headers, 'Date'),
  };
};

/** A server that asks for more counts in other units: an epoch second would be a pause of decades. */
const retryAfterSecondsMax = 3_600;

/** How long the server asks to wait: seconds, or until a date, or what the body says; within a bound. */
const retryAfterSeconds = (headers: Headers, said: unknown, nowMs: number): number | undefined => {
  const untilMs = dateIn(headers, 'Retry-After');
  const untilSeconds = untilMs === undefined ? undefined : Math.max(0, Math.ceil((untilMs - nowMs) / 1_000));
  const inBody = typeof said === 'number' && said >= 0 ? said : undefined;
  const seconds = numberIn(headers, 'Retry-After') ?? untilSeconds ?? inBody;
  return seconds === undefined ? undefined : Math.min(seconds, retryAfterSecondsMax);
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** The body of a 2xx: a JSON object. */
export const readBody = ({ status, headers, text }: RawAnswer, host: string): object => {
  const body = parseJson(text);
  if (typeof body === 'object' && body !== null) return body;
  throw strangeAnswer(host, detailsOf(status, headers));
};

/** An answer that is none of this API's. */
const strangeAnswer = (host: string, { status, requestId }: AnswerDetails): SealpostError =>
  new SealpostError('unexpected_answer', `${host} returned ${status} with a body that is not a Sealpost response.`, {
    status,
    requestId,
  });

/** Characters of a server's own words that an error repeats. */
const saidCharactersMax = 500;

/** The words of an error body: `message` or `error`, as text or one level down, or those of RFC 9457. */
const wordsOf = ({ message, error, detail, title }: Readonly<Record<string, unknown>>): string | undefined => {
  const inner = Object(error) as { readonly message?: unknown }; // looked at below
  const said = [message, error, inner.message, detail, title].find(
    (words) => typeof words === 'string' && words !== '',
  );
  return typeof said === 'string' ? oneLine(said.slice(0, saidCharactersMax)) : undefined;
};

const inferredCodes: Readonly<Record<number, string>> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'unauthorized',
  404: 'not_found',
  429: 'rate_limited',
};

/** Such a server does not say which of them it is. */
const adviceOnUnauthorized = 'Check the user ID and secret, and that the account may read every requested stream.';

/** The published sentence, which also tells how far back a server goes. */
const outOfBounds = /timestamp out of bounds(?:.*last (\d{1,4}) days)?/is;

/** What an error without a code means, by its status and its words. */
const infer = (status: number, said: string, nowMs: number): { readonly code: string; readonly details: object } => {
  const [matched, days] = (status === 400 && outOfBounds.exec(said)) || [];
  if (matched === undefined) return { code: inferredCodes[status] ?? `http_${status}`, details: {} };
  const oldestTimestamp = Math.floor(nowMs / 1_000) - Number(days) * daySeconds;
  return { code: 'timestamp_out_of_bounds', details: days === undefined ? {} : { oldestTimestamp } };
};

/** Codes and request IDs reach logs and terminals: what is written otherwise is none. */
const isPlain = (raw: unknown, form: RegExp): raw is string => typeof raw === 'string' && form.test(raw);

/** The error that an answer other than 2xx is. */
export const toError = ({ status, headers, text }: RawAnswer, host: string, nowMs: number): SealpostError => {
  const answer = detailsOf(status, headers);
  const body = Object(parseJson(text)) as Readonly<Record<string, unknown>>; // each field is looked at below
  const { error, message, code, requestId, retryAfterSeconds: pauseSaid, ...rest } = body;
  const pauseSeconds = retryAfterSeconds(headers, pauseSaid, nowMs);
  const pause = pauseSeconds === undefined ? {} : { retryAfterSeconds: pauseSeconds };
  const said = wordsOf(body);
  const id = answer.requestId ?? (isPlain(requestId, /^[\x21-\x7e]{1,200}$/) ? requestId : undefined);
  if (isPlain(code, /^[\w.-]{1,64}$/) && said !== undefined)
    return new SealpostError(code, said, { status, requestId: id, details: { ...rest, ...pause } });
  const location = headers.get('Location');
  if (status < 400 && location !== null)
    return new SealpostError('unexpected_answer', `${host} redirects to ${location} (${status}).`, {
      status,
      requestId: id,
      details: { location },
    });
  if (status < 400) return strangeAnswer(host, answer);
  const date = answer.serverTimeMs === undefined ? {} : { serverDateMs: answer.serverTimeMs };
  // A proxy's page, say: nothing of it is repeated, the status speaks.
  const { code: inferred, details } =
    said === undefined ? { code: `http_${status}`, details: {} } : infer(status, said, answer.serverTimeMs ?? nowMs);
  return new SealpostError(inferred, said ?? `${host} returned ${status}.`, {
    status,
    requestId: id,
    details: { ...details, ...date, ...pause },
    isInferred: true,
    ...(inferred === 'unauthorized' && { advice: adviceOnUnauthorized }),
  });
};
