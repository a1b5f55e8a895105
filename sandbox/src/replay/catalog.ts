// The catalog of replayed streams: from a file, from the simulated streams, or made up from the feed ID.
import { compareStreams, type FeedId, parseStream, type Stream, schemaVersionOf } from '@sealpost/protocol';
import { createStreams } from '@sealpost/simulator';

/** A stream for each feed ID, in catalog order. All are live, and of the sandbox's network. */
export function catalogOf(feedIds: readonly FeedId[], given: readonly Stream[]): readonly Stream[] {
  const simulated = [...createStreams('testnet'), ...createStreams('mainnet')].map(({ stream }) => stream);
  const known = new Map([...simulated, ...given].map((stream) => [stream.feedId, stream]));
  return feedIds
    .map(
      (feedId) =>
        ({
          ...(known.get(feedId) ?? unknownStream(feedId)),
          networkType: 'testnet',
          status: 'live',
          decommissionedAt: null,
        }) as const,
    )
    .sort(compareStreams);
}

const unknownStream = (feedId: FeedId): Stream => {
  const baseAsset = feedId.slice(2, 14).toUpperCase();
  return parseStream({
    feedId,
    name: `${baseAsset}/USD-Streams-V${schemaVersionOf(feedId)}`,
    assetName: `Feed ${feedId.slice(0, 14)}`,
    baseAsset,
    quoteAsset: 'USD',
    assetClass: 'Replayed',
    feedType: 'Replayed',
    attributeType: `V${schemaVersionOf(feedId)}`,
    marketHours: '24/7',
    serviceLevel: 'standard',
    networkType: 'testnet',
    status: 'live',
    createdAt: '2024-01-01T00:00:00Z',
  });
};
