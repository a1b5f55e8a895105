// Owns writing an answer: one flat header list, one write. CORS is on every answer, errors too (D24, D25, D26).
import type { ServerResponse } from 'node:http';
import { constants, gzip } from 'node:zlib';
import { authHeaders } from '@sealpost/protocol';
import type { RateDecision } from '../access/rate-limit.ts';

/** What a handler answers. */
export type Answer = {
  readonly status: number;
  /** Absent: no body at all (204, 304, HEAD-only routes). */
  readonly body?: Buffer | string;
  /** The body is a string of ASCII characters only: it needs no encoding and goes out in one write with its head. */
  readonly ascii?: true;
  readonly contentType?: string;
  readonly cacheControl: string;
  /** Strong tag without quotes; makes the answer conditional. */
  readonly tag?: string;
  /** Further headers: name, value, name, value… */
  readonly headers?: readonly string[];
};

/** What every answer to one request shares. */
export type AnswerContext = {
  readonly requestId: string;
  readonly head: boolean;
  readonly acceptsGzip: boolean;
  readonly rate: RateDecision | undefined;
  readonly closing: boolean;
};

/** Below this a body goes out as it is: compressing a report costs half as much as serving it. */
const gzipBytesMin = 8_192;

const exposed = 'X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, Link, ETag, Date';
const corsHeaders = ['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', exposed] as const;

/** The answer to any OPTIONS of a known path. */
export const preflightAnswer: Answer = {
  status: 204,
  cacheControl: 'no-store',
  headers: [
    'Access-Control-Allow-Methods',
    'GET, HEAD, OPTIONS',
    'Access-Control-Allow-Headers',
    [...Object.values(authHeaders), 'If-None-Match', 'Last-Event-ID'].join(', '),
    'Access-Control-Max-Age',
    '600',
    'Allow',
    'GET, HEAD, OPTIONS',
  ],
};

/** Sends an answer; returns the bytes of its body. Compression, where asked for and worth it, runs off the loop. */
export const sendAnswer = async (response: ServerResponse, answer: Answer, context: AnswerContext): Promise<number> => {
  const { body, status } = answer;
  if (body === undefined || body.length < gzipBytesMin || !context.acceptsGzip || status >= 300) {
    return writeAnswer(response, answer, context, body, false);
  }
  const packed = await new Promise<Buffer>((resolve, reject) => {
    gzip(body, { level: constants.Z_BEST_SPEED }, (error, result) => (error ? reject(error) : resolve(result)));
  });
  return writeAnswer(response, answer, context, packed, true);
};

/** Sends an answer as it is, at once. */
export const writeAnswer = (
  response: ServerResponse,
  answer: Answer,
  context: AnswerContext,
  body: Buffer | string | undefined,
  packed: boolean,
): number => {
  const { rate } = context;
  const headers: (string | number)[] = [
    'Cache-Control',
    answer.cacheControl,
    'X-Request-Id',
    context.requestId,
    ...corsHeaders,
  ];
  const length = body === undefined ? 0 : answer.ascii === true && !packed ? body.length : Buffer.byteLength(body);
  if (body !== undefined)
    headers.push('Content-Type', answer.contentType ?? 'application/json', 'Content-Length', length);
  if (packed) headers.push('Content-Encoding', 'gzip');
  if (body !== undefined && length >= gzipBytesMin) headers.push('Vary', 'Accept-Encoding');
  if (answer.tag !== undefined) headers.push('ETag', `"${answer.tag}${packed ? '-gz' : ''}"`);
  if (rate !== undefined && rate.limit > 0)
    headers.push(
      'RateLimit-Limit',
      rate.limit,
      'RateLimit-Remaining',
      rate.remaining,
      'RateLimit-Reset',
      rate.resetSeconds,
    );
  if (answer.headers !== undefined) headers.push(...answer.headers);
  if (context.closing) headers.push('Connection', 'close');
  response.writeHead(answer.status, headers as string[]); // node takes numbers too
  if (context.head || body === undefined) response.end();
  else if (answer.ascii && !packed) response.end(body, 'latin1');
  else response.end(body);
  return context.head ? 0 : length;
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
