// Tracks whether a part of a store can be written: reports once when writing stops, retries every second, and reports once when it works again.
import type { StoreError, WritingPart, WritingStop } from './store.ts';
import type { StoreEvent } from './store-event.ts';

export type WritingTimes = {
  /** Between two tries while writing has stopped. */
  readonly probeEveryMs?: number | undefined;
  /** A write that takes longer than this counts as stopped, though it continues; so do those to a database that fail for as long. */
  readonly stallMs?: number;
};

export type WriteState = {
  readonly failed: (error: StoreError) => void;
  readonly worked: () => void;
  /** Why writing has stopped; undefined while it works. */
  readonly current: () => WritingStop | undefined;
  readonly close: () => void;
};

export type WriteStateOptions = {
  readonly part: WritingPart;
  readonly tell: (event: StoreEvent) => void;
  /** Tries a small write and calls `failed` or `worked`. */
  readonly probe: () => Promise<unknown>;
  readonly nowMs?: () => number;
  readonly probeEveryMs?: number | undefined;
  /** Failures count as a stop once nothing has worked for this long; until then it is only tried again. */
  readonly graceMs?: number;
};

export const createWriteState = (options: WriteStateOptions): WriteState => {
  const { part, tell, probe, nowMs = () => performance.now(), probeEveryMs = 1_000, graceMs = 0 } = options;
  let stop: WritingStop | undefined;
  let failingSinceMs: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isProbing = false;
  let isClosed = false; // a write may still be in progress
  const tryWriting = async (): Promise<void> => {
    if (isProbing) return;
    isProbing = true;
    await probe().catch(() => {}); // it reported why
    isProbing = false;
  };
  const endProbes = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  return {
    failed: ({ code, message }) => {
      // A lost place does not come back, even if something else fails later.
      if (isClosed || stop?.code === 'store_taken_over') return;
      failingSinceMs ??= nowMs();
      const isNews = stop === undefined || code === 'store_taken_over';
      if (nowMs() - failingSinceMs >= graceMs) {
        stop = { part, code, reason: message };
        if (isNews) tell({ kind: 'writingStopped', ...stop });
      }
      if (code === 'store_taken_over') endProbes();
      else timer ??= setInterval(() => void tryWriting(), probeEveryMs).unref();
    },
    worked: () => {
      if (isClosed || stop?.code === 'store_taken_over') return;
      if (stop !== undefined && failingSinceMs !== undefined)
        tell({ kind: 'writingResumed', part, seconds: (nowMs() - failingSinceMs) / 1_000 });
      [stop, failingSinceMs] = [undefined, undefined];
      endProbes();
    },
    current: () => stop,
    close: () => {
      isClosed = true;
      endProbes();
    },
  };
};
