// Runs asynchronous work one at a time, in the order of the calls.
export type Queue = { readonly run: <T>(work: () => Promise<T>) => Promise<T> };

/** A failed piece of work rejects its own promise only. */
export const createQueue = (): Queue => {
  let last: Promise<unknown> = Promise.resolve();
  return {
    run: (work) => {
      const ended = last.then(work);
      last = ended.catch(() => {});
      return ended;
    },
  };
};
