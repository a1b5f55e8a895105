// Tracks whether a process learns of what others append and change: reports once when every look at the database has failed for a while, and once when
// one works again.
import type { StoreEvent } from '../store-event.ts';

/** A fail-over takes less. */
const graceMs = 10_000;

export type FollowState = {
  readonly failed: (error: unknown) => void;
  readonly worked: () => void;
  readonly close: () => void;
};

export const createFollowState = (
  tell: (event: StoreEvent) => void,
  nowMs: () => number = () => performance.now(),
): FollowState => {
  let failingSinceMs: number | undefined;
  let isStopped = false;
  let isClosed = false; // a look may still be in progress
  return {
    failed: (error) => {
      if (isClosed) return;
      failingSinceMs ??= nowMs();
      if (isStopped || nowMs() - failingSinceMs < graceMs) return;
      isStopped = true;
      tell({ kind: 'followingStopped', reason: error instanceof Error ? error.message : String(error) });
    },
    worked: () => {
      if (isClosed) return;
      if (isStopped && failingSinceMs !== undefined)
        tell({ kind: 'followingResumed', seconds: (nowMs() - failingSinceMs) / 1_000 });
      [failingSinceMs, isStopped] = [undefined, false];
    },
    close: () => {
      isClosed = true;
    },
  };
};
