// Taking turns: many who want the same thing looked at get one look, begun after they asked.

/** One step at a time; whoever wakes during one is served by the next. */
export const createCoalescer = (step: () => Promise<void>) => {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let stopped = false;
  const begin = (): Promise<void> => {
    running = (stopped ? Promise.resolve() : step()).finally(() => {
      running = undefined;
    });
    return running;
  };
  const wake = (): Promise<void> => {
    // Asked before the rest: when a step has just ended, the next one is about to begin.
    if (next !== undefined) return next;
    if (running === undefined) return begin();
    next = running
      .catch(() => {})
      .then(() => {
        next = undefined;
        return begin();
      });
    return next;
  };
  return {
    wake,
    stop: async (): Promise<void> => {
      stopped = true;
      await (next ?? running)?.catch(() => {});
    },
  };
};
