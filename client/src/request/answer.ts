// Reads a response: its body, limited in size, its headers, and the error if it is one.
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

/** Largest body: a page of 1,000 of the largest reports is 8 MB. */
const answerBytesMax = 64 * 2 ** 20;
/** Most that is read of the body of an error, which has a few hundred bytes. */
const errorBytesMax = 65_536;

/** A response with its body. */
export type RawAnswer = { readonly status: number; readonly headers: Headers; readonly text: string };

/** Whether the body is the result of a call. */
export const isResult = (status: number): boolean => status === 200 || status === 206;

/** Reads the body and counts its bytes; calls `onText` with each chunk. The body of an error is cut at 64 KB; any other that is too long throws. */
export async function readText(
  { status, body }: Response,
  onText: (text: string) => void,
  isError = !isResult(status),
): Promise<{ readonly text: string; readonly bytes: number }> {
  if (body === null) return { text: '', bytes: 0 };
  const bytesMax = isError ? errorBytesMax : answerBytesMax;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [text, bytes] = ['', 0];
  while (bytes <= bytesMax) {
    const { done, value } = await reader.read();
    const piece = decoder.decode(value?.subarray(0, bytesMax - bytes), { stream: !done });
    onText(piece);
    text += piece;
    if (done) return { text, bytes };
    bytes += value.length;
  }
  reader.cancel().catch(() => {}); // the rest is not needed
  if (isError) return { text, bytes };
  throw new SealpostError('unexpected_answer', `The response has more than ${answerBytesMax} bytes.`, { status });
}

/** A header that is a non-negative number. */
const numberIn = (headers: Headers, name: string): number | undefined => {
  const raw = headers.get(name);
  return raw !== null && /^[0-9]{1,15}$/.test(raw.trim()) ? Number(raw) : undefined;
};

const dateIn = (headers: Headers, name: string): number | undefined => {
  const ms = Date.parse(headers.get(name) ?? '');
  return Number.isNaN(ms) ? undefined : ms;
};

/** Reads status and headers. */
export function detailsOf(status: number, headers: Headers): AnswerDetails {
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
}

/** Longest Retry-After: a larger value is in another unit, such as an epoch second, which would wait for decades. */
const retryAfterSecondsMax = 3_600;

/** The server's Retry-After in seconds, from a number, a date or the body; limited. */
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
export function readBody({ status, headers, text }: RawAnswer, host: string): object {
  const body = parseJson(text);
  if (typeof body === 'object' && body !== null) return body;
  throw strangeAnswer(host, detailsOf(status, headers));
}

/** The error for a response that is not from this API. */
const strangeAnswer = (host: string, { status, requestId }: AnswerDetails): SealpostError =>
  new SealpostError('unexpected_answer', `${host} returned ${status} with a body that is not a Sealpost response.`, {
    status,
    requestId,
  });

/** What an error repeats of what a server said. */
const short = (said: string): string => oneLine(said.slice(0, 500));

/** The message of an error body: `message` or `error`, as text or one level down, or the fields of RFC 9457. */
const wordsOf = ({ message, error, detail, title }: Readonly<Record<string, unknown>>): string | undefined => {
  const inner = Object(error) as { readonly message?: unknown }; // checked below
  const said = [message, error, inner.message, detail, title].find(
    (words) => typeof words === 'string' && words !== '',
  );
  return typeof said === 'string' ? short(said) : undefined;
};

const inferredCodes: Readonly<Record<number, string>> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'unauthorized',
  404: 'not_found',
  429: 'rate_limited',
};

/** A server without codes does not say which of the two it is. */
const adviceOnUnauthorized = 'Check the user ID and secret, and that the account may read every requested stream.';

/** The message in the specification, which includes the retention. */
const outOfBounds = /timestamp out of bounds(?:.*last (\d{1,4}) days)?/is;

/** Infers the code of an error from its status and message. */
const infer = (status: number, said: string, nowMs: number): { readonly code: string; readonly details: object } => {
  const [matched, days] = (status === 400 && outOfBounds.exec(said)) || [];
  if (matched === undefined) return { code: inferredCodes[status] ?? `http_${status}`, details: {} };
  const oldestTimestamp = Math.floor(nowMs / 1_000) - Number(days) * daySeconds;
  return { code: 'timestamp_out_of_bounds', details: days === undefined ? {} : { oldestTimestamp } };
};

/** Codes and request IDs reach logs and terminals, so only plain ones are accepted. */
const isPlain = (raw: unknown, form: RegExp): raw is string => typeof raw === 'string' && form.test(raw);

/** The error of a response other than 2xx. */
export function toError({ status, headers, text }: RawAnswer, host: string, nowMs: number): SealpostError {
  const answer = detailsOf(status, headers);
  const atMs = answer.serverTimeMs ?? nowMs; // dates of the response are by the server's clock, and this machine's may be wrong
  const body = Object(parseJson(text)) as Readonly<Record<string, unknown>>; // each field is checked below
  const { error, message, code, requestId, retryAfterSeconds: pauseSaid, ...rest } = body;
  const pauseSeconds = retryAfterSeconds(headers, pauseSaid, atMs);
  const pause = pauseSeconds === undefined ? {} : { retryAfterSeconds: pauseSeconds };
  const said = wordsOf(body);
  const id = answer.requestId ?? (isPlain(requestId, /^[\x21-\x7e]{1,200}$/) ? requestId : undefined);
  if (isPlain(code, /^[\w.-]{1,64}$/) && said !== undefined)
    return new SealpostError(code, said, { status, requestId: id, details: { ...rest, ...pause } });
  const location = headers.get('Location');
  if (status < 400 && location !== null)
    return new SealpostError('unexpected_answer', `${host} redirects to ${short(location)} (${status}).`, {
      status,
      requestId: id,
      details: { location },
    });
  if (status < 400) return strangeAnswer(host, answer);
  const date = answer.serverTimeMs === undefined ? {} : { serverDateMs: answer.serverTimeMs };
  // Without a message, for example a proxy's page, only the status is used.
  const { code: inferred, details } =
    said === undefined ? { code: `http_${status}`, details: {} } : infer(status, said, atMs);
  return new SealpostError(inferred, said ?? `${host} returned ${status}.`, {
    status,
    requestId: id,
    details: { ...details, ...date, ...pause },
    isInferred: true,
    ...(inferred === 'unauthorized' && { advice: adviceOnUnauthorized }),
  });
}
