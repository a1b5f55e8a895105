// Wakes listeners: at once in the process that changed something, by polling in the others.

export function createListeners() {
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
    count: (): number => listeners.size,
  };
}

/** `check` looks now; while there are listeners, `version` is polled every `pollMs`. */
export function createWake(version: () => number, pollMs: number) {
  const listeners = createListeners();
  let seen = 0;
  let timer: NodeJS.Timeout | undefined;
  /** A store that cannot be read throws to its callers; here the error could not be caught. */
  const look = (): number => {
    try {
      return version();
    } catch {
      return seen;
    }
  };
  const check = (): void => {
    if (listeners.count() === 0) return;
    const now = look();
    if (now === seen) return;
    seen = now;
    listeners.wake();
  };
  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const listen = (wake: () => void): (() => void) => {
    if (listeners.count() === 0) seen = look();
    const end = listeners.listen(wake);
    timer ??= setInterval(check, pollMs).unref();
    return () => {
      end();
      if (listeners.count() === 0) stop();
    };
  };
  return { listen, check, close: stop };
}
