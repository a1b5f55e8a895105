// Holds back the answers to shed requests. A rejection costs nearly as much as an answer, and a client that gets it at once may ask again at once:
// thousands of them would keep a server busy with rejections alone. Those that wait for one do not send, and a few seconds make them few (D142).

export type RejectionParts<T> = {
  readonly monotonicMs: () => number;
  readonly reject: (shed: T) => void;
  /** Nobody is to wait any longer: the server stops. */
  readonly isUrgent: () => boolean;
};

/** None waits for longer. */
const waitMaxMs = 4_000;
/** As many as this in a second take no time worth saving: one does not wait where there are few. */
const perSecondMin = 200;
/** More than this are rejected at once: each holds a request and its response. */
export const heldMax = 8_192;
const tickMs = 20;

/** Rejects in the order in which requests came, evenly over time, and faster once more of them are held. */
export const createRejections = <T>({ monotonicMs, reject, isUrgent }: RejectionParts<T>) => {
  let held: T[] = [];
  let timer: NodeJS.Timeout | undefined;
  let [lastMs, due, perMs] = [0, 0, 0];
  const release = (): void => {
    const nowMs = monotonicMs();
    perMs = Math.max(perMs, held.length / waitMaxMs);
    due += Math.max(nowMs - lastMs, tickMs) * perMs;
    lastMs = nowMs;
    const count = isUrgent() ? held.length : Math.min(Math.floor(due), held.length);
    due -= count;
    const released = held.slice(0, count);
    held = held.slice(count);
    if (held.length === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    for (const shed of released) reject(shed);
  };
  return {
    add: (shed: T): void => {
      if (held.length >= heldMax || isUrgent()) return void reject(shed);
      held.push(shed);
      if (timer !== undefined) return;
      [lastMs, due, perMs] = [monotonicMs(), 0, perSecondMin / 1_000];
      timer = setInterval(release, tickMs);
    },
  };
};
