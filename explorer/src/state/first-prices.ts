// The first value of streams: the newest report of each, in one request per 100 streams, one request at a time.
import type { Client } from '@sealpost/client';
import { limits, type ReportJson } from '@sealpost/protocol';

export type FirstParts = {
  readonly client: Pick<Client, 'latestMany'>;
  readonly onReport: (report: ReportJson) => void;
  /** Called with the streams of each response that have no report. */
  readonly onEmpty: (feedIds: readonly string[]) => void;
  readonly signal: AbortSignal;
  /** Between two requests, so that 2,000 streams stay within the rate limit; milliseconds. */
  readonly pauseMs?: number;
};

export type FirstPrices = {
  /** Loads these streams before those that still wait. Streams that wait already are not loaded twice. */
  readonly load: (feedIds: readonly string[]) => void;
};

export const createFirstPrices = (parts: FirstParts): FirstPrices => {
  let waiting: ReadonlySet<string> = new Set();
  let loading: ReadonlySet<string> = new Set();
  const loadAll = async (): Promise<void> => {
    while (waiting.size > 0 && !parts.signal.aborted) {
      const next = [...waiting].slice(0, limits.feedIdsMax);
      loading = new Set(next);
      waiting = new Set([...waiting].filter((feedId) => !loading.has(feedId)));
      await loadSome(next, parts);
      if (waiting.size > 0) await pause(parts);
    }
  };
  let isRunning = false;
  return {
    load: (feedIds) => {
      waiting = new Set([...feedIds.filter((feedId) => !loading.has(feedId)), ...waiting]);
      if (isRunning || waiting.size === 0) return;
      isRunning = true;
      const stop = (): void => {
        isRunning = false;
        loading = new Set();
      };
      loadAll()
        .catch(() => {
          waiting = new Set(); // the client has retried; live reports have the values too
        })
        .finally(stop);
    },
  };
};

const loadSome = async (feedIds: readonly string[], { client, onReport, onEmpty, signal }: FirstParts) => {
  const { reports, missing } = await client.latestMany(feedIds, { signal });
  if (signal.aborted) return;
  reports.forEach(onReport);
  onEmpty(missing.map(({ feedID }) => feedID));
};

const pause = ({ signal, pauseMs = 150 }: FirstParts): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, pauseMs);
    const stop = (): void => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
