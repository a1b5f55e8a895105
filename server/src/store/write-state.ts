// Tracks whether an environment of a store can be written: reports once when writing stops, retries every second, and reports once when it works again.
import type { StoreError, WritingPart, WritingStop } from './store.ts';
import type { StoreEvent } from './store-event.ts';

export type WritingTimes = {
  /** Between two tries while writing has stopped. */
  readonly probeEveryMs?: number;
  /** A write that takes longer than this counts as stopped, though it continues. */
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
  readonly probeEveryMs?: number;
};

export const createWriteState = (options: WriteStateOptions): WriteState => {
  const { part, tell, probe, nowMs = Date.now, probeEveryMs = 1_000 } = options;
  let stop: WritingStop | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isProbing = false;
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
      if (stop?.code === 'store_taken_over') return;
      const isNews = stop === undefined || code === 'store_taken_over';
      stop = { part, code, reason: message, sinceMs: stop?.sinceMs ?? nowMs() };
      if (isNews) tell({ kind: 'writingStopped', ...stop });
      if (code === 'store_taken_over') endProbes();
      else timer ??= setInterval(() => void tryWriting(), probeEveryMs).unref();
    },
    worked: () => {
      if (stop === undefined || stop.code === 'store_taken_over') return;
      tell({ kind: 'writingResumed', part, seconds: Math.max(0, nowMs() - stop.sinceMs) / 1_000 }); // the clock may have been set back
      stop = undefined;
      endProbes();
    },
    current: () => stop,
    close: endProbes,
  };
};
