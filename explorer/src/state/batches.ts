// Loads many streams in few requests: 100 per request or as many as the server allows, one request at a time, with a pause between two.
import { SealpostError } from '@sealpost/client';
import { limits } from '@sealpost/protocol';

export type BatchParts = {
  /** Loads at most 100 streams. If it rejects, the streams that still wait are given up. */
  readonly load: (feedIds: readonly string[]) => Promise<void>;
  readonly signal: AbortSignal;
  /** Between two requests, so that 2,000 streams stay within the rate limit; milliseconds. */
  readonly pauseMs: number;
  /**
   * For streams that nobody waits for: the pause is at least this many times as long as the last request took, so that a slow server gets fewer, and
   * also before the streams of the next call.
   */
  readonly pauseFactor?: number;
  /** After a request that failed; milliseconds. */
  readonly failedPauseMs?: number;
};

export type Batches = {
  /** Loads these streams before those that still wait. Streams that wait or load already are not loaded twice. */
  readonly load: (feedIds: readonly string[]) => void;
};

const failedMs = 2_000;

/** How many streams the server allows in a request, if that is why it rejected one of `count`. */
export function fewerAllowed(error: unknown, count: number): number | undefined {
  const feedIdsMax = error instanceof SealpostError ? error.details.feedIdsMax : undefined;
  return typeof feedIdsMax === 'number' && Number.isInteger(feedIdsMax) && feedIdsMax > 0 && feedIdsMax < count
    ? feedIdsMax
    : undefined;
}

type Queue = {
  waiting: ReadonlySet<string>;
  loading: ReadonlySet<string>;
  isRunning: boolean;
  feedIdsMax: number;
  /** When the next request may begin. */
  nextMs: number;
};

export function createBatches(parts: BatchParts): Batches {
  const queue: Queue = {
    waiting: new Set(),
    loading: new Set(),
    isRunning: false,
    feedIdsMax: limits.feedIdsMax,
    nextMs: Number.NEGATIVE_INFINITY,
  };
  return {
    load: (feedIds) => {
      const { loading, waiting } = queue;
      queue.waiting = new Set([...feedIds.filter((feedId) => !loading.has(feedId)), ...waiting]);
      if (queue.isRunning || queue.waiting.size === 0) return;
      queue.isRunning = true;
      void loadAll(queue, parts).finally(() => {
        queue.isRunning = false;
      });
    },
  };
}

const loadAll = async (queue: Queue, parts: BatchParts): Promise<void> => {
  const { signal, failedPauseMs = failedMs } = parts;
  while (queue.waiting.size > 0 && !signal.aborted) {
    const waitMs = queue.nextMs - performance.now();
    if (waitMs > 0) await pause(waitMs, signal);
    if (signal.aborted) return;
    const beganMs = performance.now();
    const isLoaded = await loadNext(queue, parts);
    const endedMs = performance.now();
    queue.nextMs = endedMs + (isLoaded ? pauseAfter(queue, parts, endedMs - beganMs) : failedPauseMs);
  }
};

const pauseAfter = ({ waiting }: Queue, { pauseMs, pauseFactor }: BatchParts, tookMs: number): number => {
  if (pauseFactor !== undefined) return Math.max(pauseMs, pauseFactor * tookMs);
  return waiting.size > 0 ? pauseMs : 0;
};

/** Returns whether the request succeeded. */
const loadNext = async (queue: Queue, { load }: BatchParts): Promise<boolean> => {
  const next = [...queue.waiting].slice(0, queue.feedIdsMax);
  queue.loading = new Set(next);
  queue.waiting = new Set([...queue.waiting].slice(next.length));
  try {
    await load(next);
    return true;
  } catch (error) {
    const fewer = fewerAllowed(error, next.length);
    if (fewer === undefined)
      queue.waiting = new Set(); // the client has retried; whoever still needs them asks again
    else {
      queue.feedIdsMax = fewer;
      queue.waiting = new Set([...next, ...queue.waiting]);
    }
    return fewer !== undefined;
  } finally {
    queue.loading = new Set();
  }
};

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const stop = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      resolve();
    };
    const timer = setTimeout(stop, ms);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
  });
