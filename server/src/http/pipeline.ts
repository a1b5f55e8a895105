// THE LIFE OF A REQUEST, in one screen: match route → authenticate → parse query → limit → authorise → read → respond. Each line is a
// stage, each stage a module, each may throw an ApiError; whatever is thrown becomes an answer in one place.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError, type FeedId, type RouteName } from '@sealpost/protocol';
import type { Caller } from '../access/authenticate.ts';
import type { RateDecision } from '../access/rate-limit.ts';
import { type Answer, type AnswerContext, preflightAnswer, sendAnswer, writeAnswer } from './answer.ts';
import type { Gate } from './gate.ts';
import { checkFraming, type RequestHeaders, readHeaders } from './headers.ts';
import { toApiError, toProblem } from './problem.ts';
import { authorise, type QueryRules, readQuery } from './query.ts';
import type { Handler, RouteContext } from './routes/context.ts';
import { matchRoute, parseTarget } from './target.ts';

/** Handlers by route: those of other transports have none here. */
export type Handlers = { readonly [R in RouteName]?: Handler<R> };

/** What is told of every request, once, when it was answered. */
export type RequestEvent = {
  readonly kind: 'request';
  readonly requestId: string;
  readonly route: RouteName | null;
  readonly method: string;
  readonly status: number;
  readonly code: string | null;
  readonly userId: string | null;
  readonly bytes: number;
  readonly durationMs: number;
  /** The cause of a 5xx, for the log alone. */
  readonly error?: unknown;
};

export type PipelineParts = {
  readonly handlers: Handlers;
  readonly gate: Gate;
  readonly rules: QueryRules;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  readonly newRequestId: () => string;
  readonly isDraining: () => boolean;
  /** Is there more to do than can be done in time? */
  readonly isOverloaded: () => boolean;
  readonly contextOf: (
    readable: ReadonlySet<FeedId> | undefined,
    headers: RequestHeaders,
    nowMs: number,
  ) => RouteContext;
  readonly observe: (event: RequestEvent) => void;
};

/** What is known of a request while it passes; an error answer tells as much of it as there is. */
type Passage = {
  route: RouteName | undefined;
  caller: Caller | undefined;
  rate: RateDecision | undefined;
  headers: RequestHeaders | undefined;
};

export const createPipeline = (parts: PipelineParts) => {
  const { gate, rules, handlers } = parts;

  const pass = (request: IncomingMessage, passage: Passage): Answer | Promise<Answer> => {
    if (parts.isOverloaded()) throw new ApiError('overloaded');
    const { method = '', url = '', rawHeaders, socket } = request;
    const nowMs = parts.nowMs();
    const headers = readHeaders(rawHeaders);
    passage.headers = headers;
    const { path, query: raw } = parseTarget(url);
    checkFraming(headers);
    const matched = matchRoute(method, path);
    if (matched === 'options') return preflightAnswer;
    const { name, route } = matched;
    passage.route = name;
    const address = gate.addressOf(socket.remoteAddress, headers.forwardedFor);
    passage.caller = gate.admit(route, method, url, headers, address, nowMs);
    passage.rate = passage.caller && gate.stateOf(passage.caller, name);
    const query = readQuery(name, raw, rules, nowMs);
    passage.rate = gate.limit(passage.caller, name, route, address);
    const readable = passage.caller && gate.readableOf(passage.caller);
    authorise(query, readable);
    const handler = handlers[name] as Handler<RouteName> | undefined; // the table keys both
    if (handler === undefined) throw new ApiError('upgrade_required');
    return handler(query, parts.contextOf(readable, headers, nowMs));
  };

  return (request: IncomingMessage, response: ServerResponse): void => {
    const startedMs = parts.monotonicMs();
    const requestId = parts.newRequestId();
    const passage: Passage = { route: undefined, caller: undefined, rate: undefined, headers: undefined };
    const finish = ({ status }: Answer, bytes: number, code: string | null, error?: unknown): void => {
      const told = {
        requestId,
        method: request.method ?? '',
        status,
        code,
        bytes,
        durationMs: parts.monotonicMs() - startedMs,
      };
      parts.observe({ kind: 'request', ...told, ...describe(passage), ...(error !== undefined && { error }) });
    };
    const contextOf = (): AnswerContext => ({
      requestId,
      head: request.method === 'HEAD',
      acceptsGzip: passage.headers?.acceptsGzip ?? false,
      rate: passage.rate,
      closing: parts.isDraining(),
    });
    const fail = (thrown: unknown): void => {
      const error = toApiError(thrown);
      // Half an answer cannot be taken back: the client sees the connection end instead of a wrong one.
      if (response.headersSent) return void response.destroy();
      const answer = toProblem(error, requestId, passage.rate?.retryAfterSeconds ?? 1);
      const bytes = writeAnswer(response, answer, contextOf(), answer.body, false);
      finish(answer, bytes, error.code, error.status >= 500 ? (error.cause ?? error) : undefined);
    };
    const respond = async (answer: Answer): Promise<void> =>
      finish(answer, await sendAnswer(response, answer, contextOf()), null);
    try {
      const answer = pass(request, passage);
      // The hot path answers at once: a promise for it would cost as much as the look-up.
      if (answer instanceof Promise) answer.then(respond).catch(fail);
      else respond(answer).catch(fail);
    } catch (thrown) {
      fail(thrown);
    }
  };
};

const describe = ({ route, caller }: Passage) => ({ route: route ?? null, userId: caller?.userId ?? null });
