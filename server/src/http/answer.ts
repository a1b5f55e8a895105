// Writes an answer: one flat header list, one write. Every answer has CORS headers, errors included (D24, D25, D26).
import { type ServerResponse, STATUS_CODES } from 'node:http';
import { constants, gzip } from 'node:zlib';
import { authHeaders } from '@sealpost/protocol';
import type { RateDecision } from '../access/rate-limit.ts';
import { checkHeaderValues, createHeadWriter, gzipBytesMin, takesWhole } from './whole-answer.ts';

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
const strictTransport = ['Strict-Transport-Security', 'max-age=31536000'] as const;

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
const corsHeaders = ['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', exposed] as const;

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

const compress = (body: NonNullable<Answer['body']>): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const whole = Array.isArray(body) ? Buffer.concat(body) : (body as Buffer | string); // the only list among the three
    gzip(whole, { level: constants.Z_BEST_SPEED }, (error, result) => (error ? reject(error) : resolve(result)));
  });

const lengthOf = ({ body, ascii }: Answer): number => {
  if (body === undefined) return 0;
  if (typeof body === 'string') return ascii === true ? body.length : Buffer.byteLength(body);
  if (Buffer.isBuffer(body)) return body.length;
  return body.reduce((sum, part) => sum + part.length, 0);
};

/** Makes what writes answers to responses. */
export const createAnswerWriter = () => {
  const writeHead = createHeadWriter();
  /** Sends an answer as it is, at once. */
  const writeAnswer = (response: ServerResponse, answer: Answer, context: AnswerContext, packed = false): number => {
    if (answer.takeOver !== undefined) return handOver(response, answer, context);
    const { body } = answer;
    const length = lengthOf(answer);
    const headers = headersOf(answer, context, length, packed);
    const { head, closing } = context;
    const whole = !head && !closing && body !== undefined && takesWhole(response);
    const text = whole && typeof body === 'string' && answer.ascii === true ? body : undefined;
    if (whole) writeHead(response, answer.status, headers, text);
    else response.writeHead(answer.status, headers);
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
};

/** An answer with a text for a body, as bytes of HTTP/1.1: for a connection whose request was never read. */
export const renderAnswer = (answer: Answer & { readonly body: string }, context: AnswerContext): string => {
  const headers = headersOf(answer, context, lengthOf(answer), false);
  const lines = headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}`] : []));
  return [`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}`, ...lines, '', answer.body].join('\r\n');
};

const handOver = (response: ServerResponse, answer: Answer, context: AnswerContext): number => {
  const headers = headersOf(answer, context, 0, false);
  if (answer.status !== 101) {
    response.writeHead(answer.status, headers);
    if (context.head) response.end();
    else response.flushHeaders();
  }
  if (!context.head) answer.takeOver?.(response, headers);
  return 0;
};

const headersOf = (
  answer: Answer,
  { rate, requestId, closing, isTls }: AnswerContext,
  length: number,
  packed: boolean,
) => {
  const headers: (string | number)[] = [
    'Cache-Control',
    answer.cacheControl,
    'X-Request-Id',
    requestId,
    ...corsHeaders,
  ];
  if (answer.takeOver !== undefined && answer.contentType !== undefined)
    headers.push('Content-Type', answer.contentType);
  if (answer.body !== undefined) {
    headers.push('Content-Type', answer.contentType ?? 'application/json', 'Content-Length', length);
    if (packed || length >= gzipBytesMin) headers.push('Vary', 'Accept-Encoding');
  }
  if (packed) headers.push('Content-Encoding', 'gzip');
  if (answer.tag !== undefined) headers.push('ETag', packed ? `"${answer.tag}-gz"` : `"${answer.tag}"`);
  if (rate !== undefined && rate.limit > 0) {
    headers.push('RateLimit-Limit', rate.limit, 'RateLimit-Remaining', rate.remaining);
    headers.push('RateLimit-Reset', rate.resetSeconds);
  }
  if (answer.headers !== undefined) {
    checkHeaderValues(answer.headers);
    headers.push(...answer.headers);
  }
  if (isTls) headers.push(...strictTransport);
  if (closing) headers.push('Connection', 'close');
  return headers as string[]; // node takes numbers too
};

/** Does If-None-Match name the tag? Compared weakly, as HTTP says for this header. */
export const isNotModified = (ifNoneMatch: string | undefined, tag: string): boolean => {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((item) => {
    const known = item.trim().replace(/^W\//, '');
    return known === `"${tag}"` || known === `"${tag}-gz"`;
  });
};
