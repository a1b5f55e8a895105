// Writes an answer: its head as one text, one write. Every answer has CORS headers, errors included (D24, D25, D26).
import { type ServerResponse, STATUS_CODES } from 'node:http';
import { constants, gzip, gzipSync } from 'node:zlib';
import { authHeaders } from '@sealpost/protocol';
import type { RateDecision } from '../access/rate-limit.ts';
import { createHeadWriter, takesHead } from '../connections/node-internals.ts';

/** What a handler answers. */
export type Answer = {
  readonly status: number;
  /** Absent: no body at all (204, 304, HEAD-only routes). A list goes out piece by piece, without being copied together. */
  readonly body?: Buffer | string | readonly Buffer[];
  /** The gzip of the body, where it was made before. */
  readonly packed?: Buffer;
  /** The body is a string of ASCII characters only: it needs no encoding and goes out in one write with its head. */
  readonly ascii?: true;
  readonly contentType?: string;
  readonly cacheControl: string;
  /** Strong tag without quotes; makes the answer conditional. */
  readonly tag?: string;
  /** Further headers: name, value, name, value… */
  readonly headers?: readonly string[];
  /**
   * Takes over the connection after the head is written; the answer is complete when it ends. For a 101 nothing is written: it gets the
   * headers instead.
   */
  readonly takeOver?: (response: ServerResponse, headers: readonly string[]) => void;
};

/** What every answer to one request shares. */
export type AnswerContext = {
  readonly requestId: string;
  readonly head: boolean;
  readonly acceptsGzip: boolean;
  readonly rate: RateDecision | undefined;
  readonly closing: boolean;
  /** Did it come over TLS that this process terminates? */
  readonly isTls: boolean;
};

/** Browsers use only TLS for a year. */
const strictTransport = 'Strict-Transport-Security: max-age=31536000\r\n';

const exposed = [
  'X-Request-Id',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'Link',
  'Sealpost-Missing',
  'ETag',
  'Date',
  'X-Cll-Available-Origins',
].join(', ');
const corsLines = `Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: ${exposed}\r\n`;

/** The answer to any OPTIONS of a path that answers these methods. */
export const preflightAnswer = (allow: string): Answer => ({
  status: 204,
  cacheControl: 'no-store',
  headers: [
    'Access-Control-Allow-Methods',
    allow,
    'Access-Control-Allow-Headers',
    [...Object.values(authHeaders), 'If-None-Match', 'Last-Event-ID', 'X-Cll-Origin'].join(', '),
    'Access-Control-Max-Age',
    '600',
    'Allow',
    allow,
  ],
});

/** Rejects values that would end their header and begin another, as node does. */
export function checkHeaderValues(headers: readonly string[]): void {
  if (headers.some((text) => !headerText.test(text)))
    throw new Error('A header of the answer holds a control character.');
}

const headerText = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Below this a body goes out as it is: compressing a report costs half as much as serving it. */
const gzipBytesMin = 8_192;

/** A body that stays the same with its gzip, where it has one, as an answer takes them. */
export const withGzip = (body: Buffer): { readonly body: Buffer; readonly packed?: Buffer } =>
  body.length < gzipBytesMin ? { body } : { body, packed: gzipSync(body, { level: 9 }) };

const compress = (body: NonNullable<Answer['body']>): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const whole = Array.isArray(body) ? Buffer.concat(body) : (body as Buffer | string); // the only list among the three
    gzip(whole, { level: constants.Z_BEST_SPEED }, (error, result) => (error ? reject(error) : resolve(result)));
  });

/** Bytes of a body. */
export function lengthOf({ body, ascii }: Pick<Answer, 'body' | 'ascii'>): number {
  if (body === undefined) return 0;
  if (typeof body === 'string') return ascii === true ? body.length : Buffer.byteLength(body);
  if (Buffer.isBuffer(body)) return body.length;
  return body.reduce((sum, part) => sum + part.length, 0);
}

