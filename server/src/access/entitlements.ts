// Who may read which stream. An entitlement is `public` (every public stream), `feed:ID` (one stream, hidden or not), or
// `filter:QUERY` (public streams by a discovery query). Being listed is not being entitled; hidden streams go by id only (D13, D61).
import {
  compareStreams,
  type DiscoveryFilter,
  type FeedId,
  malformedArgument,
  matchStream,
  parseFeedId,
  parseQuery,
  type Stream,
} from '@sealpost/protocol';
import type { Account } from '../store/store.ts';

/** Streams by feed id. */
type Streams = ReadonlyMap<FeedId, Stream>;

type Grant =
  | { readonly kind: 'public' }
  | { readonly kind: 'feed'; readonly feedId: FeedId }
  | { readonly kind: 'filter'; readonly filter: DiscoveryFilter };

/** Reads one entitlement, as stored and as typed by an operator. */
export const parseEntitlement = (text: string): Grant => {
  if (text === 'public') return { kind: 'public' };
  if (text.startsWith('feed:')) return { kind: 'feed', feedId: parseFeedId(text.slice(5), 'entitlement') };
  if (text.startsWith('filter:') && text.length > 7)
    return { kind: 'filter', filter: parseQuery('discovery', text.slice(7)) };
  throw malformedArgument(
    'entitlement',
    text,
    'public, feed:FEED_ID or filter:QUERY such as filter:asset_class=Crypto',
  );
};

/** The streams that an account may read. */
export const readableStreams = (entitlements: readonly string[], streams: Streams): ReadonlySet<FeedId> => {
  const readable = new Set<FeedId>();
  for (const grant of entitlements.map(parseEntitlement)) {
    if (grant.kind === 'feed') {
      if (streams.has(grant.feedId)) readable.add(grant.feedId);
      continue;
    }
    for (const stream of streams.values()) {
      if (!stream.hidden && (grant.kind === 'public' || matchStream(grant.filter, stream))) readable.add(stream.feedId);
    }
  }
  return readable;
};

/** The streams that a stored account may read. What cannot be understood there is our fault, so it is no refusal of the caller's. */
export const readableByAccount = (
  { userId, entitlements }: Pick<Account, 'userId' | 'entitlements'>,
  streams: Streams,
): ReadonlySet<FeedId> => {
  try {
    return readableStreams(entitlements, streams);
  } catch (cause) {
    const what = `The entitlements stored for account ${userId} are invalid.`;
    throw new Error(`${what} Set them again with: sealpost account entitle.`, { cause });
  }
};

/**
 * Lists what a caller sees of the catalog: public streams, and with `hidden=true` the hidden ones it may read. By name; a catalog is sorted
 * once, since 2,000 streams take 3 ms.
 */
export const createStreamListing = () => {
  const sorted = new WeakMap<Streams, readonly Stream[]>();
  const byName = (streams: Streams): readonly Stream[] => {
    const known = sorted.get(streams) ?? [...streams.values()].sort(compareStreams);
    sorted.set(streams, known);
    return known;
  };
  return (streams: Streams, filter: DiscoveryFilter, readable: ReadonlySet<FeedId> | undefined): readonly Stream[] =>
    byName(streams).filter(
      (stream) =>
        (!stream.hidden || (filter.hidden === true && readable?.has(stream.feedId) === true)) &&
        matchStream(filter, stream),
    );
};
