// Coalesces concurrent calls: those that arrive while a run is under way share the next one.

/** Runs one step at a time; calls during a step share the next one. */
export function createCoalescer(step: () => Promise<void>) {
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
}
