// Sandbox time: starts at any moment, runs at any speed, pauses and steps. It never goes back, and it waits for the reports: it does not pass the time
// up to which the simulated network has delivered.

/** How fast sandbox time may run, in sandbox seconds per second. */
export const speedBounds = { min: 0.01, max: 10_000 } as const;

/** The last time that fits into a report with its expiry, in ms: 30 days before 2106-02-07. */
export const clockMaxMs = (2 ** 32 - 1 - 30 * 86_400) * 1_000;

/** A step is at most this long. */
export const stepMaxMs = 31 * 86_400_000;

export type ClockState = {
  readonly nowMs: number;
  readonly speed: number;
  readonly paused: boolean;
  /** How far time is behind because it waits for reports. */
  readonly behindMs: number;
};

export type SandboxClock = {
  readonly nowMs: () => number;
  readonly state: () => ClockState;
  readonly setSpeed: (speed: number) => void;
  readonly pause: () => void;
  readonly resume: () => void;
  /** Advances time by this many ms, paused or not, and returns the time that it gets to once the reports are there. */
  readonly step: (ms: number) => number;
  /** Time does not pass this until it is raised. Without a call there is no bound. */
  readonly holdAt: (ms: number) => void;
  /** Resolves at this time, or as soon as the signal is aborted. */
  readonly waitUntil: (ms: number, signal?: AbortSignal) => Promise<void>;
};

export type ClockOptions = {
  readonly startMs: number;
  readonly speed?: number;
  readonly paused?: boolean;
  /** Real time that is never set back, in ms. */
  readonly monotonicMs: () => number;
};

/** How much of what it missed time makes up for, in real time: after that it just goes on from where it is. */
const catchUpMaxMs = 10_000;
const timerMaxMs = 60_000;

/** A clock that starts running when it is made. */
export function createSandboxClock({
  startMs,
  speed: firstSpeed = 1,
  paused: startsPaused = false,
  monotonicMs,
}: ClockOptions): SandboxClock {
  let speed = checkSpeed(firstSpeed);
  let paused = startsPaused;
  let anchor = { atMs: checkTime(startMs), realMs: monotonicMs() };
  let lastMs = startMs;
  let ceilingMs = Number.POSITIVE_INFINITY;
  let steppedToMs = startMs;
  const waiters = new Set<() => void>();
  const changed = (): void => {
    for (const wake of [...waiters]) wake();
  };
  const idealMs = (): number => {
    const passedMs = paused ? 0 : (monotonicMs() - anchor.realMs) * speed;
    return Math.min(clockMaxMs, Math.max(anchor.atMs + passedMs, steppedToMs));
  };
  const nowMs = (): number => {
    lastMs = Math.max(lastMs, Math.floor(Math.min(idealMs(), ceilingMs)));
    return lastMs;
  };
  const anchorAt = (atMs: number): void => {
    anchor = { atMs, realMs: monotonicMs() };
  };
  const change = (apply: () => void): void => {
    const atMs = nowMs();
    apply();
    anchorAt(Math.max(atMs, steppedToMs)); // a step under way is reached first
    changed();
  };
  const setPaused = (wanted: boolean): void =>
    change(() => {
      paused = wanted;
      if (wanted) steppedToMs = Math.min(steppedToMs, nowMs()); // a pause ends the step that is under way
    });
  return {
    nowMs,
    state: () => {
      const now = nowMs();
      return { nowMs: now, speed, paused, behindMs: Math.max(0, Math.floor(idealMs()) - now) };
    },
    setSpeed: (wanted) => {
      const checked = checkSpeed(wanted);
      change(() => {
        speed = checked;
      });
    },
    pause: () => setPaused(true),
    resume: () => setPaused(false),
    step: (ms) => {
      steppedToMs = Math.min(clockMaxMs, Math.max(nowMs(), Math.floor(idealMs())) + checkStep(ms));
      anchorAt(steppedToMs);
      changed();
      return steppedToMs;
    },
    holdAt: (ms) => {
      ceilingMs = Math.max(ms, lastMs);
      const mostMs = Math.max(ceilingMs + catchUpMaxMs * speed, steppedToMs);
      if (idealMs() > mostMs) anchorAt(mostMs);
      changed();
    },
    waitUntil: async (ms, signal) => {
      while (signal?.aborted !== true && nowMs() < ms) {
        const isMoving = !paused && ceilingMs >= ms;
        await wakeUp(waiters, isMoving ? (ms - lastMs) / speed : undefined, signal);
      }
    },
  };
}

/** Resolves when the clock changes, after so many ms, or when the signal is aborted. */
const wakeUp = (waiters: Set<() => void>, afterMs: number | undefined, signal: AbortSignal | undefined) =>
  new Promise<void>((resolve) => {
    const wake = (): void => {
      clearTimeout(timer);
      waiters.delete(wake);
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const timer = afterMs === undefined ? undefined : setTimeout(wake, Math.min(timerMaxMs, Math.ceil(afterMs)));
    waiters.add(wake);
    signal?.addEventListener('abort', wake, { once: true });
  });

const checkSpeed = (speed: number): number => {
  if (speed >= speedBounds.min && speed <= speedBounds.max) return speed;
  throw new RangeError(`The speed is ${speed}, expected a number from ${speedBounds.min} to ${speedBounds.max}.`);
};

const checkTime = (ms: number): number => {
  if (Number.isInteger(ms) && ms >= 0 && ms <= clockMaxMs) return ms;
  throw new RangeError(`The time is ${ms}, expected whole ms from 0 to ${clockMaxMs}.`);
};

const checkStep = (ms: number): number => {
  if (Number.isInteger(ms) && ms >= 0 && ms <= stepMaxMs) return ms;
  throw new RangeError(`The step is ${ms} ms, expected a whole number from 0 to ${stepMaxMs}.`);
};
