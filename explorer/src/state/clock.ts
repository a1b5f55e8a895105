// The present moment as pages show it: one timer for all ages and countdowns, and the server's clock rather than this machine's.
import { type ReadonlySignal, signal } from '@preact/signals';

/** Milliseconds, by the server's clock once it has told it; renewed twice a second while the page is in view. */
export type Clock = {
  readonly nowMs: ReadonlySignal<number>;
  /** Asks for the server's time now, and again whenever the page comes back into view. */
  readonly follow: (ask: () => Promise<number>) => void;
};

const everyMs = 500;

/** What the clock needs of a window. */
export type Timers = Pick<Window, 'setInterval'> & { readonly document: Pick<Document, 'hidden' | 'addEventListener'> };

export const createClock = ({ document, setInterval }: Timers, machineMs: () => number = Date.now): Clock => {
  let offsetMs = 0;
  const nowMs = signal(machineMs());
  const tick = (): void => {
    if (!document.hidden) nowMs.value = machineMs() + offsetMs;
  };
  setInterval(tick, everyMs);
  const correct = async (ask: () => Promise<number>): Promise<void> => {
    const sentMs = machineMs();
    const serverMs = await ask().catch(() => undefined); // this machine's clock will do until the next time
    if (serverMs === undefined) return;
    // The server looked at its clock somewhere between request and answer.
    offsetMs = serverMs - (sentMs + machineMs()) / 2;
    tick();
  };
  return {
    nowMs,
    follow: (ask) => {
      void correct(ask);
      document.addEventListener('visibilitychange', () => {
        tick();
        if (!document.hidden) void correct(ask);
      });
    },
  };
};
