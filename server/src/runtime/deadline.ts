// Deadlines: for a promise, and for what takes a signal.

export const timedOut = Symbol('timed out');

/** What the promise resolves to or throws, or `timedOut` after `ms`. The work is not stopped; its later result or error is ignored. */
export async function within<T>(ms: number, promise: PromiseLike<T>): Promise<T | typeof timedOut> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<typeof timedOut>((resolve) => {
    // A result that arrived while this process was blocked still counts: it is processed before `setImmediate`.
    timer = setTimeout(() => setImmediate(resolve, timedOut), ms);
  });
  try {
    return await Promise.race([promise, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

const sources = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/** `AbortSignal.any`, which on Node 20 does not hold the signals: a timeout that nobody else holds is collected, and never fires. */
export function anySignal(signals: readonly AbortSignal[]): AbortSignal {
  const any = AbortSignal.any([...signals]);
  sources.set(any, signals);
  return any;
}
