// A value that the browser keeps: read when the page opens, written when it changes, and the same in all tabs.
import { type ReadonlySignal, signal } from '@preact/signals';

export type Kept<T> = {
  readonly value: ReadonlySignal<T>;
  /** False if the browser blocks storage or has no space: then the value lasts until the page is closed. */
  readonly set: (next: T) => boolean;
};

/** The parts of a window that a kept value uses. */
export type KeepingWindow = Pick<Window, 'localStorage' | 'addEventListener'>;

/**
 * A value in local storage, as JSON. `parse` gets whatever is there, undefined if nothing is, and returns a valid value: users and other
 * programs can write anything. `toStored` turns a value into what JSON can hold.
 */
export const createKept = <T>(
  window: KeepingWindow,
  key: string,
  parse: (stored: unknown) => T,
  toStored: (value: T) => unknown = (value) => value,
): Kept<T> => {
  const value = signal(parse(readStored(window, key)));
  window.addEventListener('storage', (event) => {
    if (event.key === key || event.key === null) value.value = parse(parseJson(event.newValue));
  });
  return {
    value,
    set: (next) => {
      value.value = next;
      return writeStored(window, key, toStored(next));
    },
  };
};

const readStored = (window: KeepingWindow, key: string): unknown => {
  try {
    return parseJson(window.localStorage.getItem(key));
  } catch {
    return undefined; // blocked
  }
};

const writeStored = (window: KeepingWindow, key: string, value: unknown): boolean => {
  try {
    window.localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false; // blocked, or full
  }
};

const parseJson = (text: string | null): unknown => {
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined; // not ours
  }
};
