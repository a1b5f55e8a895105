// Notices workers whose event loop does not run (D235): each is pinged every second, and any message of it is an answer. Pings are counted, not time, so
// nothing counts while this process itself was stopped, suspended or kept from running.

const pingEveryMs = 1_000;
/** So many pings in a row without an answer make a worker silent. */
const silentAfter = 10;
/** So many, and it hangs. */
const hungAfter = 30;

export type Pinged = {
  /** Pings since its last message. */
  unanswered: number;
};

/** For how many seconds, at least, a silent one has not answered; undefined for others. */
export const silentSeconds = ({ unanswered }: Pinged): number | undefined =>
  unanswered > silentAfter ? ((unanswered - 1) * pingEveryMs) / 1_000 : undefined;

/** Pings the listed until stopped; calls back once when one becomes silent, and once when it hangs. */
export const watchSilence = <One extends Pinged>(
  list: () => readonly One[],
  on: Readonly<Record<'ping' | 'silent' | 'hung', (one: One) => void>>,
): (() => void) => {
  const timer = setInterval(() => {
    for (const one of list()) {
      const before = one.unanswered;
      one.unanswered += 1;
      if (before === silentAfter) on.silent(one);
      if (before === hungAfter) on.hung(one);
      on.ping(one);
    }
  }, pingEveryMs);
  return () => clearInterval(timer);
};
