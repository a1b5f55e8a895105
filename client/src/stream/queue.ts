// The bounded queue between connections and the consumer. A full queue pauses the connections.

/** What holds the sources back while the consumer is behind. */
export type Valve = {
  /** Resolves at once while there is room, else when there is again, or when the queue has ended. */
  readonly room: () => Promise<void>;
  readonly isFull: () => boolean;
  /** Tells every change between full and room; returns how to stop listening. */
  readonly onChange: (listen: (full: boolean) => void) => () => void;
};

export type StreamQueue<T> = Valve & {
  readonly push: (value: T) => void;
  readonly next: () => Promise<IteratorResult<T, undefined>>;
  /** No more values. With an error what is queued is delivered first, then the error once; without one nothing more. */
  readonly end: (error?: unknown) => void;
};

type Waiter<T> = { resolve: (result: IteratorResult<T, undefined>) => void; reject: (error: unknown) => void };

/** A queue that says it is full at `max` and has room again at half of it. What is pushed into a full one is still kept. */
export const createQueue = <T>(max: number): StreamQueue<T> => {
  const values: T[] = [];
  const waiters: Waiter<T>[] = [];
  const listeners = new Set<(full: boolean) => void>();
  let ended: { error?: unknown } | undefined;
  let full = false;

  const settle = (): void => {
    const now = ended === undefined && (full ? values.length > max / 2 : values.length >= max);
    if (now === full) return;
    full = now;
    for (const listen of [...listeners]) listen(full);
  };
  const onChange: Valve['onChange'] = (listen) => {
    listeners.add(listen);
    return () => void listeners.delete(listen);
  };
  const done = { done: true, value: undefined } as const;
  const take = (waiter: Waiter<T>): boolean => {
    const value = values.shift();
    if (value !== undefined) waiter.resolve({ done: false, value });
    else if (ended === undefined) return false;
    else if (ended.error === undefined) waiter.resolve(done);
    else waiter.reject(ended.error);
    // The error is told once; a loop that goes on after it is simply over.
    if (value === undefined) ended = {};
    return true;
  };

  return {
    push: (value) => {
      if (ended !== undefined) return;
      const waiter = waiters.shift();
      if (waiter !== undefined) return waiter.resolve({ done: false, value });
      values.push(value);
      settle();
    },
    next: () =>
      new Promise((resolve, reject) => {
        const waiter = { resolve, reject };
        if (!take(waiter)) waiters.push(waiter);
        settle();
      }),
    end: (error) => {
      if (error === undefined) values.length = 0;
      ended = ended === undefined || error === undefined ? { error } : ended;
      for (const waiter of waiters.splice(0)) take(waiter);
      settle();
    },
    isFull: () => full,
    onChange,
    room: () =>
      new Promise((resolve) => {
        if (!full) return resolve();
        const stop = onChange(() => {
          stop();
          resolve();
        });
      }),
  };
};
