// Loads the chart's data in chunks and keeps them: each is loaded once, and the one that is not over yet again every minute. Bounded.
import { SealpostError } from '@sealpost/client';

export type ChunkKey = {
  readonly resolution: number | 'reports';
  readonly start: number;
  readonly seconds: number;
  /** The first second to load: later than the start where the server keeps no more. */
  readonly from: number;
  /** Is `from` only assumed to be the first one kept? */
  readonly isAssumed: boolean;
};

export type LoadedChunk<T> = {
  readonly values: readonly T[];
  /** The second of the request: what came later may be missing. */
  readonly atSecond: number;
};

export type ChartChunks<T> = {
  /** Loads what is missing of these; cancels what is loading and no longer wanted. */
  readonly want: (chunks: readonly ChunkKey[], nowSeconds: number) => void;
  /** Undefined until loaded. */
  readonly read: (chunk: ChunkKey) => LoadedChunk<T> | undefined;
  /** Why a wanted chunk could not be loaded; undefined if none failed. */
  readonly failureOf: (chunks: readonly ChunkKey[]) => { readonly error: unknown } | undefined;
  /** Tries failed ones again with the next `want`. */
  readonly retry: () => void;
  readonly close: () => void;
};

/** A chunk that is not over is loaded again after this; in between, live reports update it. */
const renewSeconds = 60;
/** Reports may be stored this much later than they were observed. */
const settleSeconds = 30;
/** The first wait after a failure; each next one is twice as long. */
const retrySeconds = 5;
const retrySecondsMax = 60;
const chunksMax = 96;

/** Seconds; `to` may be Infinity. */
type Wait = { readonly from: number; readonly to: number };

/** Also when the clock was set back to before it began. */
const isOver = ({ from, to }: Wait, now: number): boolean => now >= to || (now < from && to < Number.POSITIVE_INFINITY);

const noWait: Wait = { from: 0, to: 0 };

type Entry<T> = {
  loaded: LoadedChunk<T> | undefined;
  loading: AbortController | undefined;
  failure: { readonly error: unknown; readonly wait: Wait } | undefined;
  failures: number;
};

const textOf = ({ resolution, start, isAssumed }: ChunkKey): string =>
  `${resolution} ${start}${isAssumed ? ' assumed' : ''}`;

/** The server's Retry-After; 0 without one. */
const pauseSecondsOf = (error: unknown): number => {
  const seconds = error instanceof SealpostError ? error.details.retryAfterSeconds : undefined;
  return typeof seconds === 'number' ? Math.ceil(seconds) : 0;
};

/** Seconds until the same request may succeed: never, if it is the request that is wrong or not allowed. */
const waitSecondsOf = (error: unknown, failures: number): number => {
  if (error instanceof SealpostError && !error.retryable) return Number.POSITIVE_INFINITY;
  return Math.max(pauseSecondsOf(error), Math.min(retrySecondsMax, retrySeconds * 2 ** (failures - 1)));
};

const isDue = <T>({ loaded, loading, failure }: Entry<T>, { start, seconds }: ChunkKey, now: number): boolean => {
  if (loading !== undefined || start > now) return false;
  if (failure !== undefined) return isOver(failure.wait, now);
  if (loaded === undefined || loaded.atSecond - now >= renewSeconds) return true; // the clock was set back
  return loaded.atSecond < start + seconds + settleSeconds && now - loaded.atSecond >= renewSeconds;
};

export function createChartChunks<T>(
  load: (chunk: ChunkKey, signal: AbortSignal) => Promise<readonly T[]>,
  onChange: () => void,
): ChartChunks<T> {
  const entries = new Map<string, Entry<T>>();
  /** In this time, the server wants no requests. */
  let pause: Wait = noWait;
  const start = (chunk: ChunkKey, entry: Entry<T>, nowSeconds: number): void => {
    const controller = new AbortController();
    entry.loading = controller;
    const end = (change: Partial<Entry<T>>): void => {
      if (entry.loading !== controller) return; // cancelled
      Object.assign(entry, { loading: undefined, failure: undefined, ...change });
      onChange();
    };
    load(chunk, controller.signal).then(
      (values) => end({ loaded: { values, atSecond: nowSeconds }, failures: 0 }),
      (error: unknown) => {
        const to = nowSeconds + pauseSecondsOf(error);
        if (entry.loading === controller && (to > pause.to || isOver(pause, nowSeconds)))
          pause = { from: nowSeconds, to };
        const failures = entry.failures + 1;
        const wait = { from: nowSeconds, to: nowSeconds + waitSecondsOf(error, failures) };
        end({ failure: { error, wait }, failures });
      },
    );
  };
  const cancel = (entry: Entry<T>): void => {
    const { loading } = entry;
    entry.loading = undefined;
    loading?.abort();
  };
  /** Newest wanted last, so that the first ones of the map are the ones to drop. */
  const touch = (chunk: ChunkKey): Entry<T> => {
    const text = textOf(chunk);
    const entry = entries.get(text) ?? { loaded: undefined, loading: undefined, failure: undefined, failures: 0 };
    entries.delete(text);
    entries.set(text, entry);
    return entry;
  };
  return {
    want: (chunks, nowSeconds) => {
      const texts = new Set(chunks.map(textOf));
      for (const [text, entry] of entries) if (!texts.has(text)) cancel(entry);
      for (const chunk of chunks) {
        const entry = touch(chunk);
        if (isOver(pause, nowSeconds) && isDue(entry, chunk, nowSeconds)) start(chunk, entry, nowSeconds);
      }
      for (const text of entries.keys()) {
        if (entries.size <= Math.max(chunksMax, texts.size)) break;
        entries.delete(text);
      }
    },
    read: (chunk) => entries.get(textOf(chunk))?.loaded,
    failureOf: (chunks) =>
      chunks.map((chunk) => entries.get(textOf(chunk))?.failure).find((failure) => failure !== undefined),
    retry: () => {
      pause = noWait;
      for (const entry of entries.values()) entry.failure = undefined;
    },
    close: () => {
      for (const entry of entries.values()) cancel(entry);
      entries.clear();
    },
  };
}
