// Tracks whether a replica serves history: reports once when no read has worked on it for a while, and once when one works again.
import type { StoreEvent } from '../store-event.ts';

/** A replica counts as unused only after so long and so many attempts: to be behind for a moment is normal. */
const graceMs = 10_000;
const attemptsMin = 5;

export type ReplicaUse = {
  readonly failed: (reason: string) => void;
  readonly worked: () => void;
};

export const createReplicaUse = (
  replica: string,
  tell: (event: StoreEvent) => void,
  nowMs: () => number = () => performance.now(),
): ReplicaUse => {
  let failing: { readonly sinceMs: number; attempts: number } | undefined;
  let isUnused = false;
  return {
    failed: (reason) => {
      failing ??= { sinceMs: nowMs(), attempts: 0 };
      failing.attempts += 1;
      if (isUnused || failing.attempts < attemptsMin || nowMs() - failing.sinceMs < graceMs) return;
      isUnused = true;
      tell({ kind: 'replicaUnused', replica, reason });
    },
    worked: () => {
      if (isUnused && failing !== undefined)
        tell({ kind: 'replicaUsed', replica, seconds: (nowMs() - failing.sinceMs) / 1_000 });
      [failing, isUnused] = [undefined, false];
    },
  };
};
