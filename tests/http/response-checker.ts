// A client that compares every response with the request that it answers: status, stream, window, bytes and request ID. It pipelines requests of every
// kind, reads in bursts and aborts connections, because a response went to another request when a slow reader made the server wait.
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { gunzipSync } from 'node:zlib';
import { type FeedId, signRequest } from '@sealpost/protocol';
import type { StoredReport } from '../../server/src/store/store.ts';
import { head, toLines } from '../support/raw-http.ts';

type Credentials = { readonly userId: string; readonly secret: string };
type Answer = { readonly status: number; readonly headers: ReadonlyMap<string, string>; readonly body: Buffer };
type Method = 'GET' | 'HEAD';

/** A request, and what is wrong with an answer to it; undefined for the answer that it must get. */
export type Question = {
  readonly name: string;
  readonly method: Method;
  readonly target: string;
  readonly headers?: readonly string[];
  readonly account: Credentials;
  readonly compare: (answer: Answer) => string | undefined;
};

export type KnownReports = ReadonlyMap<FeedId, readonly StoredReport[]>;

const secondsOf = ({ validFromMs, observationsMs }: StoredReport) => ({
  validFromTimestamp: validFromMs / 1_000,
  observationsTimestamp: observationsMs / 1_000,
});

const textOf = (report: StoredReport): string => {
  const { validFromTimestamp, observationsTimestamp } = secondsOf(report);
  const fullReport = Buffer.from(report.fullReport).toString('hex');
  return `{"feedID":"${report.feedId}","validFromTimestamp":${validFromTimestamp},"observationsTimestamp":${observationsTimestamp},"fullReport":"0x${fullReport}"}`;
};

const tagOf = ({ fullReport }: StoredReport): string =>
  createHash('sha256').update(fullReport).digest('hex').slice(0, 32);

const sameBody = (status: number, text: string) => {
  const expected = Buffer.from(text);
  return ({ status: got, headers, body }: Answer): string | undefined => {
    if (got !== status) return `status ${got}, not ${status}`;
    const plain = headers.get('content-encoding') === 'gzip' ? gunzipSync(body) : body;
    return plain.equals(expected) ? undefined : `another body: ${plain.subarray(0, 300)}`;
  };
};

const sameHead = (text: string) => {
  const expected = String(Buffer.byteLength(text));
  return ({ status, headers }: Answer): string | undefined =>
    status === 200 && headers.get('content-length') === expected
      ? undefined
      : `${status} of ${headers.get('content-length')} bytes, not of ${expected}`;
};

const sameTag =
  (tag: string) =>
  ({ status, headers }: Answer) =>
    status === 304 && headers.get('etag') === `"${tag}"` ? undefined : `${status} of ${headers.get('etag')}`;

const sameError =
  (status: number, details: Readonly<Record<string, unknown>>) =>
  ({ status: got, body }: Answer): string | undefined => {
    if (got !== status) return `status ${got}, not ${status}`;
    const parsed = JSON.parse(String(body)) as Record<string, unknown>; // an error is an object
    const wrong = Object.entries(details).filter(
      ([name, value]) => JSON.stringify(parsed[name]) !== JSON.stringify(value),
    );
    return wrong.length === 0 ? undefined : `another error: ${body}`;
  };

