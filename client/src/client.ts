// The client: one object with a function for each call.
import { type DiscoveryFilters, discovery } from './discovery.ts';
import { createLatestMany } from './latest-many.ts';
import { type ClientOptions, readOptions } from './options.ts';
import { type PagesOptions, pages } from './pages.ts';
import {
  at,
  bulk,
  type CandleRange,
  candles,
  candlesMany,
  coverage,
  coverageMany,
  feeds,
  latest,
  page,
  signers,
  status,
  type TimeRange,
  time,
} from './reads.ts';
import { type CallOptions, withRest } from './request/call.ts';
import { createRequester, type Requester } from './request/requester.ts';
import { streamByName } from './stream/named-stream.ts';
import { observeStream, openStream, type ReportStream, type StreamOptions, stream } from './stream/stream.ts';
import { createStreamLookup, isStreamName, type StreamLookup } from './stream-lookup.ts';

/**
 * Makes a client. Throws on invalid options; sends nothing yet. The secret cannot be read back from the client. Where a call takes a
 * feed ID, it also takes a pair (`BTC/USD`) or a full name from the catalog.
 */
export function createClient(options: ClientOptions) {
  const settings = readOptions(options);
  const requester: Requester = createRequester(settings);
  const monotonicMs = () => performance.now();
  const { signer, timeoutMs, sleep, random } = settings;
  const lookup = createStreamLookup({ requester, isSigned: signer !== undefined, timeoutMs, monotonicMs });
  const { ofOne, ofAll } = createNamedCalls(lookup, monotonicMs);
  const latestMany = createLatestMany(requester, sleep, monotonicMs);
  async function* pagesOf(feedId: string, span: PagesOptions) {
    yield* pages(requester, await lookup.one(feedId, span), span, sleep);
  }
  const streamOf = (feedIds: readonly string[], given: StreamOptions = {}): ReportStream => {
    if (!Array.isArray(feedIds) || !feedIds.some(isStreamName)) return stream(requester, feedIds, given);
    const live = observeStream(feedIds, given, settings.emit);
    const lookUp = (signal: AbortSignal) => lookup.all(feedIds, { signal });
    return streamByName({ lookUp, open: (ids) => openStream(requester, ids, live), random }, live);
  };
  return Object.freeze({
    /** The newest report of a stream. */
    latest: (feedId: string, call?: CallOptions) => ofOne(feedId, call, (id, rest) => latest(requester, id, rest)),
    /**
     * The newest reports of several streams; streams without one are in `missing`. A Sealpost server answers 100 streams per request; other
     * servers get one request per stream, within the account's rate limit. `timeoutMs` covers all requests; without it, each has the default.
     */
    latestMany: (feedIds: readonly string[], call?: CallOptions) => ofAll(feedIds, call, latestMany),
    /** The report that is valid at a second. If there is none, the error's details have the reason and the nearest reports. */
    at: (feedId: string, timestamp: number, call?: CallOptions) =>
      ofOne(feedId, call, (id, rest) => at(requester, id, timestamp, rest)),
    /** The reports of several streams at a second, in as few requests as the server allows; streams without one are in `missing`. */
    bulk: (feedIds: readonly string[], timestamp: number, call?: CallOptions) =>
      ofAll(feedIds, call, (ids, rest) => bulk(requester, ids, timestamp, rest)),
    /** Reports of one stream from a second on, oldest first. `limit`: 10 by default, at most 1,000. */
    page: (feedId: string, startTimestamp: number, limit?: number, call?: CallOptions) =>
      ofOne(feedId, call, (id, rest) => page(requester, id, startTimestamp, limit, rest)),
    /** A time range of a stream, page by page; with `follow`, it continues with new reports. */
    pages: pagesOf,
    /** Live reports of these streams, each once and in order. With `from`, it starts with stored reports from that second on. */
    stream: streamOf,
    /** The catalog, filtered. Works without credentials. */
    discovery: (filters?: DiscoveryFilters, call?: CallOptions) => discovery(requester, filters, call),
    /** The catalog entry of a stream by feed ID, pair or full name. Works without credentials. */
    findStream: (name: string, call?: CallOptions) => lookup.entry(name, call),
    /** Feed IDs of the streams that this account may read. */
    feeds: (call?: CallOptions) => feeds(requester, call),
    /** Gaps and completeness of a stream in a time range of at most a day. */
    coverage: (feedId: string, span: TimeRange, call?: CallOptions) =>
      ofOne(feedId, call, (id, rest) => coverage(requester, id, span, rest)),
    /** Completeness of several streams by hour, in a time range of at most a day. */
    coverageMany: (feedIds: readonly string[], span: TimeRange, call?: CallOptions) =>
      ofAll(feedIds, call, (ids, rest) => coverageMany(requester, ids, span, rest)),
    /** Open, high, low and close, in buckets of 1, 60, 300, 900, 3600, 14400 or 86400 seconds. */
    candles: (feedId: string, span: CandleRange, call?: CallOptions) =>
      ofOne(feedId, call, (id, rest) => candles(requester, id, span, rest)),
    /** The candles of several streams in one request, in the order given; at most 20,000 buckets in all. */
    candlesMany: (feedIds: readonly string[], span: CandleRange, call?: CallOptions) =>
      ofAll(feedIds, call, (ids, rest) => candlesMany(requester, ids, span, rest)),
    /** The signer sets that reports verify against. Works without credentials. */
    signers: (call?: CallOptions) => signers(requester, call),
    /** The server's clock. Works without credentials. */
    time: (call?: CallOptions) => time(requester, call),
    /** The status of the service. Works without credentials. */
    status: (call?: CallOptions) => status(requester, call),
  });
}

export type Client = ReturnType<typeof createClient>;

/** Makes calls that take feed IDs or names: names are looked up first, within the call's time-out; feed IDs are passed on, and the call validates them. */
const createNamedCalls = ({ one, all }: StreamLookup, monotonicMs: () => number) => {
  /** Looks up first; the call gets the rest of the time-out. */
  const first = async <I, T>(
    lookUp: () => Promise<I>,
    call: CallOptions | undefined,
    act: (ids: I, rest?: CallOptions) => Promise<T>,
  ): Promise<T> => {
    const startedMs = monotonicMs();
    const ids = await lookUp();
    return act(ids, withRest(call, monotonicMs() - startedMs));
  };
  return {
    ofOne: async <T>(
      stream: string,
      call: CallOptions | undefined,
      act: (feedId: string, rest?: CallOptions) => Promise<T>,
    ): Promise<T> => (isStreamName(stream) ? first(() => one(stream, call), call, act) : act(stream, call)),
    ofAll: async <T>(
      streams: readonly string[],
      call: CallOptions | undefined,
      act: (feedIds: readonly string[], rest?: CallOptions) => Promise<T>,
    ): Promise<T> =>
      Array.isArray(streams) && streams.some(isStreamName)
        ? first(() => all(streams, call), call, act)
        : act(streams, call),
  };
};
