// Owns what commands share that read another server through the client: naming streams, and telling what went wrong and what to do.
import { type Client, SealpostError } from '@sealpost/client';
import { type FeedId, parseFeedId } from '@sealpost/protocol';
import { asUsage, CommandError, exitCodes, usageError } from './failure.ts';

/** A stream as it is asked for; its name is the feed id where nobody looked it up. */
export type RemoteFeed = { readonly feedId: FeedId; readonly name: string };

/** The streams that were named, by feed id or by name in the server's catalog; all that the user may read where none was. At least one. */
export const findRemoteFeeds = async (
  client: Client,
  url: URL,
  raws: readonly string[],
  signal: AbortSignal,
): Promise<readonly RemoteFeed[]> => {
  const feeds = await explainRemote(url, () => lookUpFeeds(client, raws, signal));
  if (feeds.length > 0) return feeds;
  throw new CommandError(exitCodes.refused, `The user may read no stream of ${url.host}. Ask its operator for access.`);
};

const lookUpFeeds = async (
  client: Client,
  raws: readonly string[],
  signal: AbortSignal,
): Promise<readonly RemoteFeed[]> => {
  const { feeds: catalog } = await client.discovery({ hidden: true }, { signal });
  const nameOf = (feedId: FeedId): string => catalog.find((entry) => entry.feedId === feedId)?.name ?? feedId;
  if (raws.length === 0) {
    const { feeds } = await client.feeds({ signal });
    return feeds.map(({ feedID }) => ({ feedId: parseFeedId(feedID), name: nameOf(parseFeedId(feedID)) }));
  }
  return raws.map((raw) => {
    if (raw.startsWith('0x')) {
      const feedId = asUsage(() => parseFeedId(raw, 'FEED'));
      return { feedId, name: nameOf(feedId) };
    }
    const [found, ...others] = catalog.filter(({ name }) => name.toLowerCase() === raw.toLowerCase());
    if (found !== undefined && others.length === 0) return { feedId: parseFeedId(found.feedId), name: found.name };
    const what = found === undefined ? 'is no stream in the catalog of the server' : 'names several streams';
    throw usageError(`"${raw}" ${what}. Give its feed id.`);
  });
};

/** Runs what talks to a server; its failures become one line that says what to do. */
export const explainRemote = async <T>(url: URL, act: () => Promise<T>): Promise<T> => {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    const refused = error.status !== undefined && error.status < 500;
    const text = `${url.host}: ${error.message} ${error.advice}`.trimEnd();
    throw new CommandError(refused ? exitCodes.refused : exitCodes.unavailable, text, { cause: error });
  }
};
