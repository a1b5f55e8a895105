// Owns the private way in over HTTP: `POST /ingest`, NDJSON both ways, behind a token. The listener itself is ops.ts, never the
// public one.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { noteAnswer } from '../../connections/guard.ts';
import { StoreError } from '../../store/store.ts';
import type { Ingest } from '../ingest.ts';
import { ingestNdjson } from './ndjson.ts';

/** Answers requests to `/ingest` that reach the private listener. Resolves when one is answered, or its client gone. */
export const createIngestHandler =
  (ingest: Ingest, token: string) =>
  (request: IncomingMessage, response: ServerResponse): Promise<void> =>
    answer(ingest, token, request, response);

const answer = async (
  ingest: Ingest,
  token: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const refuse = (status: number, code: string, message: string, headers: Record<string, string> = {}): void => {
    response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close', ...headers });
    response.end(`${JSON.stringify({ error: message, code })}\n`);
    request.destroy();
  };
  if (request.url !== '/ingest') return refuse(404, 'route_not_found', 'The one path here is /ingest.');
  if (request.method !== 'POST') return refuse(405, 'method_not_allowed', 'Send reports with POST.', { Allow: 'POST' });
  if (!isToken(request.headers.authorization, token)) {
    return refuse(401, 'unauthorized', 'Send the ingest token as Authorization: Bearer TOKEN.');
  }
  noteAnswer(request.socket, 'ingest'); // who shows the token is not dropped for strangers
  try {
    await streamResults(ingest, request, response);
  } catch (error) {
    const { status, code, message } = explain(error);
    if (!response.headersSent) refuse(status, code, message, status === 503 ? { 'Retry-After': '1' } : {});
    else response.end(`${JSON.stringify({ error: message, code })}\n`);
  }
};

// Hashed first, so that the comparison takes the same time for a token of any length.
const isToken = (header: string | undefined, token: string): boolean => {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(header ?? ''), digest(`Bearer ${token}`));
};

// The status goes out with the first results: a store that fails at once can still be answered with the right one.
const streamResults = async (ingest: Ingest, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  for await (const results of ingestNdjson(ingest, request)) {
    if (response.destroyed) return; // nobody is left to be told; what was stored stays
    if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
    const flushed = response.write(results.map((result) => `${JSON.stringify(result)}\n`).join(''));
    if (!flushed) await drained(response);
  }
  if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
  response.end();
};

/** Resolves at once for a client that has left: no event tells of it a second time. */
const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    if (response.destroyed) return resolve();
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });

const explain = (error: unknown): { status: number; code: string; message: string } => {
  if (!(error instanceof StoreError)) return { status: 500, code: 'internal_error', message: 'Unexpected condition.' };
  const { code, message } = error;
  return { status: code === 'store_disk_full' ? 507 : 503, code, message };
};
