// For commands that read another server through the client: its options, streams by name, and errors with advice. Server and user are in
// credentials.ts.
import { type Client, type ClientOptions, type ReportPage, SealpostError } from '@sealpost/client';
import { type CatalogEntry, type FeedId, oneLine, parseFeedId, withoutTrailing } from '@sealpost/protocol';
import { asUsage, CommandError, exitCodes, interruptedCode } from './failure.ts';
import { formatSecond } from './formats.ts';
import type { Session } from './session.ts';
import { pickStream } from './stream-argument.ts';
import { commandAgent } from './version.ts';

/** The address of a server: its origin and, behind a proxy with one, a path (D252). */
export const serverAddress = ({ origin, pathname }: URL): string => withoutTrailing(`${origin}${pathname}`, '/');

/** The options of a command's client: it waits when rate-limited, and prints warnings to stderr. */
export const clientOptions = (url: URL, { stderr, nowMs }: Pick<Session, 'stderr' | 'nowMs'>): ClientOptions => ({
  baseUrl: serverAddress(url),
  nowMs,
  retryRateLimited: true,
  userAgent: commandAgent(),
  onWarning: ({ message }) => void stderr.write(`warning: ${oneLine(message)}\n`),
});

/** A requested stream; its name is the feed ID unless the catalog was read. */
export type RemoteFeed = { readonly feedId: FeedId; readonly name: string };

/** The error for an account without a stream. */
export const nothingReadable = ({ host }: URL): CommandError =>
  new CommandError(exitCodes.refused, `This account may not read any stream of ${host}. Ask its operator for access.`);

/** The streams given by feed ID or by name, else all that the user may read; at least one. A server without a catalog is read by feed ID. */
export async function findRemoteFeeds(
  client: Client,
  url: URL,
  raws: readonly string[],
  signal: AbortSignal,
): Promise<readonly RemoteFeed[]> {
  const { feeds: catalog } = await client.discovery({ hidden: true }, { signal }).catch((error: unknown) => {
    if (!(error instanceof SealpostError) || error.code === 'aborted' || !raws.every(isFeedId)) throw error;
    return { feeds: [] };
  });
  const names = new Map(catalog.map(({ feedId, name }) => [feedId, name]));
  const feedIds =
    raws.length > 0
      ? raws.map((raw) => pickFeed(raw, catalog, url).feedId)
      : await readReadableFeeds(client, url, signal);
  return feedIds.map((feedId) => ({ feedId, name: names.get(feedId) ?? feedId }));
}

const readReadableFeeds = async (client: Client, url: URL, signal: AbortSignal): Promise<readonly FeedId[]> => {
  const { feeds } = await client.feeds({ signal }).catch((error: unknown) => {
    if (!(error instanceof SealpostError) || error.code !== 'not_supported') throw error;
    const text = `${url.host} has no list of the streams that you may read. Name the streams.`;
    throw new CommandError(exitCodes.refused, text, { cause: error });
  });
  if (feeds.length === 0) throw nothingReadable(url);
  return feeds.map(({ feedID }) => parseFeedId(feedID));
};

/** The given streams; reads the catalog only if one is given by name. */
export async function readRemoteFeeds(
  client: Client,
  url: URL,
  raws: readonly string[],
  signal: AbortSignal,
): Promise<readonly RemoteFeed[]> {
  const catalog = raws.every(isFeedId) ? [] : (await client.discovery({ hidden: true }, { signal })).feeds;
  return raws.map((raw) => pickFeed(raw, catalog, url));
}

const isFeedId = (raw: string): boolean => raw.startsWith('0x');

const pickFeed = (raw: string, catalog: readonly CatalogEntry[], url: URL): RemoteFeed => {
  if (isFeedId(raw)) return { feedId: asUsage(() => parseFeedId(raw, 'FEED')), name: raw };
  const { feedId, name } = pickStream(raw, catalog, `sealpost stream list --url ${serverAddress(url)}`);
  return { feedId: parseFeedId(feedId), name };
};

/**
 * Pages of a stream, oldest first. Where the server no longer has what was asked for, calls `onGap` with the second that was asked for and the one that it
 * continues at.
 */
export async function* readRemotePages(
  client: Pick<Client, 'pages'>,
  feedId: FeedId,
  { from, to, signal }: { readonly from: number; readonly to: number; readonly signal: AbortSignal },
  onGap: (from: number, to: number) => void,
): AsyncGenerator<ReportPage, void> {
  for (let start = from; start <= to; ) {
    try {
      yield* client.pages(feedId, { from: start, to, signal });
      return;
    } catch (error) {
      const isGone = error instanceof SealpostError && error.code === 'timestamp_out_of_bounds';
      const oldest = isGone ? Number(error.details.oldestTimestamp) : Number.NaN;
      if (!(oldest >= start)) throw error;
      const next = Math.ceil(oldest) + 1; // it moves on while we ask
      onGap(start, next);
      start = next;
    }
  }
}

