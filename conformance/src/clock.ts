// How far the server's clock is from this one, from the Date headers of answers: each says which second it was while the request was under way, and
// what agrees with all of them narrows with every answer.

/** Bounds of the server's clock less this one. */
export type ClockBounds = { readonly lowMs: number; readonly highMs: number };

export type ClockEstimate = {
  /** Notes an answer that was made between two times of this clock. */
  readonly note: (sentMs: number, firstByteMs: number, date: string | undefined) => void;
  /** Undefined without a Date header, and if answers contradict each other: several machines, or a clock that was set. */
  readonly bounds: () => ClockBounds | undefined;
};

/** Servers make the text of a second once, and may still use it a moment later. */
const dateLateMs = 50;

export function createClockEstimate(): ClockEstimate {
  let [lowMs, highMs] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  return {
    note: (sentMs, firstByteMs, date) => {
      const secondMs = Date.parse(date ?? '');
      if (!Number.isFinite(secondMs)) return;
      lowMs = Math.max(lowMs, secondMs - firstByteMs);
      highMs = Math.min(highMs, secondMs + 1_000 + dateLateMs - sentMs);
    },
    bounds: () => (Number.isFinite(lowMs) && lowMs <= highMs ? { lowMs, highMs } : undefined),
  };
}
