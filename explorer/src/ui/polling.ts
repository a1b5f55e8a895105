// Polls a value: keeps the last one while the next is loading, and since when loading has failed.
import { useEffect, useState } from 'preact/hooks';

export type Renewed<T> = {
  /** The last value; undefined before the first, and after the inputs have changed. */
  readonly value: T | undefined;
  /** Why the last attempt failed, and when the first failure in a row was; undefined if it succeeded. */
  readonly failure: { readonly error: unknown; readonly sinceMs: number } | undefined;
};

/** Longest delay after a failure: the user is waiting. */
const failedEveryMs = 5_000;

export const nothingYet: Renewed<never> = { value: undefined, failure: undefined };

/** The state after a failed attempt. */
export const afterFailure = <T>({ value, failure }: Renewed<T>, error: unknown, nowMs: number): Renewed<T> => ({
  value,
  failure: { error, sinceMs: failure?.sinceMs ?? nowMs },
});

const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });

/** Resolves once the page is visible, or nobody waits any more. */
export const untilVisible = (
  page: Pick<Document, 'hidden' | 'addEventListener' | 'removeEventListener'>,
  signal: AbortSignal,
): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      if (page.hidden && !signal.aborted) return;
      page.removeEventListener('visibilitychange', look);
      signal.removeEventListener('abort', look);
      resolve();
    };
    page.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
    look();
  });

/** Polls until the signal is aborted, `everyMs` after each response, or at most five seconds after a failure, once `ready` resolves. */
export async function keepRenewing<T>(
  load: (signal: AbortSignal) => Promise<T>,
  everyMs: number,
  onState: (state: Renewed<T>) => void,
  signal: AbortSignal,
  ready: () => Promise<void> = async () => {},
): Promise<void> {
  let state: Renewed<T> = nothingYet;
  while (!signal.aborted) {
    try {
      state = { value: await load(signal), failure: undefined };
    } catch (error) {
      state = afterFailure(state, error, Date.now());
    }
    if (signal.aborted) return;
    onState(state);
    await sleep(state.failure === undefined ? everyMs : Math.min(everyMs, failedEveryMs), signal);
    await ready();
  }
}

/** The same as a hook, while the page is visible; starts over when one of `inputs` changes. */
export function useRenewed<T>(
  load: (signal: AbortSignal) => Promise<T>,
  everyMs: number,
  inputs: readonly unknown[],
): Renewed<T> {
  const [state, setState] = useState<Renewed<T>>(nothingYet);
  useEffect(() => {
    const abort = new AbortController();
    setState(nothingYet);
    void keepRenewing(load, everyMs, setState, abort.signal, () => untilVisible(document, abort.signal));
    return () => abort.abort();
  }, inputs);
  return state;
}
