// Bodies in memory that is used again: each is released once its answer is sent, or will never be. Answers are asked whether they are, while others are
// sent: a listener on each response took 10 µs of a page's 200.
import type { ServerResponse } from 'node:http';

type Sending = { readonly response: ServerResponse; readonly release: () => void };

/** Answers that are asked when another body comes: more than one, so that they become fewer. */
const askedMax = 4;

export type SentBodies = {
  /** Takes a body that is about to be sent; `release` is called once, at some time after that. */
  readonly add: (response: ServerResponse, release: () => void) => void;
  /** Asks some of the answers. */
  readonly sweep: () => void;
};

export const createSentBodies = (): SentBodies => {
  const sending: Sending[] = [];
  let next = 0;
  const sweep = (): void => {
    for (let asked = 0; asked < askedMax && sending.length > 0; asked++) {
      next %= sending.length;
      const one = sending[next] as Sending; // within bounds
      if (!isOver(one.response)) {
        next += 1;
        continue;
      }
      one.release();
      const last = sending.pop() as Sending; // there is one
      if (last !== one) sending[next] = last;
    }
  };
  return {
    add: (response, release) => {
      sweep();
      sending.push({ response, release });
    },
    sweep,
  };
};

/** Is nothing of the answer in memory any more? Node counts what the system has not taken yet. */
const isOver = (response: ServerResponse): boolean =>
  response.closed || response.destroyed || response.writableFinished;
