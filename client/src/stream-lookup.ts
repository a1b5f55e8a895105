// Streams by name: looks names up in the server's catalog, which is kept for a while and read again where a name is not in it (D98).
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
import { readWhole, timeoutMaxMs } from './options.ts';
import type { CallOptions } from './request/call.ts';
import { openCall, raceSignal } from './request/call.ts';
import type { Requester } from './request/requester.ts';

/** How long a name means the stream that it meant: streams are added and decommissioned by people, in days. */
const keptMs = 600_000;
/** A name that is not in the catalog has it read again, but no more often than this. */
const missMs = 10_000;
/** Streams that are kept; a catalog that is longer is kept in part. */
const entriesMax = 50_000;
/** Characters of a name: longer than any, so that nothing else is looked for. */
const nameMax = 200;

export type StreamLookup = {
  /** The feed ID of a stream that is given by feed ID, pair or full name. */
  readonly one: (stream: string, options?: CallOptions) => Promise<FeedId>;
  /** Of several, each once, in the order given. */
  readonly all: (streams: readonly string[], options?: CallOptions) => Promise<readonly FeedId[]>;
  /** The entry of a stream; a feed ID that is not in the catalog is unknown. */
  readonly entry: (stream: string, options?: CallOptions) => Promise<CatalogEntry>;
};

type Kept = { readonly entries: readonly (CatalogEntry & { readonly hidden: boolean })[]; readonly readMs: number };

/** Is this a name, to be looked up? What begins like a feed ID is one, or malformed. */
export const isStreamName = (raw: unknown): raw is string => {
  if (typeof raw !== 'string' || /^\s*(0x|$)/i.test(raw)) return false;
  if (raw.length <= nameMax) return true;
  return readArgument(() => {
    throw malformedArgument('feedID', raw, `a feed ID or a name of at most ${nameMax} characters`);
  });
};

export type LookupParts = {
  readonly requester: Pick<Requester, 'get'>;
  /** Hidden streams are shown to those who sign. */
  readonly isSigned: boolean;
  readonly timeoutMs: number;
  readonly monotonicMs: () => number;
};

export const createStreamLookup = ({ requester, isSigned, timeoutMs, monotonicMs }: LookupParts): StreamLookup => {
  let kept: Kept | undefined;
  let reading: Promise<Kept> | undefined;
  const read = async (): Promise<Kept> => {
    const [listed, all] = await Promise.all([
      discovery(requester),
      isSigned ? discovery(requester, { hidden: true }).catch(ignoreRefusal) : undefined,
    ]);
    const known = new Set(listed.feeds.map(({ feedId }) => feedId));
    const hidden = (all?.feeds ?? []).filter(({ feedId }) => !known.has(feedId));
    const entries = [
      ...listed.feeds.map((entry) => ({ ...entry, hidden: false })),
      ...hidden.map((entry) => ({ ...entry, hidden: true })),
    ];
    return { entries: entries.slice(0, entriesMax), readMs: monotonicMs() };
  };
  /** One reading for all who wait, which none of them can end for the others. */
  const refresh = (): Promise<Kept> => {
    reading ??= read()
      .then((next) => {
        kept = next;
        return next;
      })
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };
  const entry = async (stream: string, options: CallOptions = {}): Promise<CatalogEntry> => {
    const ageMs = kept === undefined ? Number.POSITIVE_INFINITY : monotonicMs() - kept.readMs;
    const known = kept !== undefined && ageMs < keptMs ? matchStreams(stream, kept.entries) : undefined;
    const isGood = known?.found === 'one' && known.stream.status !== 'decommissioned';
    const match =
      known !== undefined && (isGood || ageMs < missMs)
        ? known
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
};

// A server that does not know the argument may refuse it: its catalog is then the listed streams.
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

/** Waits for what is shared with others, until the caller's own signal or time ends it. */
const within = async <T>(shared: Promise<T>, options: CallOptions, timeoutMs: number): Promise<T> => {
  const call = openCall(options, readWhole('timeoutMs', options.timeoutMs ?? timeoutMs, 1, timeoutMaxMs));
  try {
    return await raceSignal(shared, call.signal);
  } finally {
    call.close();
  }
};
