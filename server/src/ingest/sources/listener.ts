// Owns the private way in over HTTP: `POST /ingest`, NDJSON both ways, behind a token, on its own address. Never on the public one.
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StoreError } from '../../store/store.ts';
import type { Ingest } from '../ingest.ts';
import { ingestNdjson } from './ndjson.ts';

export type IngestListener = { readonly url: string; readonly close: () => Promise<void> };

export type IngestListenerOptions = {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly token: string;
};

/** A silent sender is cut off after this long between two pieces; whole uploads may take as long as they need. */
const silenceMaxMs = 60_000;

/** Listens until closed; closing lets uploads under way finish their current batches. */
export const openIngestListener = async (ingest: Ingest, options: IngestListenerOptions): Promise<IngestListener> => {
  const server = createServer(
    { requestTimeout: 0, headersTimeout: 10_000, keepAliveTimeout: 5_000 },
    createIngestHandler(ingest, options.token),
  );
  server.setTimeout(silenceMaxMs);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as AddressInfo; // it listens on a port
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return { url: `http://${host}:${port}`, close: () => closeServer(server) };
};

/** Answers requests to `/ingest`, for whichever private listener they reach. */
export const createIngestHandler =
  (ingest: Ingest, token: string) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    void answer(ingest, token, request, response);
  };

const closeServer = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });

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
    if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
    const flushed = response.write(results.map((result) => `${JSON.stringify(result)}\n`).join(''));
    if (!flushed) await drained(response);
  }
  if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
  response.end();
};

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
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
