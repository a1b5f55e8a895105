// Reports once when a replica has served no read of history for a while, and once when it serves again.
import { createFailureState, type FailureState } from '../../runtime/failure-state.ts';
import type { StoreEvent } from '../store-event.ts';

export type ReplicaUse = Pick<FailureState<string>, 'failed' | 'worked'>;

export const createReplicaUse = (
  replica: string,
  tell: (event: StoreEvent) => void,
  nowMs?: () => number,
): ReplicaUse =>
  createFailureState({
    // To be behind for a moment is normal.
    graceMs: 10_000,
    attemptsMin: 5,
    began: (reason) => tell({ kind: 'replicaUnused', replica, reason }),
    ended: (seconds) => tell({ kind: 'replicaUsed', replica, seconds }),
    nowMs,
  });
