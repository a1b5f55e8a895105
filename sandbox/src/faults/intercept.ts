// Applies faults to requests: sits around the pipeline, so that faulted requests are logged and counted like others, and notes every request in the
// request log.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { ApiError, errorOf, type FeedId, parseFeedId, type RouteName, splitQuery, statusOf } from '@sealpost/protocol';
import { ClientGoneError } from '@sealpost/server/access/long-work';
import type { Answer } from '@sealpost/server/http/answer';
import { hasAuth, readHeaders } from '@sealpost/server/http/headers';
import type { Intercept } from '@sealpost/server/http/pipeline';
import { toApiError, toProblem } from '@sealpost/server/http/problem';
import { matchRoute, parseTarget } from '@sealpost/server/http/target';
import type { AnsweredRequest, createAnswerChanges } from './answers.ts';
import type { AppliedFault, Decisions } from './decisions.ts';
import { parsedMs } from './fields.ts';
import type { FaultOf } from './kinds.ts';
import { type Pacing, truncateAnswer } from './pacing.ts';
import type { createRequestLog } from './request-log.ts';

/** The code of these answers in the log. */
const faultCode = 'sandbox_fault';

export type InterceptParts = {
  readonly decisions: Decisions;
  readonly requestLog: ReturnType<typeof createRequestLog>;
  readonly changeAnswer: ReturnType<typeof createAnswerChanges>;
  readonly pacing: Pacing;
  /** Sandbox time. */
  readonly nowMs: () => number;
};

/** What a request is about, as far as it can be read. */
type About = AnsweredRequest & {
  readonly path: string;
  readonly origin: string | undefined;
  readonly isSigned: boolean;
};

type Exchange = Parameters<Intercept>[0];
type Pass = Parameters<Intercept>[1];
type Noted = (fault: AppliedFault) => void;

export function createIntercept(parts: InterceptParts): Intercept {
  const { decisions, requestLog, nowMs } = parts;
  return (exchange, pass) => {
    const about = aboutRequest(exchange.request);
    const { route, path, query, account } = about;
    const { method = '' } = exchange.request;
    const row = { atMs: nowMs(), method, route: route ?? null, path, query, account: account ?? null };
    const noted = requestLog.add(row);
    const answered = (answer: Answer): Answer => {
      noted.answered(answer.status);
      return answer;
    };
    const failed = (error: unknown): never => {
      if (!(error instanceof ClientGoneError)) noted.answered(statusOf(toApiError(error)));
      throw error;
    };
    try {
      const isFaulted = route !== undefined && decisions.has();
      const answer = isFaulted ? fault(parts, exchange, about, pass, noted.faulted) : pass(0);
      return answer instanceof Promise ? answer.then(answered, failed) : answered(answer);
    } catch (error) {
      return failed(error);
    }
  };
}

/** Answers a request that faults may act on. */
const fault = async (
  { decisions, changeAnswer, pacing }: InterceptParts,
  exchange: Exchange,
  about: About,
  pass: Pass,
  note: (id: string) => void,
): Promise<Answer> => {
  const { request, response } = exchange;
  exchange.route = about.route;
  const head: HeadChanges = { clockOffsetMs: 0, marks: [] };
  changeHead(response, head);
  const noted: Noted = ({ id, fault: { mark } }) => {
    note(id);
    exchange.code = faultCode;
    if (mark === true && !head.marks.includes(id)) head.marks.push(id);
  };
  const late = decisions.all('latency', about);
  late.forEach(noted);
  const cutBy = cutting(decisions, about);
  const answer = async (): Promise<Answer> => {
    if (cutBy !== undefined) return cut(request, () => noted(cutBy));
    const early = rejection(decisions, about, exchange.requestId, noted);
    if (early !== undefined) return early;
    const off = decisions.first('clock', about);
    if (off !== undefined) {
      noted(off);
      head.clockOffsetMs = parsedMs(off.fault.offset);
    }
    const good = await pass(head.clockOffsetMs);
    return spoilBody(decisions, pacing, await changeAnswer(good, about, noted), about, noted);
  };
  if (late.length === 0) return answer();
  const waitMs = late.reduce((sum, one) => sum + delayOf(one), 0);
  // Answered first: a signature that was in time must not expire while it waits.
  const made = cutBy === undefined ? await settle(answer) : answer;
  await pacing.wait(waitMs, response, exchange.upgrade?.socket);
  return made();
};

/** Runs now, and gives or throws the outcome later. */
const settle = async <T>(make: () => Promise<T>): Promise<() => Promise<T>> => {
  try {
    const made = await make();
    return async () => made;
  } catch (error) {
    return () => Promise.reject(error);
  }
};

/** The delay of one decision, with its jitter. */
export function delayOf({ fault: { delay, jitter }, draw }: AppliedFault<'latency' | 'delay'>): number {
  const spread = jitter === undefined ? 0 : parsedMs(jitter) * (2 * draw('jitter') - 1);
  return Math.max(0, parsedMs(delay) + spread);
}

const cutting = (decisions: Decisions, about: About): AppliedFault | undefined => {
  const down = decisions
    .pending('origin-down', about)
    .find(({ fault: { origin }, decide }) => origin === about.origin && decide());
  return down ?? decisions.first('reset', about);
};

