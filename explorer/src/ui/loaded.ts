// Loads a value for a component: when it is shown, when its inputs change, and on reload.
import { useCallback, useEffect, useState } from 'preact/hooks';

export type Loaded<T> =
  | { readonly phase: 'loading' }
  | { readonly phase: 'failed'; readonly error: unknown }
  | { readonly phase: 'ready'; readonly value: T };

/** Loads again whenever one of `inputs` changes; aborts a load that is no longer needed. */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
): readonly [state: Loaded<T>, reload: () => void] {
  const [state, setState] = useState<Loaded<T>>({ phase: 'loading' });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const report = (next: Loaded<T>): void => {
      if (!abort.signal.aborted) setState(next);
    };
    setState({ phase: 'loading' });
    load(abort.signal).then(
      (value) => report({ phase: 'ready', value }),
      (error: unknown) => report({ phase: 'failed', error }),
    );
    return () => abort.abort();
  }, [attempt, ...inputs]);
  return [state, useCallback(() => setAttempt((last) => last + 1), [])];
}
