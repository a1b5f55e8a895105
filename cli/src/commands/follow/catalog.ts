// Which streams a mirror copies, and what it registers at the target before: catalog entries and signer sets of the other server, or of files
// where the other server publishes none (D103).
import { type Client, SealpostError } from '@sealpost/client';
import {
  ApiError,
  type FeedId,
  type NamedStream,
  type NetworkType,
  parseCatalog,
  parseFeedId,
  parseSignerSets,
  parseStream,
  type SignerSet,
  type Stream,
  timeResolutionOf,
} from '@sealpost/protocol';
import type { AdminStore } from '@sealpost/server/store/store';
import { type RawOptions, readJsonFile } from '../../command-options.ts';
import { asUsage, CommandError, exitCodes } from '../../failure.ts';
import { nothingReadable, serverAddress } from '../../remote-client.ts';
import type { Session } from '../../session.ts';
import { pickStream } from '../../stream-argument.ts';
import { registerSignerSets } from '../signers.ts';
import { registerStreams, requireNetwork } from '../stream.ts';

/** Changes streams and signer sets of the target. */
export type Administer = <T>(act: (admin: AdminStore) => Promise<T>) => Promise<T>;

export type MirrorCatalog = {
  /** The streams to copy as of now: those that were named, else those of the catalog file, else all that the user may read. */
  readonly feeds: () => Promise<readonly FeedId[]>;
  /** Is anything registered at the target? */
  readonly registers: boolean;
  /**
   * Registers streams and signer sets at the target, and updates known ones, once they are read: a target may be made by its first change. A stream that is decommissioned at the source is
   * registered as live, because its reports would be rejected; returns those.
   */
  readonly register: (administer: Administer, feedIds: readonly FeedId[]) => Promise<readonly Stream[]>;
  /** Registers the end of streams whose every report is copied. */
  readonly end: (admin: AdminStore, streams: readonly Stream[]) => Promise<void>;
};

export type MirrorCatalogParts = {
  readonly session: Pick<Session, 'nowMs' | 'actor'>;
  readonly client: Client;
  readonly url: URL;
  readonly network: NetworkType;
  readonly signal: AbortSignal;
};

/** Reads what the options say; files are read once, the other server is asked every time. */
export async function openMirrorCatalog(
  { session, client, url, network, signal }: MirrorCatalogParts,
  raws: readonly string[],
  { adopt = false, catalog, signers }: RawOptions,
): Promise<MirrorCatalog> {
  const read = async <T>(file: unknown, parse: (raw: unknown, at: string) => T): Promise<T | undefined> =>
    typeof file === 'string' ? asUsage(parse.bind(undefined, await readJsonFile(file), file)) : undefined;
  const catalogFile = await read(catalog, parseCatalog);
  const signersFile = await read(signers, parseSignerSets);
  // Without a check of names: they are the source's, where another stream may have taken that of one whose end is not copied yet.
  const how = { network, detail: { source: url.host } };
  const entries = async (): Promise<ReadonlyMap<FeedId, Stream> | undefined> => {
    const list = catalogFile ?? (adopt ? await readRemoteCatalog(client, url, signal) : undefined);
    return list && new Map(list.map((stream) => [stream.feedId, stream]));
  };
  const sets = async (): Promise<readonly SignerSet[]> =>
    signersFile ? [...signersFile.values()] : adopt ? readRemoteSigners(client, url, signal) : [];
  return {
    feeds: () => listFeeds(client, url, raws, catalogFile, signal),
    registers: adopt === true || catalogFile !== undefined || signersFile !== undefined,
    register: async (administer, feedIds) => {
      const known = await entries();
      // One without a time resolution cannot be registered, and is warned about like any that is not; the others are mirrored.
      const asked = feedIds.filter((feedId) => timeResolutionOf(feedId) !== undefined);
      const wanted = known === undefined ? [] : asked.map((feedId) => known.get(feedId) ?? missingEntry(feedId, url));
      requireNetwork(wanted, network);
      const registered = await sets();
      return administer(async (admin) => {
        const before = new Map((await admin.list('stream')).map((stream) => [stream.feedId, stream]));
        const isEnding = ({ feedId, status }: Stream) =>
          status === 'decommissioned' && before.get(feedId)?.status !== 'decommissioned';
        const open = wanted.map(
          (stream): Stream => (isEnding(stream) ? { ...stream, status: 'live', decommissionedAt: null } : stream),
        );
        if (open.length > 0) await registerStreams(session, admin, open, how);
        if (registered.length > 0) await registerSignerSets(session, admin, registered, how.detail);
        return wanted.filter(isEnding);
      });
    },
    end: async (admin, streams) => void (await registerStreams(session, admin, streams, how)),
  };
}

