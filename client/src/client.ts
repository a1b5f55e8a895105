// Owns the everyday client: one object, a function for each call. What each does is in the file of the call.

import { type DiscoveryFilters, discovery } from './discovery.ts';
import { createLatestMany } from './latest-many.ts';
import { type ClientOptions, readOptions } from './options.ts';
import { type PagesOptions, pages } from './pages.ts';
import { at, bulk, candles, coverage, feeds, latest, page, type Span, signers, status, time } from './reads.ts';
import type { CallOptions, Requester } from './requester.ts';
import { createRequester } from './signed-requester.ts';
import { type StreamOptions, stream } from './stream.ts';

/** Makes a client. Wrong options throw here, and nothing is sent yet. The secret cannot be read back from what it returns. */
export const createClient = (options: ClientOptions) => {
  const settings = readOptions(options);
  const requester: Requester = createRequester(settings);
  const latestMany = createLatestMany(requester, settings.sleep, () => performance.now());
  return Object.freeze({
    /** The newest report of a stream. */
    latest: (feedId: string, call?: CallOptions) => latest(requester, feedId, call),
    /**
     * The newest reports of several streams; streams without one are in `missing`. One request for 100 streams where the server has the
     * extension, elsewhere one for each, in the pace of the account's rate limit. `timeoutMs` is for all of them, without it for each.
     */
    latestMany: (feedIds: readonly string[], call?: CallOptions) => latestMany(feedIds, call),
    /** The report whose window holds a second; where none does, the error's details say why and what lies around it. */
    at: (feedId: string, timestamp: number, call?: CallOptions) => at(requester, feedId, timestamp, call),
    /** The reports of several streams at a second; streams without one are in `missing`. */
    bulk: (feedIds: readonly string[], timestamp: number, call?: CallOptions) =>
      bulk(requester, feedIds, timestamp, call),
    /** Reports of one stream, oldest first, from a second on; 10 unless `limit` says otherwise, 1,000 at most. */
    page: (feedId: string, startTimestamp: number, limit?: number, call?: CallOptions) =>
      page(requester, feedId, startTimestamp, limit, call),
    /** A span of a stream, page by page; with `follow` it goes on with the present. */
    pages: (feedId: string, span: PagesOptions) => pages(requester, feedId, span, settings.sleep),
    /** Reports of these streams as they come, each once and in order; from a second of the past on, where `from` is given. */
    stream: (feedIds: readonly string[], live?: StreamOptions) => stream(requester, feedIds, live),
    /** The catalog, filtered. Works without credentials. */
    discovery: (filters?: DiscoveryFilters, call?: CallOptions) => discovery(requester, filters, call),
    /** Feed ids of the streams that this account may read. */
    feeds: (call?: CallOptions) => feeds(requester, call),
    /** Gaps and completeness of a stream in a span of at most a day. */
    coverage: (feedId: string, span: Span, call?: CallOptions) => coverage(requester, feedId, span, call),
    /** Open, high, low and close, in buckets of 60, 300 or 3600 seconds. */
    candles: (feedId: string, span: Span & { readonly resolution: number }, call?: CallOptions) =>
      candles(requester, feedId, span, call),
    /** The signer sets that reports verify against. Works without credentials. */
    signers: (call?: CallOptions) => signers(requester, call),
    /** The server's clock. Works without credentials. */
    time: (call?: CallOptions) => time(requester, call),
    /** How the service is. Works without credentials. */
    status: (call?: CallOptions) => status(requester, call),
  });
};

export type Client = ReturnType<typeof createClient>;
