// Puts virtual time in the place of the process's timers and clock while schedules run: the product's code needs no other way to them.
import type { Event, Executor } from './executor.ts';

type Timer = { event: Event | undefined; readonly ref: () => Timer; readonly unref: () => Timer };

const createTimer = (): Timer => {
  const timer: Timer = { event: undefined, ref: () => timer, unref: () => timer };
  return timer;
};

const cancel = (timer: unknown): void => {
  const { event } = (timer ?? {}) as Partial<Timer>; // a timer of ours, or none
  if (event !== undefined) event.cancelled = true;
};

/** Runs `act` with the timers and the clock of whichever executor is current. */
export const withVirtualTime = async <T>(act: (use: (executor: Executor) => void) => Promise<T>): Promise<T> => {
  const real = {
    setTimeout: globalThis.setTimeout,
    setInterval: globalThis.setInterval,
    setImmediate: globalThis.setImmediate,
    clearTimeout: globalThis.clearTimeout,
    clearInterval: globalThis.clearInterval,
    clearImmediate: globalThis.clearImmediate,
  };
  const realNow = performance.now;
  let current: Executor | undefined;
  const executor = (): Executor => {
    if (current === undefined) throw new Error('No schedule is running.');
    return current;
  };
  const later = (ms: number, act: () => void): Event => executor().after(ms, act, { owner: executor().owner() });
  const setTimeout = (act: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): Timer => {
    const timer = createTimer();
    timer.event = later(ms, () => act(...args));
    return timer;
  };
  const setInterval = (act: () => void, ms: number): Timer => {
    const timer = createTimer();
    const again = (): void => {
      timer.event = later(ms, again);
      act();
    };
    timer.event = later(ms, again);
    return timer;
  };
  const setImmediate = (act: (...args: unknown[]) => void, ...args: unknown[]): Timer => setTimeout(act, 0, ...args);
  const clears = { clearTimeout: cancel, clearInterval: cancel, clearImmediate: cancel };
  Object.assign(globalThis, { setTimeout, setInterval, setImmediate, ...clears });
  performance.now = () => executor().nowMs();
  try {
    return await act((next) => {
      current = next;
    });
  } finally {
    Object.assign(globalThis, real);
    performance.now = realNow;
  }
};