/** Runs calls to a server; a failure becomes one line that says what to do. */
export async function explainRemote<T>(url: URL, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    const { exitCode, problem, advice } = describeRemote(error, url);
    throw new CommandError(exitCode, `${problem} ${advice}`.trimEnd(), { cause: error });
  }
}

/** A failed call, explained to the user. */
export type RemoteFailure = { readonly exitCode: number; readonly problem: string; readonly advice: string };

/** Says what happened and what to do. A call that was interrupted ends the command instead. */
export function describeRemote(error: SealpostError, url: URL): RemoteFailure {
  const { code, message, requestId } = error;
  if (code === 'aborted') throw new CommandError(interruptedCode({ reason: error.cause }), 'Interrupted.');
  const exitCode = exitCodeOf(error);
  const cause = code === 'network_error' ? causeCodeOf(error) : '';
  const [, what, advice] = connectionFailures.find(([pattern]) => pattern.test(cause)) ?? [];
  if (what !== undefined && advice !== undefined)
    return { exitCode, problem: `${url.host} ${what} (${cause}).`, advice };
  const told = message.includes(url.host) ? message : `${url.host}: ${message}`;
  const problem = requestId === undefined ? told : `${code}: ${message} (request ${requestId})`;
  return { exitCode, problem, advice: adviceOn(error).replace(/\bdoctor URL\b/, `doctor ${serverAddress(url)}`) };
}

const failuresOnTheWay: readonly string[] = ['network_error', 'timeout', 'unexpected_answer'];

// A 4xx without a code of the API comes from a proxy on the way, not from the server.
const exitCodeOf = ({ code, status }: SealpostError): number => {
  if (failuresOnTheWay.includes(code)) return exitCodes.unavailable;
  if (status === undefined) return exitCodes.usage;
  return status < 500 && !code.startsWith('http_') ? exitCodes.refused : exitCodes.unavailable;
};

/** Node's code of a failed connection; empty without one. */
const causeCodeOf = ({ cause }: SealpostError): string => {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  return inner instanceof Error && 'code' in inner ? String(inner.code) : '';
};

/** Codes of failed connections in Node and undici. The first match applies. */
const connectionFailures: readonly (readonly [code: RegExp, problem: string, advice: string])[] = [
  [/^(ENOTFOUND|EAI_\w+)$/, 'could not be resolved', 'Check the host name and the DNS of this machine.'],
  [/^ECONNREFUSED$/, 'refused the connection', 'Start the server, or check host and port.'],
  [/^(E(HOST|NET)UNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'is unreachable', 'Check the network and firewall.'],
  [/^(ERR_SSL_\w+|EPROTO)$/, 'failed the TLS handshake', 'Use http://, or the TLS port.'],
  [
    /CERT|^ERR_TLS_|UNABLE_TO_/,
    'has an invalid certificate',
    'Renew it, use the host name it was issued for, or set NODE_EXTRA_CA_CERTS to its CA.',
  ],
  [/./, 'closed the connection', 'If it uses TLS, use https://; otherwise check its log.'],
];

/** What to do about a server that no request reached; `code` is Node's, empty for a time-out. */
export function explainConnection({ host }: URL, code: string): string {
  const [, what, advice] = connectionFailures.find(([pattern]) => pattern.test(code)) ?? [];
  return what === undefined
    ? `${host} did not answer. Check the address, the server and the network.`
    : `${host} ${what} (${code}). ${advice}`;
}

const lookBetween = 'Check the address, and any proxy in front of the server.';

/** Advice that replaces the client's, which addresses programmers. */
const advices: Readonly<Record<string, string>> = {
  clock_skew: 'Measure it with: sealpost doctor URL.',
  stream_not_accessible: 'See the streams you may read with: sealpost doctor URL.',
  rate_limited: 'Run the command again later.',
  network_error: 'Check the address, the server and the network.',
  timeout: 'Check the server and the network.',
  unexpected_answer: lookBetween,
};

const adviceOn = (error: SealpostError): string => {
  const { code, details, status = 0 } = error;
  if (code === 'report_not_found') return explainNeighbours(details);
  if (details.location !== undefined) return 'Use that address, if you trust it.';
  if (code.startsWith('http_') && status < 500) return lookBetween;
  return advices[code] ?? error.advice;
};

const explainNeighbours = ({ previous, next }: SealpostError['details']): string => {
  const { observationsTimestamp: end } = Object(previous);
  const { validFromTimestamp: begin } = Object(next);
  return [
    ...(Number.isInteger(end) ? [`The previous report is valid to ${formatSecond(end)}.`] : []),
    ...(Number.isInteger(begin) ? [`The next report is valid from ${formatSecond(begin)}.`] : []),
  ].join(' ');
};
