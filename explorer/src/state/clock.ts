// The current time for all ages and countdowns: one timer, by the server's clock rather than this machine's.
import { type ReadonlySignal, signal } from '@preact/signals';
import { type BackoffRules, backOffMs } from '@sealpost/client';

/** Milliseconds by the server's clock once it is known; updated twice a second while the page is visible. */
export type Clock = {
  readonly nowMs: ReadonlySignal<number>;
  /** The same at this instant, also while the page is hidden. */
  readonly read: () => number;
  /**
   * Reads the server's time now, and again whenever the page becomes visible; while it is visible, also after a failure, with back-off, and after a
   * change of this machine's clock.
   */
  readonly follow: (ask: () => Promise<number>) => void;
  /** Runs from this time on at this speed, as the time of a sandbox does; 0 stands still. */
  readonly runFrom: (timeMs: number, speed: number) => void;
};

const everyMs = 500;
const retryRules: BackoffRules = { minMs: 1_000, maxMs: 60_000 };
/** If this machine's two clocks differ by more, one was set, or one stopped while the machine slept. Ages are shown in seconds. */
const jumpMs = 1_000;

/** The parts of a window that the clock uses. */
export type Timers = Pick<Window, 'setInterval'> & { readonly document: Pick<Document, 'hidden' | 'addEventListener'> };

/** This machine's clocks at one instant. Nobody can set the steady one, but in some browsers it stops while the machine sleeps. */
type Instant = { readonly machineMs: number; readonly steadyMs: number };

/** What the time was at an instant, and how fast it runs. */
type Reading = Instant & { readonly timeMs: number; readonly speed: number };

export function createClock(
  { document, setInterval }: Timers,
  machineMs: () => number = Date.now,
  steadyMs: () => number = () => performance.now(),
): Clock {
  const instant = (): Instant => ({ machineMs: machineMs(), steadyMs: steadyMs() });
  let reading: Reading = { ...instant(), timeMs: machineMs(), speed: 1 };
  let isSandbox = false;
  const read = (): number => reading.timeMs + elapsedMs(reading, instant()) * reading.speed;
  const nowMs = signal(read());
  const start = (timeMs: number, speed: number): void => {
    reading = { ...instant(), timeMs, speed };
    tick();
  };
  let ask: (() => Promise<number>) | undefined;
  let isAsking = false;
  let failures = 0;
  let retryAtMs = 0;
  const correct = async (): Promise<void> => {
    // The time of a sandbox is read by who calls runFrom.
    if (ask === undefined || isAsking || isSandbox) return;
    isAsking = true;
    const sent = instant();
    const serverMs = await ask().catch(() => undefined); // keeps the current reading until the next time
    isAsking = false;
    if (isSandbox) return;
    const received = instant();
    if (serverMs === undefined || Math.abs(aheadMs(sent, received)) > jumpMs) {
      retryAtMs = steadyMs() + backOffMs(retryRules, failures++, Math.random);
      return;
    }
    failures = 0;
    // Assumes that the server read its clock halfway between request and response.
    start(serverMs + elapsedMs(sent, received) / 2, 1);
  };
  const tick = (): void => {
    if (document.hidden) return;
    nowMs.value = read();
    const isDue = failures > 0 ? steadyMs() >= retryAtMs : Math.abs(aheadMs(reading, instant())) > jumpMs;
    if (isDue) void correct();
  };
  setInterval(tick, everyMs);
  return {
    nowMs,
    read,
    runFrom: (timeMs, speed) => {
      isSandbox = true;
      start(timeMs, speed);
    },
    follow: (asked) => {
      ask = asked;
      void correct();
      document.addEventListener('visibilitychange', () => {
        tick();
        if (!document.hidden) void correct();
      });
    },
  };
}

/** By how much the machine's clock ran further than the steady one. */
const aheadMs = (from: Instant, to: Instant): number => to.machineMs - from.machineMs - (to.steadyMs - from.steadyMs);

/** By the machine's clock, unless it was set back. If it is ahead, the machine most likely slept. */
const elapsedMs = (from: Instant, to: Instant): number =>
  aheadMs(from, to) < -jumpMs ? Math.round(to.steadyMs - from.steadyMs) : to.machineMs - from.machineMs;
