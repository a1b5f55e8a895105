// What commands share that read another server through the client: how it behaves, naming streams, and telling what went wrong and
// what to do. Which server and which user is credentials.ts.
import { type Client, type ClientOptions, SealpostError } from '@sealpost/client';
import { type CatalogEntry, type FeedId, oneLine, parseFeedId } from '@sealpost/protocol';
import { asUsage, CommandError, exitCodes, interruptedCode } from './failure.ts';
import { formatSecond } from './formats.ts';
import type { Session } from './session.ts';
import { pickStream } from './stream-argument.ts';
import { commandAgent } from './version.ts';

/** How a command's client behaves: it waits where the server asks for it, and what it mends by itself is told on stderr. */
export const clientOptions = (
  { origin }: URL,
  { stderr, nowMs }: Pick<Session, 'stderr' | 'nowMs'>,
): ClientOptions => ({
  baseUrl: origin,
  nowMs,
  retryRateLimited: true,
  userAgent: commandAgent(),
  onWarning: ({ message }) => void stderr.write(`warning: ${oneLine(message)}\n`),
});

/** A stream as it is asked for; its name is the feed id where nobody looked it up. */
export type RemoteFeed = { readonly feedId: FeedId; readonly name: string };

/** The streams that were named, by feed id or by name in the server's catalog; all that the user may read where none was. At least one. */
export const findRemoteFeeds = async (
  client: Client,
  url: URL,
  raws: readonly string[],
  signal: AbortSignal,
): Promise<readonly RemoteFeed[]> => {
  const feeds = await explainRemote(url, () => lookUpFeeds(client, url, raws, signal));
  if (feeds.length > 0) return feeds;
  throw new CommandError(
    exitCodes.refused,
    `This account may not read any stream of ${url.host}. Ask its operator for access.`,
  );
};

const lookUpFeeds = async (
  client: Client,
  url: URL,
  raws: readonly string[],
  signal: AbortSignal,
): Promise<readonly RemoteFeed[]> => {
  const { feeds: catalog } = await client.discovery({ hidden: true }, { signal });
  const nameOf = (feedId: FeedId): string => catalog.find((entry) => entry.feedId === feedId)?.name ?? feedId;
  const feedIds =
    raws.length > 0
      ? raws.map((raw) => pickFeed(raw, catalog, url).feedId)
      : (await client.feeds({ signal })).feeds.map(({ feedID }) => parseFeedId(feedID));
  return feedIds.map((feedId) => ({ feedId, name: nameOf(feedId) }));
};

/** The streams that were named; the catalog is asked for only where a name needs it. */
export const readRemoteFeeds = async (
  client: Client,
  url: URL,
  raws: readonly string[],
  signal: AbortSignal,
): Promise<readonly RemoteFeed[]> => {
  const catalog = raws.every(isFeedId) ? [] : (await client.discovery({ hidden: true }, { signal })).feeds;
  return raws.map((raw) => pickFeed(raw, catalog, url));
};

const isFeedId = (raw: string): boolean => raw.startsWith('0x');

const pickFeed = (raw: string, catalog: readonly CatalogEntry[], url: URL): RemoteFeed => {
  if (isFeedId(raw)) return { feedId: asUsage(() => parseFeedId(raw, 'FEED')), name: raw };
  const { feedId, name } = pickStream(raw, catalog, `sealpost stream list --url ${url.origin}`);
  return { feedId: parseFeedId(feedId), name };
};

/** Runs what talks to a server; its failures become one line that says what to do. */
export const explainRemote = async <T>(url: URL, act: () => Promise<T>): Promise<T> => {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    const { exitCode, problem, advice } = describeRemote(error, url);
    throw new CommandError(exitCode, `${problem} ${advice}`.trimEnd(), { cause: error });
  }
};

/** What a failed call is to whoever sits at the terminal. */
export type RemoteFailure = { readonly exitCode: number; readonly problem: string; readonly advice: string };

/** Says what happened and what to do. A call that was interrupted ends the command instead. */
export const describeRemote = (error: SealpostError, url: URL): RemoteFailure => {
  const { code, message, requestId } = error;
  if (code === 'aborted') throw new CommandError(interruptedCode({ reason: error.cause }), 'Interrupted.');
  const exitCode = exitCodeOf(error);
  const cause = code === 'network_error' ? causeCodeOf(error) : '';
  const [, what, advice] = connectionFailures.find(([pattern]) => pattern.test(cause)) ?? [];
  if (what !== undefined && advice !== undefined)
    return { exitCode, problem: `${url.host} ${what} (${cause}).`, advice };
  const told = message.includes(url.host) ? message : `${url.host}: ${message}`;
  const problem = requestId === undefined ? told : `${code}: ${message} (request ${requestId})`;
  return { exitCode, problem, advice: adviceOn(error).replace(/\bdoctor URL\b/, `doctor ${url.origin}`) };
};

const failuresOnTheWay: readonly string[] = ['network_error', 'timeout', 'unexpected_answer'];

// A 4xx that carries no code of the API comes from something else on the way, and refuses nothing of ours.
const exitCodeOf = ({ code, status }: SealpostError): number => {
  if (failuresOnTheWay.includes(code)) return exitCodes.unavailable;
  if (status === undefined) return exitCodes.usage;
  return status < 500 && !code.startsWith('http_') ? exitCodes.refused : exitCodes.unavailable;
};

/** How Node names a failed connection; empty where it has no name. */
const causeCodeOf = ({ cause }: SealpostError): string => {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  return inner instanceof Error && 'code' in inner ? String(inner.code) : '';
};

/** Codes of a failed connection, as Node and undici name them. The first row that fits counts. */
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

const lookBetween = 'Check the address, and any proxy in front of the server.';

/** Where the client's own advice speaks to programmers. */
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
