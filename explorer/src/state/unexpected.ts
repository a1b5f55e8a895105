// Errors that nothing handles: the page says so instead of standing still.
import { type ReadonlySignal, signal } from '@preact/signals';

export type Unexpected = {
  /** The last such error; undefined if there is none, or the user dismissed it. */
  readonly error: ReadonlySignal<unknown>;
  readonly dismiss: () => void;
};

export function watchUnexpected(window: Pick<Window, 'addEventListener'>): Unexpected {
  const error = signal<unknown>(undefined);
  const report = (next: unknown): void => {
    // A request that a page no longer needs is aborted on purpose.
    if (!(next instanceof Error) || next.name !== 'AbortError') error.value = next ?? new Error('unknown');
  };
  // A browser reports this when a chart changes its size while it is measured; the next frame has the right size.
  window.addEventListener('error', ({ error: thrown, message }) => {
    if (!message.startsWith('ResizeObserver loop')) report(thrown);
  });
  window.addEventListener('unhandledrejection', ({ reason }) => report(reason));
  return {
    error,
    dismiss: () => {
      error.value = undefined;
    },
  };
}