/** Makes what writes answers to responses. */
export function createAnswerWriter() {
  const writeHead = createHeadWriter();
  /** Sends an answer as it is, at once. */
  const writeAnswer = (response: ServerResponse, answer: Answer, context: AnswerContext, packed = false): number => {
    if (answer.takeOver !== undefined) return handOver(response, answer, context);
    const { body } = answer;
    const length = lengthOf(answer);
    const { head } = context;
    const isUpgrade = answer.status === upgradeRequired;
    // Node adds nothing to a `Connection` of ours.
    const closing = context.closing || (isUpgrade && !response.shouldKeepAlive);
    const lines = headerLines(answer, closing === context.closing ? context : { ...context, closing }, length, packed);
    const whole = !head && !closing && !isUpgrade && body !== undefined && takesHead(response);
    const text = whole && typeof body === 'string' && answer.ascii === true ? body : undefined;
    if (whole) writeHead(response, answer.status, lines, text);
    else response.writeHead(answer.status, headersOf(lines));
    if (head || body === undefined || text !== undefined) response.end();
    else if (typeof body === 'string') response.end(body, 'utf8');
    else if (Buffer.isBuffer(body)) response.end(body);
    else {
      for (const part of body) response.write(part);
      response.end();
    }
    return context.head ? 0 : length;
  };
  /**
   * Sends an answer; returns the bytes of its body, at once unless it is compressed. Compression, where the client accepts it and the body is
   * large enough, runs in another thread.
   */
  const sendAnswer = (response: ServerResponse, answer: Answer, context: AnswerContext): number | Promise<number> => {
    const { body, status } = answer;
    if (body === undefined || !context.acceptsGzip || status >= 300 || lengthOf(answer) < gzipBytesMin)
      return writeAnswer(response, answer, context);
    if (answer.packed !== undefined) return writeAnswer(response, { ...answer, body: answer.packed }, context, true);
    return compress(body).then((packed) => writeAnswer(response, { ...answer, body: packed }, context, true));
  };
  return { writeAnswer, sendAnswer };
}

/** An answer with a text for a body, as bytes of HTTP/1.1: for a connection whose request was never read. */
export function renderAnswer(answer: Answer & { readonly body: string }, context: AnswerContext): string {
  const lines = headerLines(answer, context, lengthOf(answer), false);
  return `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines}\r\n${answer.body}`;
}

const handOver = (response: ServerResponse, answer: Answer, context: AnswerContext): number => {
  if (response.destroyed) return 0; // the client left before it was answered: nothing would end the connection
  const headers = headersOf(headerLines(answer, context, 0, false));
  if (answer.status !== 101) {
    response.writeHead(answer.status, headers);
    if (context.head) response.end();
    else response.flushHeaders();
  }
  if (!context.head) answer.takeOver?.(response, headers);
  return 0;
};

/** The headers of an answer as lines, each with its end. Values of the answer's own must have no line break. */
const headerLines = (
  answer: Answer,
  { rate, requestId, closing, isTls }: AnswerContext,
  length: number,
  packed: boolean,
): string => {
  const { body, contentType, tag } = answer;
  let lines = `Cache-Control: ${answer.cacheControl}\r\nX-Request-Id: ${requestId}\r\n${corsLines}`;
  if (body !== undefined) {
    lines += `Content-Type: ${contentType ?? 'application/json'}\r\nContent-Length: ${length}\r\n`;
    if (packed || length >= gzipBytesMin) lines += 'Vary: Accept-Encoding\r\n';
  } else if (answer.takeOver !== undefined && contentType !== undefined) lines += `Content-Type: ${contentType}\r\n`;
  if (packed) lines += 'Content-Encoding: gzip\r\n';
  if (tag !== undefined) lines += packed ? `ETag: "${tag}-gz"\r\n` : `ETag: "${tag}"\r\n`;
  if (rate !== undefined && rate.limit > 0)
    lines += `RateLimit-Limit: ${rate.limit}\r\nRateLimit-Remaining: ${rate.remaining}\r\nRateLimit-Reset: ${rate.resetSeconds}\r\n`;
  if (answer.headers !== undefined) lines += linesOf(answer.headers);
  if (isTls) lines += strictTransport;
  return lines + connectionLine(answer.status, closing);
};

const upgradeRequired = 426;

/** Absent where the connection stays open: that is the default. */
const connectionLine = (status: number, closing: boolean): string => {
  if (status === upgradeRequired) return `Connection: Upgrade${closing ? ', close' : ''}\r\n`;
  return closing ? 'Connection: close\r\n' : '';
};

const linesOf = (headers: readonly string[]): string => {
  checkHeaderValues(headers);
  let lines = '';
  for (let i = 0; i < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return lines;
};

/** Lines as Node takes headers: name, value, name, value… */
const headersOf = (lines: string): string[] =>
  lines.split('\r\n').flatMap((line) => {
    const colon = line.indexOf(': ');
    return colon === -1 ? [] : [line.slice(0, colon), line.slice(colon + 2)];
  });

/** Does If-None-Match name the tag? Compared weakly, as HTTP says for this header. */
export function isNotModified(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((item) => {
    const known = item.trim().replace(/^W\//, '');
    return known === `"${tag}"` || known === `"${tag}-gz"`;
  });
}

/** This content policy only, no guessed types, no referrer. */
export const pageHeaders = (policy: string): readonly string[] => [
  'Content-Security-Policy',
  policy,
  'X-Content-Type-Options',
  'nosniff',
  'Referrer-Policy',
  'no-referrer',
];
