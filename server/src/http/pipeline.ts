// The life of a request on one screen: match route → authenticate → parse query → limit → authorize → read → respond. Each stage is a module and
// may throw an ApiError; problem.ts turns whatever is thrown into an answer.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { costOf, errorOf, type FeedId, isLive, type RouteName, statusOf } from '@sealpost/protocol';
import type { Caller } from '../access/authenticate.ts';
import { type Client, ClientGoneError } from '../access/long-work.ts';
import type { RateDecision } from '../access/rate-limit.ts';
import { noteAnswer, noteChunked } from '../connections/connection-limits.ts';
import { type AdmissionControl, countedAddressOf } from './admission-control.ts';
import { type Answer, type AnswerContext, createAnswerWriter, preflightAnswer } from './answer.ts';
import { answerFile, type FindFile } from './explorer.ts';
import { checkFraming, type RequestHeaders, readHeaders } from './headers.ts';
import { createRejections, isShed, type Load } from './overload.ts';
import { toApiError, toProblem } from './problem.ts';
import { authorise, type QueryReader } from './query.ts';
import type { Handler, LiveContext, RouteContext, Upgrade } from './routes/context.ts';
import { matchRoute, type OtherTarget, parseTarget, type ServedName } from './target.ts';

/** The handler of every route. */
export type Handlers = { readonly [R in RouteName]: Handler<R> };

/** Those that live delivery has. */
export type LiveHandlers = Pick<Handlers, 'socket' | 'socketMs' | 'reportStream'>;

/** What the observer gets for every request, once, after the answer. */
export type RequestEvent = {
  readonly kind: 'request';
  readonly requestId: string;
  readonly route: ServedName | null;
  readonly method: string;
  readonly status: number;
  readonly code: string | null;
  readonly userId: string | null;
  /** The client's, which trusted proxies vouch for, as it was written. */
  readonly address: string;
  readonly bytes: number;
  readonly durationMs: number;
  /** The cause of a 5xx, for the log alone. */
  readonly error?: unknown | undefined;
  /** An interceptor made or changed the answer: no failure of this node, whatever its status. */
  readonly isIntercepted?: boolean;
};

type RequestTimes = Pick<RouteContext, 'nowMs' | 'reportNowMs'>;

export type PipelineParts = {
  readonly handlers: Handlers;
  readonly admission: AdmissionControl;
  readonly readQuery: QueryReader;
  /** Files that are served besides the routes; none when absent. */
  readonly findFile?: FindFile | undefined;
  readonly nowMs: () => number;
  /** The time of reports: queries and their answers go by it. */
  readonly reportNowMs: () => number;
  readonly monotonicMs: () => number;
  readonly newRequestId: () => string;
  readonly isDraining: () => boolean;
  readonly load: Load;
  readonly contextOf: (
    caller: Caller | undefined,
    readable: ReadonlySet<FeedId> | undefined,
    headers: RequestHeaders,
    times: RequestTimes,
    client: Client,
  ) => RouteContext;
  readonly observe: (event: RequestEvent) => void;
  /** Does this process terminate TLS? */
  readonly isTls: boolean;
  /** Runs around every request. */
  readonly intercept?: Intercept | undefined;
};

/**
 * What a program puts around the life of a request: `pass` answers it as everywhere else, by a clock that is off by this many ms. It sets the code of the
 * exchange if it made or changed the answer on purpose.
 */
export type Intercept = (
  exchange: Pick<Exchange, 'request' | 'response' | 'upgrade' | 'requestId' | 'route' | 'code'>,
  pass: (clockOffsetMs: number) => Answer | Promise<Answer>,
) => Answer | Promise<Answer>;

export type Pipeline = {
  /** An upgrade that is rejected, or sent to a route without one, is answered like any other request. */
  readonly handle: (request: IncomingMessage, response: ServerResponse, upgrade?: Upgrade) => void;
  /** Requests that came in and are not answered yet. */
  readonly activeRequests: () => number;
};

/** What is known of a request so far; an error answer contains as much of it as there is. */
type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly upgrade: Upgrade | undefined;
  readonly requestId: string;
  startedMs: number;
  route: ServedName | undefined;
  caller: Caller | undefined;
  rate: RateDecision | undefined;
  headers: RequestHeaders | undefined;
  client: string | undefined;
  /** Set by an interceptor: the answer was made or changed on purpose. */
  code: string | null;
};

const createExchange = (
  { newRequestId, monotonicMs }: PipelineParts,
  request: IncomingMessage,
  response: ServerResponse,
  upgrade: Upgrade | undefined,
): Exchange => ({
  request,
  response,
  upgrade,
  requestId: newRequestId(),
  startedMs: monotonicMs(),
  route: undefined,
  caller: undefined,
  rate: undefined,
  headers: undefined,
  client: undefined,
  code: null,
});

