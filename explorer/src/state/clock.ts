// The current time for all ages and countdowns: one timer, by the server's clock rather than this machine's.
import { type ReadonlySignal, signal } from '@preact/signals';

/** Milliseconds by the server's clock once it is known; updated twice a second while the page is visible. */
export type Clock = {
  readonly nowMs: ReadonlySignal<number>;
  /** The same at this instant, also while the page is hidden. */
  readonly read: () => number;
  /** Reads the server's time now, and again whenever the page becomes visible. */
  readonly follow: (ask: () => Promise<number>) => void;
  /** Runs from this time on at this speed, as the time of a sandbox does; 0 stands still. */
  readonly runFrom: (timeMs: number, speed: number) => void;
};

const everyMs = 500;

/** The parts of a window that the clock uses. */
export type Timers = Pick<Window, 'setInterval'> & { readonly document: Pick<Document, 'hidden' | 'addEventListener'> };

export const createClock = ({ document, setInterval }: Timers, machineMs: () => number = Date.now): Clock => {
  let offsetMs = 0;
  let sandbox: { readonly timeMs: number; readonly readMs: number; readonly speed: number } | undefined;
  const nowMs = signal(machineMs());
  const read = (): number =>
    sandbox === undefined ? machineMs() + offsetMs : sandbox.timeMs + (machineMs() - sandbox.readMs) * sandbox.speed;
  const tick = (): void => {
    if (!document.hidden) nowMs.value = read();
  };
  setInterval(tick, everyMs);
  const correct = async (ask: () => Promise<number>): Promise<void> => {
    const sentMs = machineMs();
    const serverMs = await ask().catch(() => undefined); // keeps the current offset until the next time
    if (serverMs === undefined) return;
    // Assumes that the server read its clock halfway between request and response.
    offsetMs = serverMs - (sentMs + machineMs()) / 2;
    tick();
  };
  return {
    nowMs,
    read,
    runFrom: (timeMs, speed) => {
      sandbox = { timeMs, readMs: machineMs(), speed };
      tick();
    },
    follow: (ask) => {
      void correct(ask);
      document.addEventListener('visibilitychange', () => {
        tick();
        if (!document.hidden) void correct(ask);
      });
    },
  };
};
