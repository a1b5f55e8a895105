// A value that the browser keeps: read when the page opens, written when it changes, and the same in all tabs.
import { type ReadonlySignal, signal } from '@preact/signals';
import type { BrowserStorage } from './browser-storage.ts';

export type StoredSetting<T> = {
  readonly value: ReadonlySignal<T>;
  /** If the browser does not keep it, the value lasts until the page is closed, and the storage says so. */
  readonly set: (next: T) => void;
};

/**
 * A value in local storage, as JSON. `parse` gets whatever is there, undefined if nothing is, and returns a valid value: users and other
 * programs can write anything. `toStored` turns a value into what JSON can hold.
 */
export function createStoredSetting<T>(
  storage: BrowserStorage,
  key: string,
  parse: (stored: unknown) => T,
  toStored: (value: T) => unknown = (value) => value,
): StoredSetting<T> {
  const value = signal(parse(parseJson(storage.read(key))));
  storage.follow(key, (text) => {
    value.value = parse(parseJson(text));
  });
  return {
    value,
    set: (next) => {
      value.value = next;
      storage.write(key, JSON.stringify(toStored(next)));
    },
  };
}

const parseJson = (text: string | null): unknown => {
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined; // not ours
  }
};
