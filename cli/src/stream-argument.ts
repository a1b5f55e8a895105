// Naming a stream on the command line: by feed ID, by full name, or by pair, in any case (D98). The catalog is the store's or a server's.
import {
  explainMatch,
  type FeedId,
  matchStreams,
  type NamedStream,
  parseFeedId,
  type Stream,
} from '@sealpost/protocol';
import type { Store } from '@sealpost/server/store/store';
import { usageError } from './failure.ts';
import { withStore } from './store-access.ts';

const isFeedId = (raw: string): boolean => /^0x[0-9a-fA-F]{64}$/.test(raw);

/** The help text of an argument that names one stream. */
export const feedForms = 'feed ID, name, or pair such as BTC/USD';

/** Finds one stream of a catalog. `listCommand` shows which streams there are. */
export function pickStream<S extends NamedStream>(
  raw: string,
  streams: readonly S[],
  listCommand = 'sealpost stream list',
): S {
  const match = matchStreams(raw, streams);
  if (match.found === 'one') return match.stream;
  const advice = match.found === 'none' ? ` List streams with: ${listCommand}.` : '';
  throw usageError(`${explainMatch(raw, match)}${advice}`);
}

/** Finds a stream of the store's catalog. */
export const findStream = (streams: readonly Stream[], raw: string): Stream => pickStream(raw, streams);

/** As `findStream`, for reading reports: a feed ID is also good when only reports of it are left. */
export async function findReadableStream(
  { admin, reports }: Store,
  raw: string,
): Promise<{ readonly feedId: FeedId; readonly name: string }> {
  const streams = await admin.list('stream');
  if (isFeedId(raw) && !streams.some(({ feedId }) => feedId === raw.toLowerCase())) {
    const feedId = parseFeedId(raw);
    if (reports.latest(feedId) !== undefined) return { feedId, name: feedId };
  }
  return pickStream(raw, streams);
}

const namesStream = (entitlement: string): boolean => /^feed:(?!0x)./i.test(entitlement);

/** Entitlements with names in `feed:` replaced by feed IDs. The store is opened only where there is a name. */
export async function resolveEntitlements(url: string, raws: readonly string[]): Promise<readonly string[]> {
  if (!raws.some(namesStream)) return raws;
  const streams = await withStore(url, ({ admin }) => admin.list('stream'));
  return raws.map((raw) => (namesStream(raw) ? `feed:${pickStream(raw.slice('feed:'.length), streams).feedId}` : raw));
}