/** Cuts a connection in place of an answer. */
const cut = ({ socket }: IncomingMessage, noted: () => void): never => {
  noted();
  try {
    socket.resetAndDestroy();
  } catch {
    socket.destroy(); // TLS connections cannot be reset
  }
  throw new ClientGoneError('A fault cut the connection.');
};

const rejection = (decisions: Decisions, about: About, requestId: string, noted: Noted): Answer | undefined => {
  const revoked = about.isSigned ? decisions.first('revoked', about) : undefined;
  if (revoked !== undefined) {
    noted(revoked);
    throw errorOf('unauthorized');
  }
  const status = decisions.first('status', about);
  if (status === undefined) return undefined;
  noted(status);
  return statusAnswer(status.fault, requestId);
};

const statusCodes = { 429: 'rate_limited', 500: 'internal_error', 503: 'overloaded' } as const;

/** What a proxy answers, which knows nothing of our errors. */
const proxyPage = (status: number): string => {
  const title = `${status} ${STATUS_CODES[status] ?? ''}`.trim();
  return `<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>\n`;
};

const statusAnswer = (fault: FaultOf<'status'>, requestId: string): Answer => {
  const { status, retryAfter, body, contentType } = fault;
  const headers = retryAfter === undefined ? [] : ['Retry-After', String(retryAfter)];
  const code = Object.hasOwn(statusCodes, status) ? statusCodes[status as keyof typeof statusCodes] : undefined; // just looked up
  if (code === undefined || body !== undefined || contentType !== undefined) {
    const type = contentType ?? 'text/html';
    return { status, body: body ?? proxyPage(status), contentType: type, cacheControl: 'no-store', headers };
  }
  return { ...toProblem(errorOf(code), requestId, 0), headers };
};

const spoilBody = (decisions: Decisions, pacing: Pacing, answer: Answer, about: About, noted: Noted): Answer => {
  const { body } = answer;
  if (body === undefined || body.length === 0 || answer.takeOver !== undefined) return answer;
  const short = decisions.first('truncate', about);
  if (short !== undefined) {
    noted(short);
    return truncateAnswer(answer, body, short.fault.bytes);
  }
  const slow = decisions.first('slow', about);
  if (slow === undefined) return answer;
  noted(slow);
  return pacing.slow(answer, body, slow.fault.bytesPerSecond);
};

const aboutRequest = ({ method = '', url = '', rawHeaders }: IncomingMessage): About => {
  const headers = readHeaders(rawHeaders);
  const account = headers.userId?.toLowerCase();
  const others = { account, origin: headers.origin, isSigned: hasAuth(headers) };
  try {
    const target = parseTarget(url);
    const query = Object.fromEntries([...splitQuery(target.query)].map(([name, values]) => [name, values.join(',')]));
    const feedIds = feedIdsOf(query);
    return { ...others, path: target.path, query, feedIds, route: routeOf(method, target) };
  } catch (error) {
    if (error instanceof ApiError) return { ...others, path: url, query: {}, feedIds: [], route: undefined };
    throw error;
  }
};

/** Undefined for files, and for what is no route. */
const routeOf = (method: string, target: ReturnType<typeof parseTarget>): RouteName | undefined => {
  try {
    const matched = matchRoute(method, target);
    return 'name' in matched ? matched.name : undefined;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
};

const feedIdsOf = ({ feedID = '', feedIDs = '' }: Readonly<Record<string, string>>): readonly FeedId[] =>
  `${feedID},${feedIDs}`.split(',').flatMap((text) => {
    try {
      return text === '' ? [] : [parseFeedId(text)];
    } catch (error) {
      if (error instanceof ApiError) return [];
      throw error;
    }
  });

/** What node sends as the head once it is there; our writer puts the body behind it. */
type WithHead = ServerResponse & { _header: string | null };

type HeadChanges = {
  /** How far the Date is off. */
  clockOffsetMs: number;
  /** IDs of faults that say so. */
  readonly marks: string[];
};

const headEnd = '\r\n\r\n';

/** Applies the changes that are there by the time the head is written, however it is: node and our own writer both set it as one text. */
const changeHead = (response: ServerResponse, changes: HeadChanges): void => {
  const target = response as WithHead; // a property of every response
  let head = target._header;
  Object.defineProperty(target, '_header', {
    configurable: true,
    enumerable: true,
    get: () => head,
    set: (text: string | null) => {
      head = typeof text === 'string' ? changeText(text, changes) : text;
    },
  });
};

const changeText = (text: string, { clockOffsetMs, marks }: HeadChanges): string => {
  const end = text.indexOf(headEnd);
  let head = text.slice(0, end);
  if (clockOffsetMs !== 0)
    head = head.replace(/\r\nDate: ([^\r\n]*)/, (_, date: string) => {
      const shifted = new Date(Date.parse(date) + clockOffsetMs);
      return `\r\nDate: ${shifted.toUTCString()}`;
    });
  if (marks.length > 0) head += `\r\nX-Sandbox-Fault: ${marks.join(', ')}`;
  return head + text.slice(end);
};
