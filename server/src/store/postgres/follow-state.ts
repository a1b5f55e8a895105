// Reports when a process has learned nothing of what others append and change for a while, because every look at the database failed, and each failure
// from then on until one works.
import { createFailureState, type FailureState } from '../../runtime/failure-state.ts';
import type { StoreEvent } from '../store-event.ts';

export type FollowState = Pick<FailureState<unknown>, 'failed' | 'worked' | 'close'>;

/** A fail-over takes less. */
const graceMs = 10_000;

export const createFollowState = (tell: (event: StoreEvent) => void, nowMs?: () => number): FollowState => {
  const report = (reason: string, isNews: boolean): void => tell({ kind: 'followingStopped', reason, isNews });
  const state = createFailureState<string>({
    graceMs,
    began: (reason) => report(reason, true),
    continued: report,
    ended: (seconds) => tell({ kind: 'followingResumed', seconds }),
    nowMs,
  });
  return { ...state, failed: (error) => state.failed(error instanceof Error ? error.message : String(error)) };
};
