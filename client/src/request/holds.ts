// The Retry-After of each server: none is asked before it is over, and it delays no other.

export type Holds = {
  /** Call after each failure of a server, with its Retry-After, or 0. */
  readonly hold: (retryAfterMs: number, ...urls: readonly string[]) => void;
  /** How long it is held; where there are several URLs, until the last of them is free. */
  readonly heldMs: (...urls: readonly string[]) => number;
};

/** `monotonicMs` is a monotonic clock. */
export const createHolds = (monotonicMs: () => number): Holds => {
  const untilMs = new Map<string, number>();
  return {
    hold: (retryAfterMs, ...urls) => {
      for (const url of urls) untilMs.set(url, monotonicMs() + retryAfterMs);
    },
    heldMs: (...urls) => Math.max(0, ...urls.map((url) => (untilMs.get(url) ?? 0) - monotonicMs())),
  };
};
