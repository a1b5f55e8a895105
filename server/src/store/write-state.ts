// Tracks whether a part of a store can be written: reports once when writing stops, retries every second, and reports once when it works again.
import { createFailureState } from '../runtime/failure-state.ts';
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

export function createWriteState(options: WriteStateOptions): WriteState {
  const { part, tell, probe, nowMs, probeEveryMs = 1_000, graceMs } = options;
  let timer: NodeJS.Timeout | undefined;
  let isProbing = false;
  let isClosed = false; // a write may still be in progress
  const stopOf = ({ code, message }: StoreError): WritingStop => ({ part, code, reason: message });
  const report = (error: StoreError): void => tell({ kind: 'writingStopped', ...stopOf(error) });
  const state = createFailureState<StoreError>({
    graceMs,
    nowMs,
    began: report,
    ended: (seconds) => tell({ kind: 'writingResumed', part, seconds }),
  });
  /** A lost place does not come back, even if something else fails later. */
  const isLost = (): boolean => state.cause()?.code === 'store_taken_over';
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
    failed: (error) => {
      if (isClosed || isLost()) return;
      const hadStopped = state.cause() !== undefined;
      state.failed(error);
      if (hadStopped && isLost()) report(error);
      if (error.code === 'store_taken_over') endProbes();
      else timer ??= setInterval(() => void tryWriting(), probeEveryMs).unref();
    },
    worked: () => {
      if (isClosed || isLost()) return;
      state.worked();
      endProbes();
    },
    current: () => {
      const error = state.cause();
      return error && stopOf(error);
    },
    close: () => {
      isClosed = true;
      endProbes();
    },
  };
}