/** Longer than any read: those of PostgreSQL end after `read_ms`, and long work is bounded by what it may read (D228). */
export const answerMaxMs = 30_000;

/** What the answer resolves to or throws; rejects with `store_unavailable` after `answerMaxMs`. An answer that comes later is dropped. */
export const withinDeadline = (answer: Promise<Answer>): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const giveUp = (): void => {
      const cause = new Error(`The handler did not answer within ${answerMaxMs} ms.`);
      reject(errorOf('store_unavailable', {}, { cause }));
    };
    const timer = setTimeout(giveUp, answerMaxMs).unref();
    answer.finally(() => clearTimeout(timer)).then(resolve, reject);
  });

/** Made once: to note where it was thrown costs as much as the rest of the answer. */
const overloaded = errorOf('overloaded');

export function createPipeline(parts: PipelineParts): Pipeline {
  const { admission, readQuery, handlers, intercept } = parts;

  const pass = (exchange: Exchange, clockOffsetMs = 0): Answer | Promise<Answer> => {
    const { method = '', url = '', rawHeaders, socket } = exchange.request;
    const level = parts.load.begin(exchange.upgrade === undefined ? socket : undefined, exchange.startedMs);
    const times: RequestTimes = { nowMs: parts.nowMs() + clockOffsetMs, reportNowMs: parts.reportNowMs() };
    const headers = readHeaders(rawHeaders);
    exchange.headers = headers;
    exchange.client = admission.clientOf(socket.remoteAddress, headers.forwardedFor);
    const address = countedAddressOf(exchange.client);
    if (headers.isChunked) noteChunked(socket);
    const target = parseTarget(url);
    checkFraming(headers, exchange.request.httpVersion);
    const matched = matchRoute(method, target, parts.findFile, exchange.request);
    if (!('name' in matched)) {
      admission.limitPublic(address, exchange.startedMs);
      return answerOther(exchange, matched, headers);
    }
    const { name, route } = matched;
    exchange.route = name;
    if (isShed(name, level)) throw overloaded;
    exchange.caller = admission.admit(route, method, url, headers, address, times.nowMs);
    const query = readQuery(name, target.query, times.reportNowMs);
    const serve = (): Answer | Promise<Answer> => {
      exchange.rate = admission.limit(exchange.caller, name, route, address, exchange.startedMs, costOf(name, query));
      if (exchange.rate?.allowed === false) throw errorOf('rate_limited');
      const readable = exchange.caller && admission.readableOf(exchange.caller);
      authorise(query, readable);
      const handler = handlers[name] as Handler<RouteName>; // the query is the one of the same route
      const context = parts.contextOf(exchange.caller, readable, headers, times, exchange.response);
      return handler(query, isLive(route) ? { ...context, live: liveContext(exchange, admission, headers) } : context);
    };
    const used = exchange.caller && isLive(route) && admission.useSignature(exchange.caller, headers, address);
    const answer = used ? used.then(serve) : serve();
    return answer instanceof Promise ? withinDeadline(answer) : answer;
  };

  const begin: typeof pass =
    intercept === undefined ? pass : (exchange) => intercept(exchange, (offsetMs) => pass(exchange, offsetMs));
  let active = 0;
  const replies = createReplies(parts, () => {
    active -= 1;
  });
  const holdOrFail = holdRejections(parts, replies.fail);
  const handle = (request: IncomingMessage, response: ServerResponse, upgrade?: Upgrade): void => {
    active += 1;
    const exchange = createExchange(parts, request, response, upgrade);
    let answer: Answer | Promise<Answer>;
    try {
      answer = begin(exchange);
    } catch (thrown) {
      return void holdOrFail(exchange, thrown);
    }
    // The hot path answers at once: a promise for it would cost as much as the look-up.
    if (answer instanceof Promise)
      answer.then(
        (late) => sendOrFail(replies, exchange, late),
        (thrown) => holdOrFail(exchange, thrown),
      );
    else sendOrFail(replies, exchange, answer);
  };
  return { handle, activeRequests: () => active };
}

/** Fails requests, those that are shed in their turn. */
const holdRejections = (
  { monotonicMs, isDraining }: PipelineParts,
  fail: ReturnType<typeof createReplies>['fail'],
): typeof fail => {
  const reject = (exchange: Exchange): void => {
    exchange.startedMs = monotonicMs(); // what it waited for on purpose is not what it took
    fail(exchange, overloaded);
  };
  const hold = createRejections(monotonicMs, isDraining, reject);
  return (exchange, thrown) => (thrown === overloaded ? hold(exchange) : fail(exchange, thrown));
};

/** Sends an answer, or the error that sending it throws. */
const sendOrFail = ({ send, fail }: ReturnType<typeof createReplies>, exchange: Exchange, answer: Answer): void => {
  try {
    send(exchange, answer)?.catch((thrown) => fail(exchange, thrown));
  } catch (thrown) {
    fail(exchange, thrown);
  }
};

