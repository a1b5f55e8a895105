// Loads many streams in few requests: 100 per request, one request at a time, with a pause between two.
import { limits } from '@sealpost/protocol';

export type BatchParts = {
  /** Loads at most 100 streams. If it rejects, the streams that still wait are given up. */
  readonly load: (feedIds: readonly string[]) => Promise<void>;
  readonly signal: AbortSignal;
  /** Between two requests, so that 2,000 streams stay within the rate limit; milliseconds. */
  readonly pauseMs: number;
};

export type Batches = {
  /** Loads these streams before those that still wait. Streams that wait or load already are not loaded twice. */
  readonly load: (feedIds: readonly string[]) => void;
};

export const createBatches = ({ load, signal, pauseMs }: BatchParts): Batches => {
  let waiting: ReadonlySet<string> = new Set();
  let loading: ReadonlySet<string> = new Set();
  let isRunning = false;
  const loadAll = async (): Promise<void> => {
    while (waiting.size > 0 && !signal.aborted) {
      const next = [...waiting].slice(0, limits.feedIdsMax);
      loading = new Set(next);
      waiting = new Set([...waiting].filter((feedId) => !loading.has(feedId)));
      await load(next);
      if (waiting.size > 0) await pause(pauseMs, signal);
    }
  };
  return {
    load: (feedIds) => {
      waiting = new Set([...feedIds.filter((feedId) => !loading.has(feedId)), ...waiting]);
      if (isRunning || waiting.size === 0) return;
      isRunning = true;
      loadAll()
        .catch(() => {
          waiting = new Set(); // the client has retried; whoever still needs them asks again
        })
        .finally(() => {
          isRunning = false;
          loading = new Set();
        });
    },
  };
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
