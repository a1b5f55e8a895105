// Virtual time: timers, messages and faults are events in one queue, run one after the other. Everything that an event sets off runs before the next.
const { setImmediate: realImmediate } = globalThis;

export type Event = { cancelled: boolean };

type Entry = Event & {
  readonly atMs: number;
  readonly order: number;
  readonly owner: number | undefined;
  readonly act: () => void;
  /** Does it touch no code of a node? Then nothing has to settle after it. */
  readonly isQuiet: boolean;
};

export type EventOptions = { readonly owner?: number | undefined; readonly isQuiet?: boolean };

export type Executor = {
  readonly nowMs: () => number;
  /** How many have run. */
  readonly events: () => number;
  readonly after: (ms: number, act: () => void, options?: EventOptions) => Event;
  /** At a moment, not before now. What was asked for the same moment occurs in the order of the calls, whenever these were: a difference would be rounded. */
  readonly at: (ms: number, act: () => void, options?: EventOptions) => Event;
  /** The process whose code runs; timers that it sets end with it. */
  readonly owner: () => number | undefined;
  /** Ends a process: none of its events occurs any more. */
  readonly kill: (owner: number) => void;
  /** Runs events until the queue is empty, a time is reached, or `isOver`; calls `afterEvent` after each that a node took part in. */
  readonly run: (untilMs: number, afterEvent: () => void, isOver?: () => boolean) => Promise<void>;
};

const isBefore = (a: Entry, b: Entry): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

/** A binary heap. */
const createQueue = () => {
  const heap: Entry[] = [];
  const at = (i: number): Entry => heap[i] as Entry; // callers stay inside
  const swap = (i: number, j: number): void => {
    const one = at(i);
    heap[i] = at(j);
    heap[j] = one;
  };
  const sink = (): void => {
    for (let i = 0; ; ) {
      const [left, right] = [2 * i + 1, 2 * i + 2];
      let first = i;
      if (left < heap.length && isBefore(at(left), at(first))) first = left;
      if (right < heap.length && isBefore(at(right), at(first))) first = right;
      if (first === i) return;
      swap(i, first);
      i = first;
    }
  };
  return {
    first: (): Entry | undefined => heap[0],
    push: (entry: Entry): void => {
      heap.push(entry);
      for (let i = heap.length - 1; i > 0; ) {
        const parent = (i - 1) >> 1;
        if (!isBefore(at(i), at(parent))) return;
        swap(i, parent);
        i = parent;
      }
    },
    pop: (): void => {
      const last = heap.pop();
      if (last === undefined || heap.length === 0) return;
      heap[0] = last;
      sink();
    },
  };
};

/** Steps that the event loop runs in one round, each with all promises before it settled. Rounds cost more than steps: they ask the system for events. */
const stepsPerRound = 64;

/** Calls `step` until it returns false, each time after all promises that can settle have settled. */
const eachSettled = (step: () => boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    let isOver = false;
    const end = (act: () => void): void => {
      isOver = true;
      act();
    };
    const one = (): void => {
      if (isOver) return;
      try {
        if (!step()) end(resolve);
      } catch (error) {
        end(() => reject(error));
      }
    };
    const round = (): void => {
      if (isOver) return;
      for (let i = 0; i < stepsPerRound; i++) realImmediate(one);
      realImmediate(round);
    };
    round();
  });

export const createExecutor = (): Executor => {
  const queue = createQueue();
  const dead = new Set<number>();
  let nowMs = 0;
  let [order, events] = [0, 0];
  let owner: number | undefined;
  const at = (ms: number, act: () => void, options: EventOptions = {}): Event => {
    const entry = {
      atMs: Math.max(nowMs, ms),
      order: order++,
      act,
      owner: options.owner,
      isQuiet: options.isQuiet ?? false,
      cancelled: false,
    };
    queue.push(entry);
    return entry;
  };
  return {
    nowMs: () => nowMs,
    events: () => events,
    owner: () => owner,
    kill: (one) => void dead.add(one),
    at,
    after: (ms, act, options) => at(nowMs + ms, act, options),
    run: (untilMs, afterEvent, isOver = () => false) => {
      let hasActed = false;
      const runNext = (): boolean => {
        if (hasActed) {
          hasActed = false;
          owner = undefined;
          afterEvent();
          if (isOver()) return false;
        }
        for (let next = queue.first(); next !== undefined && next.atMs <= untilMs; next = queue.first()) {
          queue.pop();
          if (next.cancelled || (next.owner !== undefined && dead.has(next.owner))) continue;
          nowMs = Math.max(nowMs, next.atMs);
          owner = next.owner;
          events += 1;
          next.act();
          if (next.isQuiet) continue;
          hasActed = true;
          return true;
        }
        nowMs = Math.max(nowMs, Math.min(untilMs, Number.MAX_SAFE_INTEGER));
        return false;
      };
      return eachSettled(runNext);
    },
  };
};
