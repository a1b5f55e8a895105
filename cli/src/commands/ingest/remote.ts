// Sending lines to a running server's private listener: NDJSON up and down over one request, results in order.
import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { withoutTrailing } from '@sealpost/protocol';
import { type ResolvedSettings, type SettingSource, settingsTable } from '@sealpost/server/config/config';
import type { MirrorPlace, MirrorRequest } from '@sealpost/server/ingest/mirror';
import { afterRejection } from '@sealpost/server/ingest/rejections';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import { parseMirrorPlaces, renderMirrorRequest } from '@sealpost/server/ingest/sources/mirror-json';
import { anySignal } from '@sealpost/server/runtime/deadline';
import { CommandError, exitCodes, usageError } from '../../failure.ts';
import { readPrivateFile } from '../../private-file.ts';
import { commandAgent } from '../../version.ts';
import { createSentLines, type SentLines } from './sent-lines.ts';

const again = 'Then run the command again: stored reports are recognized.';

/** A transient failure of the server or the network: a retry may succeed. */
export class TransientError extends CommandError {
  /** What happened, without what to do about it. */
  readonly problem: string;

  constructor(problem: string, advice = again) {
    super(exitCodes.unavailable, `${problem} ${advice}`.trimEnd());
    this.problem = problem;
  }
}

export type IngestTarget = { readonly url: URL; readonly token: string };

/** Reads the address of a listener and adds its path. */
export function parseIngestUrl(raw: string, token: string | undefined): IngestTarget {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  // The value is not repeated: it may have a password.
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    throw usageError(
      '--to is not the address of a server’s private listener. Expected an address such as http://127.0.0.1:7402.',
    );
  if (url.username !== '' || url.password !== '')
    throw usageError('--to has a user name or password, which the private listener does not use. Leave them out.');
  if (token === undefined)
    throw usageError('--to needs the server’s ingest token. Set --ingest-token-file FILE or SEALPOST_INGEST_TOKEN.');
  url.pathname = `${withoutTrailing(url.pathname, '/')}/ingest`;
  return { url, token };
}

/** A connection on which nothing moves for so long is given up: our own listener closes it after 60 s. */
const silenceMsDefault = 90_000;

/** An empty line this often keeps a quiet connection open: our own listener closes one that is silent for 60 s. */
const heartbeatMsDefault = 15_000;

export type SendOptions = {
  readonly silenceMs?: number;
  readonly heartbeatMs?: number;
  /** Has the server hold back what follows a rejected report of a stream. Version 0.1 ignores this. */
  readonly isResuming?: boolean;
};

/**
 * Sends lines and yields results as they come. Fails with what the server or the network says, and what to do about it; with a
 * `TransientError` where trying again may help. Aborting the signal breaks the connection.
 */
export async function* sendLines(
  { url, token }: IngestTarget,
  lines: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
  { silenceMs = silenceMsDefault, heartbeatMs = heartbeatMsDefault, isResuming = false }: SendOptions = {},
): AsyncGenerator<readonly LineResult[]> {
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const headers = {
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/x-ndjson',
    'User-Agent': commandAgent(),
    ...(isResuming && { [afterRejection.header]: afterRejection.hold }),
    Expect: '100-continue', // so that a rejection arrives before the body is sent, not as a broken connection
  };
  const request = open(url, { method: 'POST', headers });
  const sent = createSentLines();
  const sending = { failure: undefined as unknown }; // set when sending fails
  const onAbort = (): void => void request.destroy(new Error('the server did not respond in time'));
  request.setTimeout(silenceMs, onAbort);
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort);
  const heart = setInterval(() => {
    const beat = request.headersSent ? sent.heartbeat() : undefined;
    if (beat !== undefined) request.write(beat);
  }, heartbeatMs);
  try {
    const response = await exchange(request, lines, sent, sending);
    if (response.statusCode !== 200) throw await explainStatus(response, url);
    for await (const results of readResults(response, url)) {
      yield results.map((result) => ({ ...result, line: sent.settle(result.line) }));
    }
    if (!sent.isSettled()) throw unacknowledged(url);
  } catch (error) {
    throw sending.failure ?? (error instanceof CommandError ? error : explainConnection(error, url));
  } finally {
    clearInterval(heart);
    signal?.removeEventListener('abort', onAbort);
    request.destroy();
  }
}

