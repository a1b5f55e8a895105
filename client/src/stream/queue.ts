// The bounded queue between connections and the consumer. A full queue pauses the connections.

/** Pauses the sources while the consumer is behind. */
export type Backpressure = {
  /** Resolves at once unless the queue is full, else when it has drained to half or has ended. */
  readonly drained: () => Promise<void>;
  readonly isFull: () => boolean;
  /** Calls `listen` with every change of `isFull`; returns how to stop listening. */
  readonly onChange: (listen: (full: boolean) => void) => () => void;
};

export type StreamQueue<T> = Backpressure & {
  readonly push: (value: T) => void;
  readonly next: () => Promise<IteratorResult<T, undefined>>;
  /** No more values. With an error what is queued is delivered first, then the error once; without one nothing more. */
  readonly end: (error?: unknown) => void;
};

type Waiter<T> = { resolve: (result: IteratorResult<T, undefined>) => void; reject: (error: unknown) => void };

/** A queue that is full at `max` until it has drained to half of it. It keeps what is pushed while it is full. */
export function createQueue<T>(max: number): StreamQueue<T> {
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
  const onChange: Backpressure['onChange'] = (listen) => {
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
    // The error is thrown once; then the iterator is done.
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
    drained: () =>
      new Promise((resolve) => {
        if (!full) return resolve();
        const stop = onChange(() => {
          stop();
          resolve();
        });
      }),
  };
}
