// A deadline for handlers: a request whose handler never answers gets 503, instead of a connection that waits forever (D228).
import { errorOf } from '@sealpost/protocol';
import type { Answer } from './answer.ts';

/** Longer than any read: those of PostgreSQL end after `read_ms`, and long work is bounded by what it may read. */
export const answerMaxMs = 30_000;
const lookEveryMs = 1_000;

type Waiting = { readonly untilMs: number; readonly giveUp: () => void };

/** Makes what bounds a promised answer. One timer looks after all of them: a timer for each would cost every request. */
export const createAnswerDeadline = (monotonicMs: () => number) => {
  const waiting = new Set<Waiting>(); // oldest first, because all wait equally long
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    const nowMs = monotonicMs();
    if (waiting.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    for (const one of waiting) {
      if (one.untilMs > nowMs) return;
      one.giveUp();
    }
  };
  /** What the answer resolves to or throws; rejects with `store_unavailable` after `answerMaxMs`. An answer that comes later is dropped. */
  return (answer: Promise<Answer>): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => {
        waiting.delete(entry);
        const cause = new Error(`The handler did not answer within ${answerMaxMs} ms.`);
        reject(errorOf('store_unavailable', {}, { cause }));
      };
      const entry: Waiting = { untilMs: monotonicMs() + answerMaxMs, giveUp };
      waiting.add(entry);
      timer ??= setInterval(look, lookEveryMs).unref();
      answer.then(
        (given) => {
          if (waiting.delete(entry)) resolve(given);
          else given.release?.();
        },
        (error) => {
          waiting.delete(entry);
          reject(error); // without effect once it was given up
        },
      );
    });
};