const refused = (message: string, cause?: unknown) =>
  new CommandError(exitCodes.refused, message, cause === undefined ? {} : { cause });

const missingEntry = (feedId: FeedId, { host }: URL): never => {
  throw refused(`The catalog of ${host} does not list ${feedId}. Add its entry with --catalog FILE.`);
};

/** True where a server answers, but not with what was asked for: it does not have this operation. */
const isMissing = (error: unknown): boolean =>
  error instanceof SealpostError &&
  (error.code === 'unexpected_answer' || [404, 405, 501].includes(error.status ?? 0)) &&
  error.status !== undefined;

const listFeeds = async (
  client: Client,
  url: URL,
  raws: readonly string[],
  file: readonly Stream[] | undefined,
  signal: AbortSignal,
): Promise<readonly FeedId[]> => {
  const isFeedId = (raw: string) => raw.startsWith('0x');
  const named = raws.filter((raw) => !isFeedId(raw));
  const catalog: readonly NamedStream[] =
    named.length === 0 ? [] : (file ?? (await readRemoteNames(client, url, signal)));
  const find = (raw: string): FeedId =>
    isFeedId(raw)
      ? asUsage(() => parseFeedId(raw, 'FEED'))
      : parseFeedId(pickStream(raw, catalog, `sealpost stream list --url ${serverAddress(url)}`).feedId);
  const listed =
    raws.length > 0 ? raws.map(find) : (file?.map(({ feedId }) => feedId) ?? (await readFeeds(client, url, signal)));
  const feedIds = [...new Set(listed)];
  if (feedIds.length > 0) return feedIds;
  throw nothingReadable(url);
};

/** All that the user may read; at a server that does not say that, all that it lists. */
const readFeeds = async (client: Client, url: URL, signal: AbortSignal): Promise<readonly FeedId[]> => {
  try {
    return (await client.feeds({ signal })).feeds.map(({ feedID }) => parseFeedId(feedID));
  } catch (error) {
    if (!isMissing(error)) throw error;
    return (await readRemoteNames(client, url, signal)).map(({ feedId }) => parseFeedId(feedId));
  }
};

const readRemoteNames = async (client: Client, { host }: URL, signal: AbortSignal) => {
  try {
    return (await client.discovery({ hidden: true }, { signal })).feeds;
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw refused(`${host} does not list its streams. Pass feed IDs, or use --catalog FILE.`, error);
  }
};

const readRemoteCatalog = async (client: Client, url: URL, signal: AbortSignal): Promise<readonly Stream[]> => {
  const entries = await readRemoteNames(client, url, signal);
  try {
    return entries.map((entry) => parseStream(entry));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw refused(`${url.host} lists streams with missing fields (${error.message}) Use --catalog FILE.`, error);
  }
};

const readRemoteSigners = async (client: Client, { host }: URL, signal: AbortSignal): Promise<readonly SignerSet[]> => {
  try {
    return [...parseSignerSets((await client.signers({ signal })).signers).values()];
  } catch (error) {
    if (!isMissing(error) && !(error instanceof ApiError)) throw error;
    throw refused(`${host} does not publish its signer sets. Use --signers FILE.`, error);
  }
};
