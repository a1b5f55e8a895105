// The last day of each stream for the list of streams: the price at its start, and the line of its prices. From candles of many streams per request,
// cached for a minute.
import { effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
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
  /** Does it cover 24 h? False if the stream has no reports from its start. */
  readonly isWhole: boolean;
  readonly points: readonly DayPoint[];
};

export type Days = {
  /** The last day of a stream; undefined until it is known, and if it has no reports. */
  readonly of: (feedId: string) => ReadonlySignal<Day | undefined>;
  /** Loads those that are not known or older than a minute. The user must be allowed to read all of them. */
  readonly load: (feedIds: readonly string[]) => void;
  /** False if the server has no candles of many streams. */
  readonly areSupported: ReadonlySignal<boolean>;
};

const hour = 3_600;
const minute = 60;
const daySeconds = 24 * hour;
/** With less history than this, the line is drawn from minutes. */
const shortSeconds = 2 * hour;
const freshMs = 60_000;
/** A day of hours of 100 streams costs 2 of 10 tokens per second. */
const pauseMs = 300;
/** Streams that began in the same hour share a request for its minutes; more hours than this are not refined. */
const refinedMax = 3;

/** The hour that starts nearest to 24 h ago; seconds. */
export const dayStart = (nowSeconds: number): number => Math.round((nowSeconds - daySeconds) / hour) * hour;

/** A stream's day from its hours, and its first minutes if it does not reach back a day. */
export const dayFrom = (hours: readonly Candle[], minutes: readonly Candle[], start: number): Day | undefined => {
  const [firstHour] = hours;
  if (firstHour === undefined) return undefined;
  const first = minutes[0] ?? firstHour;
  const isShort = (minutes.at(-1)?.timestamp ?? 0) >= (hours.at(-1)?.timestamp ?? 0);
  return {
    first: first.open,
    sinceMs: first.timestamp * 1_000,
    isWhole: firstHour.timestamp <= start,
    points: isShort ? pointsOf(minutes, minute) : pointsOf(hours, hour),
  };
};

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

/** The minutes of streams whose day begins late, by feed ID. */
const readMinutes = async (
  client: Reader,
  streams: Streams,
  [start, now]: readonly [number, number],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly Candle[]>> => {
  const groups = new Map<number, string[]>();
  for (const { feedID, candles } of streams) {
    const first = candles[0]?.timestamp ?? start;
    if (first > start) groups.set(first, [...(groups.get(first) ?? []), feedID]);
  }
  const largest = [...groups].sort(([, a], [, b]) => b.length - a.length).slice(0, refinedMax);
  const read = largest.map(([first, feedIds]) => {
    const to = first > now - shortSeconds ? now : first + hour - 1;
    return client.candlesMany(feedIds, { from: first, to, resolution: minute }, { signal });
  });
  const found = (await Promise.all(read)).flatMap((answer) => answer.streams);
  return new Map(found.map(({ feedID, candles }) => [feedID, candles]));
};

export const createDays = (session: Pick<Session, 'client' | 'userId'>, clock: Pick<Clock, 'nowMs'>): Days => {
  const known = new Map<string, Signal<Day | undefined>>();
  const loadedMs = new Map<string, number>();
  const areSupported = signal(true);
  let batches: Batches | undefined;
  const of = (feedId: string): Signal<Day | undefined> => {
    const day = known.get(feedId) ?? signal<Day | undefined>(undefined);
    known.set(feedId, day);
    return day;
  };
  const read = async (client: Client, feedIds: readonly string[], abort: AbortSignal): Promise<void> => {
    const now = Math.floor(clock.nowMs.peek() / 1_000);
    const start = dayStart(now);
    const { streams } = await client.candlesMany(feedIds, { from: start, to: now, resolution: hour }, { signal: abort });
    // Without them, a day that begins late begins at the full hour.
    const minutes = await readMinutes(client, streams, [start, now], abort).catch(() => new Map<string, never>());
    if (abort.aborted) return;
    for (const { feedID, candles } of streams) {
      of(feedID).value = dayFrom(candles, minutes.get(feedID) ?? [], start);
      loadedMs.set(feedID, now * 1_000);
    }
  };
  effect(() => {
    const client = session.client.value;
    if (session.userId.value === undefined) return undefined;
    const ended = new AbortController();
    const load = (feedIds: readonly string[]): Promise<void> =>
      read(client, feedIds, ended.signal).catch((error: unknown) => {
        if (error instanceof SealpostError && error.code === 'not_supported') areSupported.value = false;
        throw error;
      });
    batches = createBatches({ load, signal: ended.signal, pauseMs });
    return () => {
      ended.abort();
      batches = undefined;
      areSupported.value = true;
      loadedMs.clear();
      for (const day of known.values()) day.value = undefined;
    };
  });
  return {
    of,
    areSupported,
    load: (feedIds) => {
      const nowMs = clock.nowMs.peek();
      const isOld = (feedId: string): boolean =>
        Math.abs(nowMs - (loadedMs.get(feedId) ?? Number.NEGATIVE_INFINITY)) > freshMs;
      if (areSupported.peek()) batches?.load(feedIds.filter(isOld));
    },
  };
};
