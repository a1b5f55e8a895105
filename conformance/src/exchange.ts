// One raw HTTP request: nothing is corrected, followed or retried, so that no leniency hides a fault. Bounded in time and in bytes.
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

/** How a request is signed, if not as it is sent. */
export type SigningChanges = {
  readonly method?: string;
  readonly target?: string;
  /** Added to the time. */
  readonly skewMs?: number;
  readonly body?: string;
  /** Signs with a secret that is not the user's. */
  readonly withOtherSecret?: true;
  /** Signs as a user that does not exist. */
  readonly asOtherUser?: true;
  /** Signs as a user that does not exist, with the secret of the user. */
  readonly inOtherName?: true;
};

/** A request as a check describes it; enough to send it, and to print how to reproduce it. */
export type RequestToSend = {
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  /** False for an anonymous request. */
  readonly signed: false | SigningChanges;
  /** Added, replaced, or with undefined removed after signing. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Sends header names in lower case. */
  readonly lowerCaseNames?: true;
  /** A WebSocket handshake. */
  readonly isUpgrade?: true;
};

/** A whole answer. */
export type ReceivedAnswer = {
  readonly request: RequestToSend;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Undefined if the body is not JSON. */
  readonly json: unknown;
  /** From the request to the first byte of the answer. */
  readonly firstByteMs: number;
  /** From the first to the last byte of the answer. */
  readonly transferMs: number;
};

export type NoAnswerReason = 'no connection' | 'timed out' | 'broken off' | 'too large' | 'not HTTP';

/** A request without a whole answer. `code` is Node's, empty without one. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  readonly reason: NoAnswerReason;
  readonly code: string;
  readonly request: RequestToSend;

  constructor(reason: NoAnswerReason, message: string, code: string, request: RequestToSend) {
    super(message);
    this.reason = reason;
    this.code = code;
    this.request = request;
  }
}

/** Bounds of one request. */
export type ExchangeBounds = { readonly deadlineMs: number; readonly bytesMax: number; readonly signal: AbortSignal };

/** Larger than a page of a thousand reports and than a catalog of ten thousand streams. */
export const answerBytesMax = 16 * 2 ** 20;

/** Starts a request. Throws a `NoAnswerError` if Node refuses to send it, for example for a target with a space. */
const send = (
  url: URL,
  request: RequestToSend,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): ClientRequest => {
  const { target, method } = request;
  const path = `${url.pathname.replace(/\/$/, '')}${target}`; // behind a proxy with a path (D252)
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  try {
    const start = url.protocol === 'https:' ? requestHttps : requestHttp;
    return start({ hostname, port: url.port, path, method, headers, agent: false, signal });
  } catch (error) {
    const failure: NodeJS.ErrnoException = Object(error);
    throw new NoAnswerError('not HTTP', `not sent: ${describeError(failure)}`, failure.code ?? '', request);
  }
};

/** Sends a request and reads the answer. Rejects with a `NoAnswerError`, or when the signal aborts. */
export const exchange = (
  url: URL,
  request: RequestToSend,
  headers: Readonly<Record<string, string>>,
  { deadlineMs, bytesMax, signal }: ExchangeBounds,
): Promise<ReceivedAnswer> =>
  new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const received = { bytes: 0, chunks: [] as Buffer[] }; // so that the type is known
    const fail = (reason: NoAnswerReason, message: string, code = ''): void => {
      clearTimeout(deadline);
      outgoing.destroy();
      reject(signal.aborted ? signal.reason : new NoAnswerError(reason, message, code, request));
    };
    const outgoing = send(url, request, headers, signal);
    const deadline = setTimeout(() => {
      const got = received.bytes === 0 ? 'no answer' : `only ${received.bytes} bytes of the body`;
      fail('timed out', `${got} within ${deadlineMs} ms`);
    }, deadlineMs);
    outgoing.on('error', (error: NodeJS.ErrnoException) => fail(reasonOf(error), describeError(error), error.code));
    outgoing.on('upgrade', () => fail('not HTTP', 'switched protocols without being asked to'));
    outgoing.on('response', (response) => {
      const firstByteMs = performance.now() - startedMs;
      response.on('data', (chunk: Buffer) => {
        received.bytes += chunk.length;
        received.chunks.push(chunk);
        if (received.bytes > bytesMax) fail('too large', `more than ${bytesMax} bytes`);
      });
      const breakOff = () => fail('broken off', `the connection ended after ${received.bytes} bytes of the body`);
      response.on('error', breakOff);
      response.on('close', () => {
        if (!response.complete) return breakOff();
        clearTimeout(deadline);
        const transferMs = performance.now() - startedMs - firstByteMs;
        resolve({ request, ...readAnswer(response, received.chunks), firstByteMs, transferMs });
      });
    });
    outgoing.end();
  });

const readAnswer = (
  { statusCode = 0, headers }: IncomingMessage,
  chunks: readonly Buffer[],
): Pick<ReceivedAnswer, 'status' | 'headers' | 'text' | 'json'> => {
  const text = Buffer.concat(chunks).toString('utf8');
  return { status: statusCode, headers, text, json: parseJson(text) };
};

/** The value of a JSON text; undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const reasonOf = ({ code = '' }: NodeJS.ErrnoException): NoAnswerReason =>
  code.startsWith('HPE_') ? 'not HTTP' : 'no connection';

const describeError = ({ code, message }: NodeJS.ErrnoException): string => {
  if (code === 'ECONNRESET') return 'the connection was reset before an answer (ECONNRESET)';
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
};
