// What is asked for again and again: the last answer stays while the next is on its way, and since when none has come is told.
import { useEffect, useState } from 'preact/hooks';

export type Renewed<T> = {
  /** The last answer; undefined before the first, and after the inputs have changed. */
  readonly value: T | undefined;
  /** Why the last try failed, and when the first of those in a row did; undefined when it did not. */
  readonly failure: { readonly error: unknown; readonly sinceMs: number } | undefined;
};

/** After a failure it is asked again sooner: whoever looks waits for it. */
const failedEveryMs = 5_000;

export const nothingYet: Renewed<never> = { value: undefined, failure: undefined };

/** What follows a failed try. */
export const afterFailure = <T>({ value, failure }: Renewed<T>, error: unknown, nowMs: number): Renewed<T> => ({
  value,
  failure: { error, sinceMs: failure?.sinceMs ?? nowMs },
});

const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

/** Asks until the signal is aborted; `everyMs` lies between an answer and the next question, five seconds at most after a failure. */
export const keepRenewing = async <T>(
  load: (signal: AbortSignal) => Promise<T>,
  everyMs: number,
  tell: (state: Renewed<T>) => void,
  signal: AbortSignal,
): Promise<void> => {
  let state: Renewed<T> = nothingYet;
  while (!signal.aborted) {
    try {
      state = { value: await load(signal), failure: undefined };
    } catch (error) {
      state = afterFailure(state, error, Date.now());
    }
    if (signal.aborted) return;
    tell(state);
    await sleep(state.failure === undefined ? everyMs : Math.min(everyMs, failedEveryMs), signal);
  }
};

/** The same in a component; begins anew when one of `inputs` changes. */
export const useRenewed = <T>(
  load: (signal: AbortSignal) => Promise<T>,
  everyMs: number,
  inputs: readonly unknown[],
): Renewed<T> => {
  const [state, setState] = useState<Renewed<T>>(nothingYet);
  useEffect(() => {
    const abort = new AbortController();
    setState(nothingYet);
    void keepRenewing(load, everyMs, setState, abort.signal);
    return () => abort.abort();
  }, inputs);
  return state;
};
