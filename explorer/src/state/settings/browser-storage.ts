// The browser's local storage, which may be blocked or full: the page says so once, when something that the user chose is not kept.
import { computed, type ReadonlySignal, signal } from '@preact/signals';

/** The parts of a window that the storage uses. */
export type KeepingWindow = Pick<Window, 'localStorage' | 'addEventListener'>;

export type BrowserStorage = {
  /** Null if there is nothing, or if storage is blocked. */
  readonly read: (key: string) => string | null;
  /** False if the browser did not keep the text. */
  readonly write: (key: string, text: string) => boolean;
  /** Calls `listener` with the new text when another tab writes it; null when it is removed. */
  readonly follow: (key: string, listener: (text: string | null) => void) => void;
  /** Why the browser did not keep something; undefined if it did, or once the user has dismissed it. */
  readonly refusal: ReadonlySignal<'blocked' | 'full' | undefined>;
  readonly dismissRefusal: () => void;
};

export function createBrowserStorage(window: KeepingWindow): BrowserStorage {
  const refusal = signal<'blocked' | 'full' | undefined>(undefined);
  const isDismissed = signal(false);
  return {
    read: (key) => {
      try {
        return window.localStorage.getItem(key);
      } catch {
        return null; // blocked
      }
    },
    write: (key, text) => {
      try {
        window.localStorage.setItem(key, text);
        return true;
      } catch (error) {
        refusal.value = Object(error).name === 'QuotaExceededError' ? 'full' : 'blocked';
        return false;
      }
    },
    follow: (key, listener) =>
      window.addEventListener('storage', (event) => {
        if (event.key === key || event.key === null) listener(event.newValue);
      }),
    refusal: computed(() => (isDismissed.value ? undefined : refusal.value)),
    dismissRefusal: () => {
      isDismissed.value = true;
    },
  };
}
