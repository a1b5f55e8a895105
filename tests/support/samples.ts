// Streams and an answered request for tests. Apart from what signs or stores, so that tests that do neither load in milliseconds.
import { type FeedId, parseFeedId, parseStream, type Stream } from '@sealpost/protocol';
import type { RequestEvent } from '../../server/src/http/pipeline.ts';

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

/** One answered request as its observers are told of it: a latest report that was read; tests change what they look at. */
export const sampleRequest = (changes: Partial<RequestEvent> = {}): RequestEvent => ({
  kind: 'request',
  requestId: '01890a5d-ac96-774b-bcce-b302099a8057',
  route: 'reportLatest',
  method: 'GET',
  status: 200,
  code: null,
  userId: 'ba2d3a9e-7c1f-4a53-9d0c-0f4f6f2f6a11',
  address: '192.0.2.7',
  bytes: 912,
  durationMs: 0.41239,
  ...changes,
});
