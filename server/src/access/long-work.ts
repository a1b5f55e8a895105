// Runs long work in slices: one job per account at a time, one slice at a time over all accounts, and after each slice a pause as long as the
// slice. However much one account asks for, at least half of the event loop is left for others (D140). Large answers that are made at once wait for
// each other too.
import { ApiError } from '@sealpost/protocol';
import { within } from '../runtime/deadline.ts';

export type LongWork = {
  /**
   * Runs an account's work once its earlier work has ended, however that ended. Work must not await a client: it would keep the account's
   * other work waiting. Rejects with 429 where `waitingMax` pieces of the account's work wait already; without it, the caller bounds them.
   */
  readonly run: <T>(account: string, work: () => Promise<T>, waitingMax?: number) => Promise<T>;
  /** Runs one slice when the slices before it are done. `isOver` says when its time is up. */
  readonly slice: <T>(work: (isOver: () => boolean) => Promise<T>) => Promise<T>;
};

/** Who waits for long work; `destroyed` once the connection is closed. */
export type Client = { readonly destroyed: boolean };

/** Long work was given up between two slices: its client has left. */
export class ClientGoneError extends Error {}

/** How long a slice may read; rendering what it read takes about as long again. */
const sliceMs = 2;
/** A slice may wait for a database: that is not the loop's time, and not rested for. */
const restMsMax = 5;

/** Requests of one account that may wait for each other. */
const requestsWaitingMax = 32;

/** Runs the long work of a request, which reads in the slices that it is given; rejects with `ClientGoneError` once the client has left. */
export const runForClient = <T>(
  longWork: LongWork,
  account: string,
  client: Client,
  work: (slice: LongWork['slice']) => Promise<T>,
): Promise<T> => longWork.run(account, () => work(slicesFor(longWork, client)), requestsWaitingMax);

/** Slices for work that waits for no other work of its account; they reject with `ClientGoneError` once the client has left. */
export const slicesFor =
  (longWork: LongWork, client: Client): LongWork['slice'] =>
  (read) =>
    longWork.slice(async (isOver) => {
      if (client.destroyed) throw new ClientGoneError('The client has left.');
      return read(isOver);
    });

/**
 * Runs a read that is short but makes a large answer: one of an account at a time, each in a turn of the event loop of its own. Many in one turn
 * would hold up everyone, and all their bytes would be in memory at once.
 */
export const runInTurn = <T>(longWork: LongWork, account: string, client: Client, read: () => Promise<T>): Promise<T> =>
  longWork.run(
    account,
    async () => {
      await rest(0);
      if (client.destroyed) throw new ClientGoneError('The client has left.');
      return read();
    },
    requestsWaitingMax,
  );

/** A read that takes longer is no longer waited for by those behind it; its own request gets 503 by then (D228). */
const turnMaxMs = 30_000;

/** Resolves when work has ended, however that is, or has taken too long. */
const overAfter = async (work: Promise<unknown>): Promise<void> => {
  await within(turnMaxMs, work).catch(() => {});
};

export function createLongWork(monotonicMs: () => number): LongWork {
  const waiting = new Map<string, { count: number; last: Promise<unknown> }>();
  let lastSlice: Promise<unknown> = Promise.resolve();
  const runSlice = async <T>(work: (isOver: () => boolean) => Promise<T>): Promise<T> => {
    const startedMs = monotonicMs();
    try {
      return await work(() => monotonicMs() - startedMs >= sliceMs);
    } finally {
      await rest(Math.min(restMsMax, monotonicMs() - startedMs));
    }
  };
  return {
    run: async (account, work, waitingMax = Number.POSITIVE_INFINITY) => {
      const queue = waiting.get(account) ?? { count: 0, last: Promise.resolve() };
      if (queue.count >= waitingMax)
        throw new ApiError(
          'rate_limited',
          'Too many long requests of this account are waiting. Send them one at a time.',
        );
      waiting.set(account, queue);
      queue.count += 1;
      const begun = queue.last.then(work);
      queue.last = overAfter(begun).then(() => {
        queue.count -= 1;
        if (queue.count === 0) waiting.delete(account);
      });
      return begun;
    },
    slice: (work) => {
      const mine = lastSlice.then(() => runSlice(work));
      lastSlice = overAfter(mine);
      return mine;
    },
  };
}

/** Timers count whole milliseconds; a slice that took less than one lets the loop go around once. */
const rest = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    if (ms < 1) setImmediate(resolve);
    else setTimeout(resolve, ms);
  });
