// When the newest reports of streams are shown: each stream five times a second at most, and those that are on the page a few per frame, so that reports
// that arrive together make no long frame.
import { batch } from '@preact/signals';

/** A stream whose newest report is to be shown. */
export type Displayed = {
  /** Whether the page shows it. */
  isOnPage: boolean;
  /** When it was last shown; by `performance.now()`. */
  shownMs: number;
};

type Frames = {
  /** Runs before the next frame; returns what cancels it. */
  readonly next: (run: () => void) => () => void;
  /** Whether there are no frames, because nobody sees the page. */
  readonly areOff: () => boolean;
};

type Display<T extends Displayed> = {
  readonly show: (one: T) => void;
  /** Drops what still waits. */
  readonly forget: () => void;
};

/** Nobody reads faster; a stream may have 25 reports per second, and what shows them takes most of a page's work. */
export const showEveryMs = 200;
/** Each takes up to 1 ms of a frame: five cells of a row, their layout and their paint. */
export const reportsPerFrame = 6;

/** The frames of the browser's page; outside of browsers there are none. */
const pageFrames: Frames = {
  next: (run) => {
    const frame = requestAnimationFrame(run);
    return () => cancelAnimationFrame(frame);
  },
  areOff: () => typeof document === 'undefined' || document.hidden,
};

const isDue = ({ shownMs }: Displayed): boolean => performance.now() - shownMs >= showEveryMs;

/** `set` shows the newest report of a stream: at once if it is not on the page, else in a later frame. */
export function createDisplay<T extends Displayed>(set: (one: T) => void, frames: Frames = pageFrames): Display<T> {
  const late = new Set<T>();
  let waiting: { readonly isForFrame: boolean; readonly cancel: () => void } | undefined;
  const show = (one: T): void => {
    late.delete(one);
    one.shownMs = performance.now();
    set(one);
  };
  const showDue = (countMax: number): void => {
    waiting = undefined;
    const due = [...late].filter(isDue).slice(0, countMax);
    batch(() => due.forEach(show));
    wait();
  };
  const waitForTimer = (): (() => void) => {
    const timer = setTimeout(showDue, showEveryMs, frames.areOff() ? Number.POSITIVE_INFINITY : reportsPerFrame);
    return () => clearTimeout(timer);
  };
  const wait = (): void => {
    if (waiting !== undefined || late.size === 0) return;
    const isForFrame = !frames.areOff() && [...late].some(isDue);
    const cancel = isForFrame ? frames.next(() => showDue(reportsPerFrame)) : waitForTimer();
    waiting = { isForFrame, cancel };
  };
  const stopWaiting = (): void => {
    waiting?.cancel();
    waiting = undefined;
  };
  return {
    show: (one) => {
      if (isDue(one) && (!one.isOnPage || frames.areOff())) batch(() => show(one));
      else late.add(one);
      // The page was hidden since: its next frame may be hours away.
      if (waiting?.isForFrame === true && frames.areOff()) stopWaiting();
      wait();
    },
    forget: () => {
      stopWaiting();
      late.clear();
    },
  };
}
