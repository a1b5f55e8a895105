// Looks up stream names in the server's catalog, which is cached, and read again if a name is not in it (D98).
import {
  type CatalogEntry,
  distinguishStreams,
  explainMatch,
  type FeedId,
  malformedArgument,
  matchStreams,
} from '@sealpost/protocol';
import { readFeedId } from './arguments.ts';
import { discovery } from './discovery.ts';
import { readArgument, SealpostError } from './errors.ts';
import { readWhole } from './options.ts';
import type { CallOptions } from './request/call.ts';
import { openCall, raceSignal, timerMaxMs } from './request/call.ts';
import type { Requester } from './request/requester.ts';

/** How long the catalog is cached: operators add and decommission streams rarely. */
const cacheMs = 600_000;
/** For a name that is not in it, the catalog is read again at most this often. */
const missMs = 10_000;
/** Streams that are cached; the rest of a longer catalog is not. */
const entriesMax = 50_000;
/** Longest name; anything longer is not a name. */
const nameMax = 200;

export type StreamLookup = {
  /** The feed ID of a feed ID, pair or full name. */
  readonly one: (stream: string, options?: CallOptions) => Promise<FeedId>;
  /** The same for several; each once, in the order given. */
  readonly all: (streams: readonly string[], options?: CallOptions) => Promise<readonly FeedId[]>;
  /** The catalog entry; a feed ID that is not in the catalog is `unknown_stream`. */
  readonly entry: (stream: string, options?: CallOptions) => Promise<CatalogEntry>;
};

type CachedEntries = {
  readonly entries: readonly (CatalogEntry & { readonly hidden: boolean })[];
  readonly readMs: number;
};

/** Whether this is a name to look up. Text that starts like a feed ID is not. */
export function isStreamName(raw: unknown): raw is string {
  if (typeof raw !== 'string' || /^\s*(0x|$)/i.test(raw)) return false;
  if (raw.length <= nameMax) return true;
  return readArgument(() => {
    throw malformedArgument('feedID', raw, `a feed ID or a name of at most ${nameMax} characters`);
  });
}

export type LookupParts = {
  readonly requester: Pick<Requester, 'get'>;
  /** Hidden streams are listed only for signed requests. */
  readonly isSigned: boolean;
  readonly timeoutMs: number;
  readonly monotonicMs: () => number;
};

export function createStreamLookup({ requester, isSigned, timeoutMs, monotonicMs }: LookupParts): StreamLookup {
  let cached: CachedEntries | undefined;
  let reading: Promise<CachedEntries> | undefined;
  const read = async (): Promise<CachedEntries> => {
    const [listed, all] = await Promise.all([
      discovery(requester),
      isSigned ? discovery(requester, { hidden: true }).catch(ignoreRefusal) : undefined,
    ]);
    const listedIds = new Set(listed.feeds.map(({ feedId }) => feedId));
    const hidden = (all?.feeds ?? []).filter(({ feedId }) => !listedIds.has(feedId));
    const entries = [
      ...listed.feeds.map((entry) => ({ ...entry, hidden: false })),
      ...hidden.map((entry) => ({ ...entry, hidden: true })),
    ];
    return { entries: entries.slice(0, entriesMax), readMs: monotonicMs() };
  };
  /** Concurrent callers share one read; none of them can abort it for the others. */
  const refresh = (): Promise<CachedEntries> => {
    reading ??= read()
      .then((next) => {
        cached = next;
        return next;
      })
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };
  const entry = async (stream: string, options: CallOptions = {}): Promise<CatalogEntry> => {
    const ageMs = cached === undefined ? Number.POSITIVE_INFINITY : monotonicMs() - cached.readMs;
    const cachedMatch = cached !== undefined && ageMs < cacheMs ? matchStreams(stream, cached.entries) : undefined;
    const isGood = cachedMatch?.found === 'one' && cachedMatch.stream.status !== 'decommissioned';
    const match =
      cachedMatch !== undefined && (isGood || ageMs < missMs)
        ? cachedMatch
        : matchStreams(stream, (await within(refresh(), options, timeoutMs)).entries);
    if (match.found !== 'one') throw toError(stream, match);
    const { hidden: _, ...found } = match.stream;
    return found;
  };
  const one = async (stream: string, options?: CallOptions): Promise<FeedId> =>
    isStreamName(stream) ? readFeedId((await entry(stream, options)).feedId) : readFeedId(stream);
  const all = async (streams: readonly string[], options?: CallOptions): Promise<readonly FeedId[]> => {
    const found: FeedId[] = [];
    for (const stream of streams) found.push(await one(stream, options));
    return [...new Set(found)];
  };
  return { one, all, entry };
}

// A server that does not know `hidden` may reject it: then only listed streams are known.
const ignoreRefusal = (error: unknown): undefined => {
  if (error instanceof SealpostError && (error.status ?? 500) < 500) return undefined;
  throw error;
};

type Failed = Exclude<ReturnType<typeof matchStreams<CatalogEntry>>, { found: 'one' }>;

const toError = (name: string, match: Failed): SealpostError =>
  match.found === 'several'
    ? new SealpostError('ambiguous_stream', explainMatch(name, match), {
        details: { name, streams: distinguishStreams(match.streams) },
      })
    : new SealpostError('unknown_stream', explainMatch(name, match), {
        details: { name, similar: match.near.map(({ name: near, feedId }) => ({ name: near, feedId })) },
      });

/** Waits for a shared promise until the caller's own signal or time-out. */
const within = async <T>(shared: Promise<T>, options: CallOptions, timeoutMs: number): Promise<T> => {
  const call = openCall(options, readWhole('timeoutMs', options.timeoutMs ?? timeoutMs, 1, timerMaxMs));
  try {
    return await raceSignal(shared, call.signal);
  } finally {
    call.close();
  }
};
