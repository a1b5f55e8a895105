// Those who want to know of a change in memory.

export const createListeners = () => {
  const listeners = new Set<() => void>();
  return {
    /** Returns the way to stop. */
    listen: (wake: () => void): (() => void) => {
      // The same function may listen twice, and stop one of them.
      const own = (): void => wake();
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    wake: (): void => {
      for (const wake of [...listeners]) if (listeners.has(wake)) wake();
    },
  };
};
