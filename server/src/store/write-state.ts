// Whether an environment of a store can be written to: when writing stops it is told once, then tried every second, and told once when it works again.
import type { StoreError, WritingPart, WritingStop } from './store.ts';
import type { StoreEvent } from './store-event.ts';

export type WritingTimes = {
  /** Between two tries while writing has stopped. */
  readonly probeEveryMs?: number;
  /** A write that takes longer than this counts as stopped, though it goes on. */
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
  /** Tries a small write, whose outcome it tells `failed` or `worked`. */
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
    await probe().catch(() => {}); // it has told why
    isProbing = false;
  };
  const endProbes = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  return {
    failed: ({ code, message }) => {
      // A place that was lost does not come back, whatever fails later.
      if (stop?.code === 'store_taken_over') return;
      const isNews = stop === undefined || code === 'store_taken_over';
      stop = { part, code, reason: message, sinceMs: stop?.sinceMs ?? nowMs() };
      if (isNews) tell({ kind: 'writingStopped', ...stop });
      if (code === 'store_taken_over') endProbes();
      else timer ??= setInterval(() => void tryWriting(), probeEveryMs).unref();
    },
    worked: () => {
      if (stop === undefined || stop.code === 'store_taken_over') return;
      tell({ kind: 'writingResumed', part, seconds: (nowMs() - stop.sinceMs) / 1_000 });
      stop = undefined;
      endProbes();
    },
    current: () => stop,
    close: endProbes,
  };
};
