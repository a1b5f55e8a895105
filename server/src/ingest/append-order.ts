// The order in which batches are appended, and what happens to those behind a batch that failed (D102).
import { StoreError } from '../store/store.ts';
import type { Sender } from './verifier.ts';

export type Turn = ReturnType<ReturnType<typeof createAppendOrder>['take']>;

/**
 * Appends of a sender keep the order of submission, or a batch that verified faster would make an earlier one late. When one fails, all that
 * were submitted by then, by any sender, fail with it: a sender that resumes after the newest stored report would skip the failed batch if a later one were stored
 * (D102), and where a store does not answer, each by itself would wait for all before it to fail.
 */
export const createAppendOrder = () => {
  const lastOf = new WeakMap<Sender, Promise<void>>();
  let all: Promise<void> = Promise.resolve();
  let taken = 0;
  let failed = { upTo: 0, error: undefined as unknown }; // set by a failure
  const take = (sender: Sender) => {
    const number = ++taken;
    const last = lastOf.get(sender) ?? Promise.resolve();
    const come = last.then(() => {
      if (number > failed.upTo) return;
      throw new StoreError(
        'store_unavailable',
        'An earlier batch was not stored, so this one was not tried. Retry shortly.',
        {
          cause: failed.error,
        },
      );
    });
    come.catch(() => {}); // a batch that fails earlier does not wait for its turn
    let done = (): void => {};
    const mine = new Promise<void>((resolve) => {
      done = resolve;
    });
    const ended = last.then(() => mine);
    lastOf.set(sender, ended);
    const before = all;
    all = ended.then(() => before); // not all of both: its list would hold the lists of all batches before
    const fail = (error: unknown): never => {
      if (error instanceof StoreError) failed = { upTo: taken, error };
      throw error;
    };
    return { come, done, fail };
  };
  return { take, over: () => all };
};