/** Whole numbers below a bound, the same for the same seed. */
export const createChoice = (seed: number) => {
  let state = seed >>> 0;
  return (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
};

/**
 * Makes questions about reports that are in the store and stay the newest of their streams. The last report of each stream must follow a gap of
 * a second, and the first stream must have ended before the others.
 */
export const createQuestions = (known: KnownReports, account: Credentials, choose: (bound: number) => number) => {
  const feeds = [...known.keys()];
  const pick = <T>(list: readonly T[]): T => list[choose(list.length)] as T; // below its length
  const reportsOf = (feedId: FeedId): readonly StoredReport[] => known.get(feedId) ?? [];
  const one = (report: StoredReport): string => `{"report":${textOf(report)}}`;
  const many = (reports: readonly StoredReport[]): string => `{"reports":[${reports.map(textOf).join(',')}]}`;
  const ask = (name: string, target: string, compare: Question['compare'], more: Partial<Question> = {}): Question => ({
    name,
    method: 'GET',
    target: `/api/v1/reports${target}`,
    account,
    compare,
    ...more,
  });
  const atTarget = (report: StoredReport): string =>
    `?feedID=${report.feedId}&timestamp=${secondsOf(report).observationsTimestamp}`;
  const page = () => {
    const feedId = pick(feeds);
    const from = choose(reportsOf(feedId).length);
    const limit = 20 + choose(151);
    const reports = reportsOf(feedId).slice(from, from + limit);
    const { validFromTimestamp } = secondsOf(reports[0] as StoredReport); // from is below the length
    return {
      target: `/page?feedID=${feedId}&startTimestamp=${validFromTimestamp}&limit=${limit}`,
      text: many(reports),
    };
  };
  const bulk = (offered: readonly FeedId[]): Question => {
    const { observationsTimestamp: at } = secondsOf(pick(reportsOf(feeds.at(-1) as FeedId))); // there are streams
    const found = offered.flatMap((feedId) =>
      reportsOf(feedId).filter((report) => {
        const window = secondsOf(report);
        return window.validFromTimestamp <= at && at <= window.observationsTimestamp;
      }),
    );
    const status = found.length === offered.length ? 200 : 206;
    return ask(`bulk ${status}`, `/bulk?feedIDs=${offered.join(',')}&timestamp=${at}`, sameBody(status, many(found)));
  };
  const pages = (): Question => {
    const { target, text } = page();
    return ask('page', target, sameBody(200, text));
  };
  const kinds: Readonly<Record<string, () => Question>> = {
    latest: () => {
      const newest = reportsOf(pick(feeds)).at(-1) as StoredReport; // none is empty
      return ask('latest', `/latest?feedID=${newest.feedId}`, sameBody(200, one(newest)));
    },
    at: () => {
      const report = pick(reportsOf(pick(feeds)));
      return ask('at', atTarget(report), sameBody(200, one(report)));
    },
    'page, gzip': () => {
      const { target, text } = page();
      return ask('page, gzip', target, sameBody(200, text), { headers: ['Accept-Encoding: gzip'] });
    },
    'page, HEAD': () => {
      const { target, text } = page();
      return ask('page, HEAD', target, sameHead(text), { method: 'HEAD' });
    },
    'bulk 200': () => bulk(feeds.slice(1)),
    'bulk 206': () => bulk(feeds),
    'at, 304': () => {
      const report = pick(reportsOf(pick(feeds)));
      const headers = [`If-None-Match: "${tagOf(report)}"`];
      return ask('at, 304', atTarget(report), sameTag(tagOf(report)), { headers });
    },
    'at, HEAD': () => {
      const report = pick(reportsOf(pick(feeds)));
      return ask('at, HEAD', atTarget(report), sameHead(one(report)), { method: 'HEAD' });
    },
    'at, 404': () => {
      const [previous, next] = reportsOf(pick(feeds)).slice(-2) as [StoredReport, StoredReport]; // there are two
      const gap = secondsOf(next).validFromTimestamp - 1;
      const details = { code: 'report_not_found', previous: secondsOf(previous), next: secondsOf(next) };
      return ask('at, 404', `?feedID=${next.feedId}&timestamp=${gap}`, sameError(404, details));
    },
    'page, 400': () => {
      const limit = 1_001 + choose(1_000);
      return ask('page, 400', `/page?feedID=${pick(feeds)}&startTimestamp=1&limit=${limit}`, sameError(400, {}));
    },
    'latest, 401': () => {
      const stranger = { ...account, secret: 'another secret' };
      return ask('latest, 401', `/latest?feedID=${pick(feeds)}`, sameError(401, {}), { account: stranger });
    },
    'unknown path, 404': () =>
      ask('unknown path, 404', `/nothing-${choose(1_000)}`, sameError(404, { code: 'route_not_found' })),
  };
  return {
    /** Of every kind; half of them have a body that waits for its reader. */
    any: (): Question => (choose(2) === 0 ? pages : pick(Object.values(kinds)))(),
    /** Of the kinds that only severe overload sheds, about one report. */
    small: (): Question => pick([kinds.latest, kinds.at, kinds['at, 304'], kinds['at, HEAD']] as (() => Question)[])(), // they are above
  };
};

export type Findings = {
  /** Answers that a request must get, by its kind. */
  readonly right: Map<string, number>;
  readonly wrong: string[];
  /** Rejected for load or a rate limit: 503 and 429. */
  shed: number;
  /** Requests on connections that the server closed without saying so. */
  cut: number;
  /** Requests that were not answered because a client left, or a response said that it was the last. */
  unanswered: number;
};

export const createCheck = () => {
  const findings: Findings = { right: new Map(), wrong: [], shed: 0, cut: 0, unanswered: 0 };
  return { findings, requestIds: new Set<string>() };
};
type Check = ReturnType<typeof createCheck>;

export const rightOf = ({ right }: Findings): number => [...right.values()].reduce((sum, count) => sum + count, 0);

const dial = (url: string): Socket => {
  const { protocol, hostname, port } = new URL(url);
  return protocol === 'https:'
    ? connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false })
    : connect({ host: hostname, port: Number(port) });
};

const bytesOf = ({ method, target, account, headers = [] }: Question): string =>
  head(
    `${method} ${target} HTTP/1.1`,
    'Host: checker.test',
    ...toLines(signRequest({ method, target, userId: account.userId, timestampMs: Date.now() }, account.secret)),
    ...headers,
  );

