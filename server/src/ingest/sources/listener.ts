// Ingest over HTTP on the private listener, behind a token: `POST /ingest`, NDJSON both ways, and `POST /ingest/resume`, which tells a mirror where each
// stream resumes (D102). ops/ops.ts opens the listener.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '@sealpost/protocol';
import { noteAnswer } from '../../connections/connection-limits.ts';
import { continueIfAsked } from '../../runtime/expectation.ts';
import { StoreError } from '../../store/store.ts';
import { createResumingSender, type Ingest } from '../ingest.ts';
import type { MirrorPlace, MirrorRequest } from '../mirror.ts';
import { afterRejection } from '../rejections.ts';
import { parseMirrorRequest, renderMirrorPlaces, resumeBytesMax } from './mirror-json.ts';
import { ingestNdjson } from './ndjson.ts';

export type IngestHandlerParts = {
  readonly ingest: Ingest;
  readonly token: string;
  /** Called with the address of a sender whose token is wrong. */
  readonly rejected: (address: string) => void;
  readonly resume: (request: MirrorRequest) => Promise<readonly MirrorPlace[]>;
  /** Aborted when the node stops: open requests are answered for what they sent so far, and end. */
  readonly stopping: AbortSignal;
};

type Refuse = (status: number, code: string, message: string, headers?: Readonly<Record<string, string>>) => void;

/** Answers requests to `/ingest` and below that reach the private listener. Resolves when one is answered, or its client gone. */
export const createIngestHandler =
  (parts: IngestHandlerParts) =>
  (request: IncomingMessage, response: ServerResponse): Promise<void> =>
    answer(parts, request, response);

const answer = async (parts: IngestHandlerParts, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const refuse: Refuse = (status, code, message, headers = {}) => {
    const body = Buffer.from(`${JSON.stringify({ error: message, code })}\n`);
    const length = { 'Content-Type': 'application/json', 'Content-Length': body.length };
    response.writeHead(status, { ...length, Connection: 'close', ...headers });
    response.write(body); // all of it; the connection stays until the client has it
    dropRest(request, () => response.end(() => void request.destroy()));
  };
  const act = request.url === '/ingest' ? streamResults : request.url === '/ingest/resume' ? answerResume : undefined;
  if (act === undefined) return refuse(404, 'route_not_found', 'The paths here are /ingest and /ingest/resume.');
  if (request.method !== 'POST') return refuse(405, 'method_not_allowed', 'Use POST.', { Allow: 'POST' });
  if (!isToken(request.headers.authorization, parts.token)) {
    parts.rejected(request.socket.remoteAddress ?? '');
    return refuse(401, 'unauthorized', 'Send the ingest token as Authorization: Bearer TOKEN.');
  }
  if (isEncoded(request)) {
    const headers = { 'Accept-Encoding': 'identity' };
    return refuse(
      415,
      'unsupported_encoding',
      'The body is compressed. Send NDJSON without Content-Encoding.',
      headers,
    );
  }
  noteAnswer(request.socket, 'ingest'); // who shows the token is not dropped for strangers
  continueIfAsked(request, response);
  try {
    await act(parts, request, response);
  } catch (error) {
    const { status, code, message } = explain(error);
    if (!response.headersSent) refuse(status, code, message, status === 503 ? { 'Retry-After': '1' } : {});
    else
      response.end(`${JSON.stringify({ error: message, code })}\n`, () => dropRest(request, () => request.destroy()));
  }
};

/**
 * How long a client that is rejected may continue to send. A connection that is closed with bytes that nobody has read is reset, and the answer may be lost with
 * it: the client would see a failure of the network, and retry.
 */
const dropMaxMs = 1_000;

/** Reads and drops what a client still sends, until it is done, leaves, or its time is over. */
const dropRest = (request: IncomingMessage, onEnd: () => void): void => {
  const finish = (): void => {
    clearTimeout(timer);
    request.off('end', finish).off('close', finish);
    onEnd();
  };
  const timer = setTimeout(finish, dropMaxMs);
  if (request.readableEnded || request.destroyed) return void finish();
  request.on('end', finish).on('close', finish);
  request.removeAllListeners('readable').resume(); // those of whoever has read so far
};

// Hashed first, so that the comparison takes the same time for a token of any length.
const isToken = (header: string | undefined, token: string): boolean => {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(header ?? ''), digest(`Bearer ${token}`));
};

// Compressed bytes are not lines: each would be rejected, and displace useful lines from quarantine.
const isEncoded = ({ headers }: IncomingMessage): boolean =>
  `${headers['content-encoding'] ?? ''},${headers['transfer-encoding'] ?? ''}`
    .split(',')
    .some((coding) => !['', 'identity', 'chunked'].includes(coding.trim().toLowerCase()));

// The status goes out with the first results: a store that fails at once can still be answered with the right one.
const streamResults = async (
  { ingest, stopping }: IngestHandlerParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const isResuming = request.headers[afterRejection.header.toLowerCase()] === afterRejection.hold;
  const sender = isResuming ? createResumingSender() : {};
  response.once('close', () => ingest.leave(sender)); // what is stored by then stays
  for await (const results of ingestNdjson(ingest, readUntil(keptOpen(request), stopping), stopping, sender)) {
    if (response.destroyed) return;
    if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
    const flushed = response.write(results.map((result) => `${JSON.stringify(result)}\n`).join(''));
    if (!flushed) await drained(response);
  }
  if (stopping.aborted) throw new StoreError('store_stopped', 'This node is shutting down.');
  if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
  response.end();
};

/** The bytes of a request; who stops reading them does not close the connection, which is still to be answered on. */
const keptOpen = (request: IncomingMessage) => request.iterator({ destroyOnReturn: false });

/** The bytes of a request, up to its end or until the signal is aborted. */
export async function* readUntil(request: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const chunks = request[Symbol.asyncIterator]();
  let stop = (): void => {};
  const onAbort = (): void => stop();
  signal.addEventListener('abort', onAbort);
  try {
    for (;;) {
      // A new promise for each chunk: racing one that lives as long as the request would leave a handler on it each time.
      const read = await new Promise<IteratorResult<Uint8Array> | undefined>((resolve, reject) => {
        stop = () => resolve(undefined);
        if (signal.aborted) stop();
        chunks.next().then(resolve, reject);
      });
      if (read === undefined || read.done) return;
      yield read.value;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

const answerResume = async (
  { resume }: IngestHandlerParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const places = await resume(parseMirrorRequest(await readBody(request)));
  response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  response.end(`${renderMirrorPlaces(places)}\n`);
};

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of keptOpen(request)) {
    bytes += chunk.length;
    if (bytes > resumeBytesMax) throw new ApiError('malformed_argument', `The body exceeds ${resumeBytesMax} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

/** Resolves at once for a client that has left: the event is not emitted again. */
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
  if (error instanceof ApiError) return { status: 400, code: error.code, message: error.message };
  if (!(error instanceof StoreError)) return { status: 500, code: 'internal_error', message: 'Unexpected error.' };
  const { code, message } = error;
  return { status: code === 'store_disk_full' ? 507 : 503, code, message };
};
