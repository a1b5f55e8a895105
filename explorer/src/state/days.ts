// The last day of each stream for the list of streams: the price at its start, and the line of its prices. From candles of many streams per request,
// cached for a minute.
import { batch, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { type Candle, type CandlesManyResult, type Client, SealpostError } from '@sealpost/client';
import { type Batches, createBatches } from './batches.ts';
import type { Clock } from './clock.ts';
import type { Session } from './session.ts';

/** A price at a time; the line breaks before it if there was no report in between. */
export type DayPoint = { readonly ms: number; readonly price: bigint; readonly isAfterGap: boolean };

export type Day = {
  /** The first price, and when it was. */
  readonly first: bigint;
  readonly sinceMs: number;
  /** Was it in the minute of `sinceMs`? If not, it was later, within the hour or five minutes that begin then. */
  readonly isToTheMinute: boolean;
  /** Does it cover 24 h? False if the stream has no reports from its start. */
  readonly isWhole: boolean;
  readonly points: readonly DayPoint[];
};

export type DayPhase = 'unknown' | 'loaded' | 'failed';

export type Days = {
  /** The last day of a stream; undefined until it is known, and if it has no reports. */
  readonly of: (feedId: string) => ReadonlySignal<Day | undefined>;
  /** Loads those that are not known or older than a minute. The user must be allowed to read all of them. */
  readonly load: (feedIds: readonly string[]) => void;
  /** Whether the last day of a stream was loaded, even if it has no reports; `failed` until a later attempt succeeds. */
  readonly phaseOf: (feedId: string) => ReadonlySignal<DayPhase>;
  /** False if the server has no candles of many streams. */
  readonly areSupported: ReadonlySignal<boolean>;
};

const hour = 3_600;
const minute = 60;
const daySeconds = 24 * hour;
/** Roll-ups of a minute in a request for finer candles: 8 of 10 tokens per second. */
const rollupsMax = 11_520;
/** The resolution of finer candles up to this length, and beyond. */
const minutesUpTo = 3 * hour;
const fiveMinutes = 300;
const freshMs = 60_000;
/** A day of hours of 100 streams costs 2 of 10 tokens per second. */
const pauseMs = 300;
/** Streams that began in the same hour share a request for its minutes; more hours than this are not refined. */
const refinedMax = 3;

/** The hour that starts nearest to 24 h ago; seconds. */
export const dayStart = (nowSeconds: number): number => Math.round((nowSeconds - daySeconds) / hour) * hour;

/** Finer candles of a day that begins late: all of it, or only its first hour. */
export type FineCandles = {
  readonly candles: readonly Candle[];
  readonly resolution: number;
  readonly isWhole: boolean;
};

/** A stream's day from its hours, and finer candles if it does not reach back a day. */
export function dayFrom(hours: readonly Candle[], fine: FineCandles | undefined, start: number): Day | undefined {
  const [firstHour] = hours;
  if (firstHour === undefined) return undefined;
  const first = fine?.candles[0] ?? firstHour;
  const isFine = fine?.isWhole === true && fine.candles.length > 0;
  return {
    first: first.open,
    sinceMs: first.timestamp * 1_000,
    isToTheMinute: first !== firstHour && fine?.resolution === minute,
    isWhole: firstHour.timestamp <= start,
    points: isFine ? pointsOf(fine.candles, fine.resolution) : pointsOf(hours, hour),
  };
}

const pointsOf = (candles: readonly Candle[], resolution: number): readonly DayPoint[] => [
  ...candles.slice(0, 1).map(({ timestamp, open }) => ({ ms: timestamp * 1_000, price: open, isAfterGap: false })),
  ...candles.map(({ timestamp, close }, i) => ({
    ms: (timestamp + resolution) * 1_000,
    price: close,
    isAfterGap: i > 0 && timestamp - (candles[i - 1]?.timestamp ?? 0) > resolution,
  })),
];

type Streams = CandlesManyResult['streams'];
type Reader = Pick<Client, 'candlesMany'>;

/** What to request for streams that began in the same hour: as much as the rate limit allows. */
export function fineRange(first: number, now: number, streams: number) {
  const seconds = now - first;
  return (seconds / minute) * streams <= rollupsMax
    ? { from: first, to: now, resolution: seconds <= minutesUpTo ? minute : fiveMinutes, isWhole: true }
    : { from: first, to: first + hour - 1, resolution: minute, isWhole: false };
}

/** Finer candles of streams whose day begins late, by feed ID. */
const readFine = async (
  client: Reader,
  streams: Streams,
  [start, now]: readonly [number, number],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, FineCandles>> => {
  const groups = new Map<number, string[]>();
  for (const { feedID, candles } of streams) {
    const first = candles[0]?.timestamp ?? start;
    if (first > start) groups.set(first, [...(groups.get(first) ?? []), feedID]);
  }
  const largest = [...groups].sort(([, a], [, b]) => b.length - a.length).slice(0, refinedMax);
  const found = new Map<string, FineCandles>();
  for (const [first, feedIds] of largest) {
    const { isWhole, ...range } = fineRange(first, now, feedIds.length);
    const answer = await client.candlesMany(feedIds, range, { signal });
    for (const { feedID, candles } of answer.streams)
      found.set(feedID, { candles, resolution: range.resolution, isWhole });
  }
  return found;
};

/** What is known of each stream. */
const createDayCache = () => {
  const byFeed = new Map<string, { readonly day: Signal<Day | undefined>; readonly phase: Signal<DayPhase> }>();
  const loadedMs = new Map<string, number>();
  const asked = new Set<string>();
  const of = (feedId: string) => {
    const one = byFeed.get(feedId) ?? { day: signal<Day | undefined>(undefined), phase: signal<DayPhase>('unknown') };
    byFeed.set(feedId, one);
    return one;
  };
  return {
    of,
    /** Those that are not known or older than a minute. */
    ask: (feedIds: readonly string[], nowMs: number): readonly string[] => {
      const old = feedIds.filter((feedId) => !(Math.abs(nowMs - (loadedMs.get(feedId) ?? Number.NaN)) <= freshMs));
      for (const feedId of old) asked.add(feedId);
      return old;
    },
    take: (feedId: string, day: Day | undefined, nowMs: number): void => {
      asked.delete(feedId);
      loadedMs.set(feedId, nowMs);
      const one = of(feedId);
      one.day.value = day;
      one.phase.value = 'loaded';
    },
    /** Those that were asked for and did not come. A day that is known stays. */
    fail: (): void => {
      for (const feedId of asked) if (!loadedMs.has(feedId)) of(feedId).phase.value = 'failed';
      asked.clear();
    },
    forget: (): void => {
      loadedMs.clear();
      asked.clear();
      for (const { day, phase } of byFeed.values()) {
        day.value = undefined;
        phase.value = 'unknown';
      }
    },
  };
};

export function createDays(session: Pick<Session, 'client' | 'userId'>, clock: Pick<Clock, 'nowMs'>): Days {
  const cache = createDayCache();
  const areSupported = signal(true);
  let batches: Batches | undefined;
  const read = async (client: Client, feedIds: readonly string[], abort: AbortSignal): Promise<void> => {
    const now = Math.floor(clock.nowMs.peek() / 1_000);
    const start = dayStart(now);
    const { streams } = await client.candlesMany(
      feedIds,
      { from: start, to: now, resolution: hour },
      { signal: abort },
    );
    // Without them, a day that begins late begins at the full hour.
    const fine = await readFine(client, streams, [start, now], abort).catch(() => new Map<string, FineCandles>());
    if (abort.aborted) return;
    batch(() => {
      for (const { feedID, candles } of streams)
        cache.take(feedID, dayFrom(candles, fine.get(feedID), start), now * 1_000);
    });
  };
  effect(() => {
    const client = session.client.value;
    if (session.userId.value === undefined) return undefined;
    const ended = new AbortController();
    const load = (feedIds: readonly string[]): Promise<void> =>
      read(client, feedIds, ended.signal).catch((error: unknown) => {
        if (error instanceof SealpostError && error.code === 'not_supported') areSupported.value = false;
        else if (!ended.signal.aborted) batch(cache.fail);
        throw error;
      });
    batches = createBatches({ load, signal: ended.signal, pauseMs });
    return () => {
      ended.abort();
      batches = undefined;
      areSupported.value = true;
      cache.forget();
    };
  });
  return {
    of: (feedId) => cache.of(feedId).day,
    phaseOf: (feedId) => cache.of(feedId).phase,
    areSupported,
    load: (feedIds) => {
      if (areSupported.peek() && batches !== undefined) batches.load(cache.ask(feedIds, clock.nowMs.peek()));
    },
  };
}
