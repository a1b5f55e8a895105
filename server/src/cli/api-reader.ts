// Owns reading the API of a server from the command line: signed GETs with a deadline, answers checked against the table of bodies,
// and every failure as what happened and what to do. Which credentials is credentials.ts.
import { setTimeout as wait } from 'node:timers/promises';
import {
  type ApiError,
  type Body,
  type BodyName,
  bodies,
  type ErrorCode,
  fromErrorJson,
  routes,
} from '@sealpost/protocol';
import type { Signer } from './credentials.ts';
import { CommandError, exitCodes, interruptedCode } from './failure.ts';
import { formatSecond } from './formats.ts';
import type { Session } from './session.ts';

/** Routes that are read here. */
type ReadRoute = 'discovery' | 'feeds' | 'reportAt' | 'reportLatest' | 'reportBulk' | 'reportPage' | 'time' | 'signers';

type BodyOf<R extends ReadRoute> = Body<
  Extract<(typeof routes)[R]['answers'][keyof (typeof routes)[R]['answers'] & (200 | 206)], BodyName>
>;

type QueryTexts<R extends ReadRoute> = {
  readonly [N in keyof (typeof routes)[R]['query']]?: string | number | boolean;
};

/** An answer whose body has the documented shape; `more` when a further page is announced. */
export type ApiAnswer<R extends ReadRoute> = { readonly body: BodyOf<R>; readonly more: boolean };

/** Reads routes of one server. Waits and tries again where the server asks for it; other failures are a `RemoteError`. */
export type ApiReader = <R extends ReadRoute>(route: R, query?: QueryTexts<R>) => Promise<ApiAnswer<R>>;

/** A server that cannot be reached, refuses, or answers something else; `status` is absent where no answer came. */
export class RemoteError extends CommandError {
  readonly problem: string;
  readonly advice: string;
  readonly status: number | undefined;

  constructor(exitCode: number, problem: string, advice: string, status?: number) {
    super(exitCode, `${problem} ${advice}`.trimEnd());
    this.problem = problem;
    this.advice = advice;
    this.status = status;
  }
}

const requestTimeoutMs = 10_000;
const attemptsMax = 5;
const retryAfterMaxSeconds = 10;
const answerBytesMax = 64 * 2 ** 20; // a page of 1,000 of the largest reports is 8 MB

export type ApiReaderOptions = {
  readonly url: URL;
  /** Absent: requests go out unsigned. */
  readonly sign?: Signer;
  readonly timeoutMs?: number;
};

/** Makes a reader; SIGINT ends what it is doing. */
export const createApiReader = (
  session: Session,
  { url, sign, timeoutMs = requestTimeoutMs }: ApiReaderOptions,
): ApiReader => {
  const interruption = session.interruption();
  return async (route, query = {}) => {
    const { method, path, auth } = routes[route];
    // Feed ids, whole numbers, true: nothing here needs encoding.
    const pairs = Object.entries(query).map(([name, value]) => `${name}=${value}`);
    const address = new URL(pairs.length === 0 ? path : `${path}?${pairs.join('&')}`, url);
    for (let attempt = 1; ; attempt += 1) {
      const target = `${address.pathname}${address.search}`; // signed as it is sent
      const headers = auth === 'none' ? {} : (sign?.(method, target, session.nowMs()) ?? {});
      const answer = await get(address, headers, interruption, timeoutMs);
      const pauseSeconds = Number(answer.headers.get('retry-after') ?? Number.NaN);
      const mayRetry = [429, 503].includes(answer.status) && pauseSeconds <= retryAfterMaxSeconds;
      if (!mayRetry || attempt === attemptsMax) return readAnswer(route, answer, url);
      await wait(pauseSeconds * 1_000, undefined, { signal: interruption }).catch(() => {
        throw interrupted(interruption);
      });
    }
  };
};

type RawAnswer = { readonly status: number; readonly headers: Headers; readonly text: string };

const interrupted = (interruption: AbortSignal) => new CommandError(interruptedCode(interruption), 'Interrupted.');

const get = async (
  url: URL,
  headers: Readonly<Record<string, string>>,
  interruption: AbortSignal,
  timeoutMs: number,
): Promise<RawAnswer> => {
  const controller = new AbortController();
  const stop = () => controller.abort();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, timeoutMs);
  interruption.addEventListener('abort', stop, { once: true });
  try {
    if (interruption.aborted) throw interrupted(interruption);
    // Not followed: a redirect would carry the signed headers to someone else.
    const response = await fetch(url, { headers, redirect: 'manual', signal: controller.signal });
    return { status: response.status, headers: response.headers, text: await readText(response, url) };
  } catch (error) {
    if (interruption.aborted) throw interrupted(interruption);
    if (isLate)
      throw unavailable(
        `${url.host} gave no answer within ${timeoutMs / 1_000} s.`,
        'Look at the server and the way to it.',
      );
    throw error instanceof CommandError ? error : explainConnection(error, url);
  } finally {
    clearTimeout(timer);
    interruption.removeEventListener('abort', stop);
  }
};

const readText = async (response: Response, url: URL): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > answerBytesMax) throw strangeAnswer(response.status, url);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const unavailable = (problem: string, advice: string, status?: number) =>
  new RemoteError(exitCodes.unavailable, problem, advice, status);