const continueWaitMs = 1_000;

/** Starts sending after 100 Continue, or after a second without an answer; resolves with the response, which may arrive while sending. */
const exchange = async (
  request: ClientRequest,
  lines: AsyncIterable<Uint8Array>,
  sent: SentLines,
  sending: { failure: unknown },
): Promise<IncomingMessage> => {
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).on('error', reject);
  });
  const agreed = new Promise<undefined>((resolve) => {
    request.once('continue', () => setImmediate(resolve, undefined)); // a rejection may follow immediately
    setTimeout(resolve, continueWaitMs, undefined).unref();
  });
  const early = await Promise.race([response, agreed]);
  if (early === undefined || early.statusCode === 200) {
    send(request, lines, sent).catch((error: unknown) => {
      sending.failure = error;
      request.destroy();
    });
  }
  return response;
};

const send = async (request: ClientRequest, lines: AsyncIterable<Uint8Array>, sent: SentLines): Promise<void> => {
  const closed = new AbortController();
  request.once('close', () => closed.abort());
  for await (const bytes of lines) {
    if (request.destroyed) return; // the answer says why
    sent.add(bytes);
    if (!request.write(bytes)) await once(request, 'drain', { signal: closed.signal }).catch(() => {});
  }
  sent.end();
  request.end();
};

/** Characters of one result; our own listener sends fewer. */
const resultCharactersMax = 65_536;

async function* readResults(response: IncomingMessage, url: URL): AsyncGenerator<readonly LineResult[]> {
  let rest = '';
  response.setEncoding('utf8');
  for await (const chunk of response) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    const parsed = lines.map((line) => parseResult(line, url));
    yield parsed.flatMap((one) => (one instanceof CommandError ? [] : [one]));
    const failure = parsed.find((one) => one instanceof CommandError);
    if (failure !== undefined) throw failure;
    if (rest.length > resultCharactersMax) throw foreignResults(url);
  }
  if (rest !== '') throw explainConnection(new Error('it ended in the middle of a line'), url);
}

/** A result, or what to say when a line is none. */
const parseResult = (line: string, url: URL): LineResult | CommandError => {
  const value = parseJson(line);
  if (typeof value.error === 'string')
    return new TransientError(`The server at ${url.host} failed during ingest: ${value.error}`);
  if (typeof value.line === 'number' && typeof value.result === 'string') return value as LineResult; // a result of our own listener
  return foreignResults(url);
};

const foreignResults = ({ origin, pathname }: URL): CommandError =>
  unavailable(`${origin}${pathname} did not return ingest results. Use the address of the private listener.`);

/** For an answer that ends before the lines do: another kind of server, or something between that cut it. */
const unacknowledged = ({ host }: URL): CommandError =>
  new TransientError(
    `The server at ${host} did not acknowledge every line.`,
    `Check that --to is the address of its private listener. ${again}`,
  );

const parseJson = (line: string): Readonly<Record<string, unknown>> => {
  try {
    return Object(JSON.parse(line));
  } catch {
    return {};
  }
};

const unavailable = (message: string) => new CommandError(exitCodes.unavailable, message);

/** So much of an error answer is read, for so long: its status says the rest. */
const errorBytesMax = 65_536;
const errorMaxMs = 2_000;

const explainStatus = async (response: IncomingMessage, url: URL): Promise<CommandError> =>
  explainAnswer(response.statusCode ?? 0, await readError(response), url);

const readError = async (response: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  const timer = setTimeout(() => void response.destroy(), errorMaxMs);
  await collect(response, errorBytesMax, chunks).catch(() => {}); // cut short: what arrived is used
  clearTimeout(timer);
  return Buffer.concat(chunks).toString('utf8');
};

/** Adds a body to the chunks, up to the first chunk that exceeds the limit. */
const collect = async (response: IncomingMessage, bytesMax: number, chunks: Buffer[]): Promise<void> => {
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bytesMax) return;
  }
};

