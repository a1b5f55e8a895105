// Wakes listeners when a version has grown: at once in the process that changed it, by polling in the others.

/** `check` looks now; while there are listeners, `version` is polled every `pollMs`. */
export const createWake = (version: () => number, pollMs: number) => {
  const listeners = new Set<() => void>();
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
    if (listeners.size === 0) return;
    const now = look();
    if (now === seen) return;
    seen = now;
    for (const wake of [...listeners]) wake();
  };
  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const listen = (wake: () => void): (() => void) => {
    if (listeners.size === 0) seen = look();
    listeners.add(wake);
    timer ??= setInterval(check, pollMs).unref();
    return () => {
      listeners.delete(wake);
      if (listeners.size === 0) stop();
    };
  };
  return { listen, check, close: stop };
};