/** Takes one answer from received bytes; undefined while it is not complete. */
const takeAnswer = (
  received: Buffer,
  method: Method,
): { readonly answer: Answer; readonly rest: Buffer } | undefined => {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [statusLine = '', ...lines] = received.toString('latin1', 0, end).split('\r\n');
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const status = Number(statusLine.split(' ')[1]);
  const length = method === 'HEAD' || status === 304 ? 0 : Number(headers.get('content-length') ?? 0);
  const from = end + 4;
  if (received.length < from + length) return undefined;
  return {
    answer: { status, headers, body: received.subarray(from, from + length) },
    rest: received.subarray(from + length),
  };
};

/** What is wrong with a response; nothing where load or a rate limit rejected the request. */
const differenceOf = ({ requestIds }: Check, { method, compare }: Question, answer: Answer): string | undefined => {
  const requestId = answer.headers.get('x-request-id');
  if (requestId === undefined || requestIds.has(requestId)) return `request ID ${requestId}`;
  requestIds.add(requestId);
  const isError = answer.status >= 400 && method !== 'HEAD';
  if (isError && JSON.parse(String(answer.body)).requestId !== requestId) return 'the request ID of another body';
  return isShed(answer) ? undefined : compare(answer);
};

const isShed = ({ status }: Answer): boolean => status === 503 || status === 429;

const judge = (check: Check, question: Question, answer: Answer): void => {
  const { findings } = check;
  const { name, method, target } = question;
  const difference = differenceOf(check, question, answer);
  if (difference !== undefined) findings.wrong.push(`${name} ${method} ${target}: ${difference}`);
  else if (isShed(answer)) findings.shed += 1;
  else findings.right.set(name, (findings.right.get(name) ?? 0) + 1);
};

/** Opens a connection whose responses are compared with its requests, in their order. */
export const openChecked = (url: string, check: Check) => {
  const socket = dial(url);
  const waiting: { readonly question: Question; readonly settle: (isAnswered: boolean) => void }[] = [];
  let received: Buffer = Buffer.alloc(0);
  let [isLast, isOver] = [false, false];
  const finish = (hasLeft: boolean): void => {
    if (isOver) return;
    isOver = true;
    socket.destroy();
    if (hasLeft || isLast) check.findings.unanswered += waiting.length;
    else check.findings.cut += waiting.length;
    for (const { settle } of waiting.splice(0)) settle(false);
  };
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (let [next] = waiting; next !== undefined; [next] = waiting) {
      const taken = takeAnswer(received, next.question.method);
      if (taken === undefined) return;
      received = taken.rest;
      waiting.shift();
      judge(check, next.question, taken.answer);
      isLast ||= taken.answer.headers.get('connection') === 'close';
      next.settle(true);
    }
    if (received.length > 0) check.findings.wrong.push(`A response without a request: ${received.subarray(0, 300)}`);
  });
  for (const event of ['error', 'end', 'close']) socket.on(event, () => finish(false));
  const opened = new Promise<void>((resolve) => {
    for (const event of [url.startsWith('https') ? 'secureConnect' : 'connect', 'close']) socket.once(event, resolve);
  });
  return {
    socket,
    isOpen: (): boolean => !isOver,
    /** Resolves once the request is on its way, so that over TLS each is a record of its own; `answered` tells whether it was answered. */
    ask: async (question: Question): Promise<{ readonly answered: Promise<boolean> }> => {
      await opened;
      if (isOver) {
        check.findings.unanswered += 1;
        return { answered: Promise.resolve(false) };
      }
      const answered = new Promise<boolean>((settle) => void waiting.push({ question, settle }));
      await new Promise<void>((resolve) => void socket.write(bytesOf(question), 'latin1', () => resolve()));
      return { answered };
    },
    leave: (): void => finish(true),
  };
};

export type CheckOptions = {
  readonly url: string;
  readonly nextQuestion: () => Question;
  readonly choose: (bound: number) => number;
  readonly clients: number;
  /** Connections of all clients together. */
  readonly connections: number;
  readonly pipelined: number;
};

/** Clients that open one connection after the other: half of them read in bursts, and one connection in twenty is left early. */
export const checkResponses = async (options: CheckOptions): Promise<Findings> => {
  const { url, nextQuestion, choose, clients, connections, pipelined } = options;
  const check = createCheck();
  let left = connections;
  const useConnection = async (): Promise<void> => {
    const { socket, ask, leave } = openChecked(url, check);
    const bursts = choose(2) === 0 && setInterval(() => (choose(2) === 0 ? socket.pause() : socket.resume()), 3);
    const asked: { readonly answered: Promise<boolean> }[] = [];
    for (let i = 0; i < pipelined; i++) asked.push(await ask(nextQuestion()));
    const wanted = choose(20) === 0 ? choose(pipelined) : pipelined;
    for (const { answered } of asked.slice(0, wanted)) await answered;
    if (bursts !== false) clearInterval(bursts);
    leave();
  };
  const runClient = async (): Promise<void> => {
    while (left-- > 0) await useConnection();
  };
  await Promise.all(Array.from({ length: clients }, runClient));
  return check.findings;
};
