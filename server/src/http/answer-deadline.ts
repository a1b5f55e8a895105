// A deadline for handlers: a request whose handler never answers gets 503, instead of a connection that waits forever (D228).
import { errorOf } from '@sealpost/protocol';
import { createLinkedList } from '../runtime/linked-list.ts';
import type { Answer } from './answer.ts';

/** Longer than any read: those of PostgreSQL end after `read_ms`, and long work is bounded by what it may read. */
export const answerMaxMs = 30_000;
const lookEveryMs = 1_000;

type Waiting = { readonly untilMs: number; readonly giveUp: () => void };

/** Makes what bounds a promised answer. One timer looks after all of them: a timer for each would cost every request. */
export const createAnswerDeadline = (monotonicMs: () => number) => {
  const waiting = createLinkedList<Waiting>(); // all wait equally long, so the oldest is the first to give up
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    const nowMs = monotonicMs();
    if (waiting.first() === undefined) {
      clearInterval(timer);
      timer = undefined;
    }
    for (let one = waiting.first(); one !== undefined && one.untilMs <= nowMs; one = waiting.first()) one.giveUp();
  };
  /** What the answer resolves to or throws; rejects with `store_unavailable` after `answerMaxMs`. An answer that comes later is dropped. */
  return (answer: Promise<Answer>): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => {
        waiting.remove(link);
        const cause = new Error(`The handler did not answer within ${answerMaxMs} ms.`);
        reject(errorOf('store_unavailable', {}, { cause }));
      };
      const link = waiting.add({ untilMs: monotonicMs() + answerMaxMs, giveUp });
      timer ??= setInterval(look, lookEveryMs).unref();
      answer.then(
        (given) => {
          waiting.remove(link);
          resolve(given); // without effect once it was given up
        },
        (error) => {
          waiting.remove(link);
          reject(error); // without effect once it was given up
        },
      );
    });
};