/** Also for a public listener, which reads no body, and for a server that does not know the path yet. */
const explainRefusal = (status: number, body: string, url: URL): CommandError => {
  const isForeign = [404, 405].includes(status) || (status === 400 && parseJson(body).code !== 'malformed_argument');
  if (!isForeign) return explainAnswer(status, body, url);
  return unavailable(
    `${url.host} does not support POST /ingest/resume (${status}). Use the address of the server’s private listener (opsListen), or upgrade the server.`,
  );
};

const explainAnswer = (status: number, body: string, { host }: URL): CommandError => {
  const { error, code } = parseJson(body);
  const said = typeof error === 'string' ? error : `It returned ${status}.`;
  if (status === 401)
    return unavailable(
      `The server at ${host} rejected the token. Set the server’s token: --ingest-token-file FILE or SEALPOST_INGEST_TOKEN.`,
    );
  // The public API rejects the body before it looks at the path.
  if (status === 404 || status === 405 || code === 'unexpected_body')
    return unavailable(
      `${host} does not accept reports. Use the address of the server’s private listener (opsListen), and start the server with an ingest token.`,
    );
  if (status === 507) return new TransientError(`The server at ${host} is out of disk space: ${said}`);
  if (status === 503)
    return new TransientError(`The server at ${host} cannot accept reports now: ${said}`, `Wait a moment. ${again}`);
  const [failed, advice] = [`The server at ${host} failed: ${said}`, `Check its log. ${again}`];
  return status >= 500 ? new TransientError(failed, advice) : unavailable(`${failed} ${advice}`);
};

const explainConnection = (error: unknown, { host }: URL): CommandError => {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND')
    return new TransientError(`No server at ${host} (${code}).`, 'Start it, or check --to.');
  const what = (error instanceof Error ? error.message : String(error)).replace(/\s+/g, ' ').trim(); // OpenSSL's has several lines
  if (/wrong version number|packet length too long/.test(what))
    // the answer was no TLS; which of the two depends on the release
    return unavailable(`The server at ${host} does not use TLS. Use http://, on one machine or inside a tunnel.`);
  return new TransientError(`The connection to ${host} was lost: ${what}.`);
};

/** An answer takes this long at most. */
const answerMaxMs = 15_000;
/** Longest answer: 10,000 streams of at most 200 bytes, twice. */
const placesBytesMax = 4_194_304;

/** Asks the server where each stream of a mirror resumes. Fails as `sendLines` does. */
export async function askPlaces(
  { url, token }: IngestTarget,
  request: MirrorRequest,
  signal: AbortSignal,
): Promise<readonly MirrorPlace[]> {
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const options = { method: 'POST', headers, signal: anySignal([signal, AbortSignal.timeout(answerMaxMs)]) };
  const path = `${url.href}/resume`;
  try {
    const asked = open(path, options).end(renderMirrorRequest(request));
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      asked.once('response', resolve).on('error', reject);
    });
    const { statusCode = 0 } = response;
    if (statusCode !== 200) throw explainRefusal(statusCode, await readError(response), url);
    const chunks: Buffer[] = [];
    await collect(response, placesBytesMax, chunks);
    const places = parseMirrorPlaces(Buffer.concat(chunks).toString('utf8'), request.feedIds);
    if (places === undefined)
      throw unavailable(`${path} did not return the positions of a mirror. Use the address of the private listener.`);
    return places;
  } catch (error) {
    throw error instanceof CommandError ? error : explainConnection(error, url);
  }
}

const precedence: readonly SettingSource[] = ['flag', 'environment', 'file', 'default'];

/** The token; undefined when none is set. Of token and token file, the one from the earlier source counts. */
export async function readIngestToken({ values, sources }: ResolvedSettings): Promise<string | undefined> {
  const { ingestToken: token, ingestTokenFile: path } = values;
  const rank = (source: SettingSource) => precedence.indexOf(source);
  const fileComesFirst = token === undefined || rank(sources.ingestTokenFile) < rank(sources.ingestToken);
  if (path === undefined || !fileComesFirst) return token;
  const text = await readPrivateFile(path);
  const { parse, expected } = settingsTable.ingestToken;
  const read = parse(text.trim());
  if (read === undefined) throw usageError(`${path} does not contain an ingest token, expected ${expected}.`);
  return read;
}
