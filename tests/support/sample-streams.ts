// Streams for tests: their IDs and catalog entries. Apart from what signs or stores, so that tests that do neither load in milliseconds.
import { type FeedId, parseFeedId, parseStream, type Stream } from '@sealpost/protocol';

/** The nth test stream, with timestamps in seconds. */
export const secondStream = (n: number): FeedId => parseFeedId(`0x0003${n.toString(16).padStart(60, '0')}`);

/** The nth test stream, with timestamps in milliseconds. */
export const millisecondStream = (n: number): FeedId => parseFeedId(`0x1003${n.toString(16).padStart(60, '0')}`);

/** A catalog entry for a test stream. */
export const testStream = (feedId: FeedId, changes: Partial<Stream> = {}): Stream => ({
  ...parseStream({
    feedId,
    name: `TEST${feedId.slice(-4)}/USD-Streams-CexPrice`,
    assetName: 'Test',
    baseAsset: 'TEST',
    quoteAsset: 'USD',
    assetClass: 'Crypto',
    feedType: 'Crypto',
    attributeType: 'CexPrice',
    marketHours: '24/7',
    serviceLevel: 'standard',
    networkType: 'testnet',
    status: 'live',
    createdAt: '2025-01-01T00:00:00Z',
  }),
  ...changes,
});
