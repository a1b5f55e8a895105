// Owns knowing when there is too much to do: a timer that comes late means that requests wait, and then new ones are shed at once.

export type Pressure = { readonly isHigh: () => boolean; readonly lagMs: () => number; readonly stop: () => void };

const tickMs = 50;

/** Watches the loop. Shedding begins above `lagMaxMs` of delay and ends below half of it. */
export const watchPressure = (lagMaxMs: number, monotonicMs: () => number): Pressure => {
  let lag = 0;
  let high = false;
  let expected = monotonicMs() + tickMs;
  const timer = setInterval(() => {
    const now = monotonicMs();
    lag = Math.max(0, now - expected);
    expected = now + tickMs;
    high = lag > (high ? lagMaxMs / 2 : lagMaxMs);
  }, tickMs).unref();
  return { isHigh: () => high, lagMs: () => lag, stop: () => clearInterval(timer) };
};