/** Codes of a failed connection, as Node and undici name them. The first row that fits counts. */
const connectionFailures: readonly (readonly [code: RegExp, problem: string, advice: string])[] = [
  [/^(ENOTFOUND|EAI_\w+)$/, 'has no address in DNS', 'Correct the name, or look at the resolver of this machine.'],
  [/^ECONNREFUSED$/, 'refuses connections', 'Start the server, or correct host and port.'],
  [/^(E(HOST|NET)UNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'is out of reach', 'Look at network and firewall.'],
  [/^(ERR_SSL_\w+|EPROTO)$/, 'speaks no TLS that this machine understands', 'Use http://, or the port that has TLS.'],
  [
    /CERT|^ERR_TLS_|UNABLE_TO_/,
    'shows a certificate that does not hold',
    'Renew it, use the name it was made for, or name its authority in NODE_EXTRA_CA_CERTS.',
  ],
  [/./, 'broke the connection', 'If it speaks TLS use https://, otherwise look at its log.'],
];

const explainConnection = (error: unknown, { host }: URL): RemoteError => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const row = connectionFailures.find(([pattern]) => pattern.test(code));
  if (row !== undefined) return unavailable(`${host} ${row[1]} (${code}).`, row[2]);
  const what = cause instanceof Error ? cause.message : String(cause);
  return unavailable(`${host} cannot be reached (${what}).`, 'Correct the address.');
};

const readAnswer = <R extends ReadRoute>(route: R, { status, headers, text }: RawAnswer, url: URL): ApiAnswer<R> => {
  const body = parseJson(text);
  if (status === 200 || status === 206) {
    const answers: Readonly<Record<number, BodyName | null>> = routes[route].answers;
    const name = answers[status];
    if (!name || !fits(bodies[name], body)) throw strangeAnswer(status, url);
    return { body: body as BodyOf<R>, more: /rel="next"/.test(headers.get('link') ?? '') }; // the shape has just been checked
  }
  const known = fromErrorJson(body);
  if (known !== undefined) throw explainRefusal(known.error, known.requestId);
  const location = headers.get('location');
  if (location !== null)
    throw unavailable(
      `${url.host} redirects to ${location} (${status}).`,
      'Use that address, if you trust it.',
      status,
    );
  throw strangeAnswer(status, url);
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const strangeAnswer = (status: number, { host }: URL): RemoteError =>
  unavailable(
    `${host} answers ${status} with something that is not Sealpost’s.`,
    'Correct the address, or look at what stands in front of the server.',
    status,
  );

type Shape = {
  readonly $ref?: string;
  readonly oneOf?: readonly Shape[];
  readonly type?: string | readonly string[];
  readonly pattern?: string;
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
};

// Names and types only: an enum may have grown on a newer server.
const fits = (shape: Shape, value: unknown): boolean => {
  if (shape.$ref !== undefined) return fits(bodies[shape.$ref.split('/').at(-1) as BodyName], value); // the table refers to itself only
  if (shape.oneOf !== undefined) return shape.oneOf.some((one) => fits(one, value));
  const types = [shape.type ?? []].flat();
  if (shape.items !== undefined) {
    const { items } = shape;
    return Array.isArray(value) && value.every((item) => fits(items, item));
  }
  if (typeof value === 'object' && value !== null && types.includes('object')) {
    const fields = new Map<string, unknown>(Object.entries(value));
    const named = Object.entries(shape.properties ?? {}).filter(([name]) => fields.has(name));
    return (
      !(shape.required ?? []).some((name) => !fields.has(name)) &&
      named.every(([name, of]) => fits(of, fields.get(name)))
    );
  }
  if (value === null) return types.includes('null');
  if (typeof value === 'number')
    return types.includes('number') || (types.includes('integer') && Number.isInteger(value));
  return types.includes(typeof value) && (typeof value !== 'string' || new RegExp(shape.pattern ?? '').test(value));
};

/** What to do about a refusal, where its own text does not say it. */
const advices: Readonly<Partial<Record<ErrorCode, string>>> = {
  clock_skew: 'Measure it with: sealpost doctor URL.',
  unauthorized: 'Check user id and secret, and that the account is not disabled.',
  stream_not_accessible: 'See the streams that you may read with: sealpost doctor URL.',
  timestamp_out_of_bounds: 'Ask for a later moment.',
  head_too_large: 'Ask for fewer streams at once.',
  route_not_found: 'The server may be another release, or something stands in front of it.',
  internal_error: 'Give the request id to whoever runs the server.',
};

const explainRefusal = (error: ApiError, requestId: string): RemoteError => {
  const miss = error.code === 'report_not_found' ? explainNeighbours(error) : undefined;
  const advice = miss ?? advices[error.code] ?? (error.retry ? 'Run this again a little later.' : '');
  const exitCode = error.status >= 500 ? exitCodes.unavailable : exitCodes.refused;
  return new RemoteError(exitCode, `${error.code}: ${error.message} (request ${requestId})`, advice, error.status);
};

const explainNeighbours = ({ details: { previous, next } }: ApiError): string => {
  const { observationsTimestamp: end } = Object(previous);
  const { validFromTimestamp: begin } = Object(next);
  return [
    ...(Number.isInteger(end) ? [`The report before it holds until ${formatSecond(end)}.`] : []),
    ...(Number.isInteger(begin) ? [`The report after it holds from ${formatSecond(begin)}.`] : []),
  ].join(' ');
};