const answerOther = (exchange: Exchange, matched: OtherTarget, headers: RequestHeaders): Answer => {
  if ('allow' in matched) return preflightAnswer(matched.allow);
  exchange.route = 'explorer';
  return answerFile(matched.file, headers.acceptsGzip, headers.ifNoneMatch);
};

const liveContext = (exchange: Exchange, admission: AdmissionControl, headers: RequestHeaders): LiveContext => {
  const { caller, request, requestId, upgrade } = exchange;
  return {
    requestId,
    userId: caller?.userId ?? '',
    secretId: admission.secretIdOf(request.method ?? '', request.url ?? '', headers),
    lastEventId: headers.lastEventId,
    upgrade,
  };
};

/**
 * Reports requests once all that arrived together are answered: the answers go out sooner, and reporting several in a row costs a third of
 * reporting each between two answers.
 */
const tellTogether = (observe: PipelineParts['observe']): PipelineParts['observe'] => {
  let waiting: RequestEvent[] = [];
  const tell = (): void => {
    const events = waiting;
    waiting = [];
    for (const event of events) observe(event);
  };
  return (event) => {
    if (waiting.push(event) === 1) setImmediate(tell);
  };
};

/** Reported for a request whose client left before the answer, which is not sent. Proxies log the same status. */
const clientGone = { status: 499, code: 'client_gone' } as const;

/** Ends a request with an answer or an error, and reports it once. */
const createReplies = ({ admission, isDraining, isTls, monotonicMs, observe }: PipelineParts, onEnd: () => void) => {
  const clientOf = ({ client, request, headers }: Exchange): string =>
    client ?? admission.clientOf(request.socket.remoteAddress, headers?.forwardedFor);
  const tell = tellTogether(observe);
  const { sendAnswer, writeAnswer } = createAnswerWriter();
  const finish = (exchange: Exchange, status: number, bytes: number, code: string | null, error?: unknown): void => {
    onEnd();
    const { requestId, startedMs, route = null, caller } = exchange;
    const { method = '', socket } = exchange.request;
    noteAnswer(socket, caller?.userId);
    const durationMs = monotonicMs() - startedMs;
    const userId = caller?.userId ?? null;
    const address = clientOf(exchange);
    const isIntercepted = exchange.code !== null && code === exchange.code;
    const counted = { requestId, route, method, status, code, userId, address, bytes, durationMs };
    tell({ kind: 'request', ...counted, error, isIntercepted });
  };
  // An answer that took no token has the rate-limit headers too.
  const rateOf = ({ rate, caller, route }: Exchange): RateDecision | undefined =>
    rate ?? (caller && route && route !== 'explorer' ? admission.stateOf(caller, route) : undefined);
  const contextOf = (exchange: Exchange): AnswerContext => ({
    requestId: exchange.requestId,
    head: exchange.request.method === 'HEAD',
    acceptsGzip: exchange.headers?.acceptsGzip ?? false,
    rate: rateOf(exchange),
    // Bodies are not read: a client could send one without end, and every chunk would be parsed.
    closing: isDraining() || exchange.headers?.hasBody === true,
    isTls,
  });
  // A request without a route counts as a public one: its answer costs as much.
  const limitUnknown = (exchange: Exchange, thrown: unknown): unknown => {
    try {
      admission.limitPublic(countedAddressOf(clientOf(exchange)), exchange.startedMs);
      return thrown;
    } catch (error) {
      return error;
    }
  };
  return {
    /** At once, unless the answer is compressed. */
    send: (exchange: Exchange, answer: Answer): Promise<void> | undefined => {
      const bytes = sendAnswer(exchange.response, answer, contextOf(exchange));
      if (typeof bytes !== 'number') return bytes.then((sent) => finish(exchange, answer.status, sent, exchange.code));
      finish(exchange, answer.status, bytes, exchange.code);
      return undefined;
    },
    fail: (exchange: Exchange, thrown: unknown): void => {
      if (thrown instanceof ClientGoneError) return void finish(exchange, clientGone.status, 0, clientGone.code);
      const error = toApiError(exchange.route === undefined ? limitUnknown(exchange, thrown) : thrown);
      // Part of an answer was sent: the connection is closed, so that the client does not take it for a whole one.
      if (exchange.response.headersSent) {
        onEnd();
        exchange.response.destroy();
        return;
      }
      const answer = toProblem(error, exchange.requestId, rateOf(exchange)?.retryAfterSeconds ?? 1);
      const bytes = writeAnswer(exchange.response, answer, contextOf(exchange));
      finish(exchange, answer.status, bytes, error.code, statusOf(error) >= 500 ? (error.cause ?? error) : undefined);
    },
  };
};
