// Which columns of the list of streams the user has turned on or off, kept in the browser.
import type { BrowserStorage } from './browser-storage.ts';
import { createStoredSetting, type StoredSetting } from './stored-setting.ts';

/** By name, whether a column is shown; only those for which the user wants something else than the default. */
export type ColumnChoice = Readonly<Record<string, boolean>>;
export type ListColumns = StoredSetting<ColumnChoice>;

const storageKey = 'sealpost-columns';
/** More than the list has; whatever else is stored is ignored by the list. */
const columnsMax = 50;

export const createListColumns = (storage: BrowserStorage): ListColumns =>
  createStoredSetting<ColumnChoice>(storage, storageKey, (stored) =>
    Object.fromEntries(
      Object.entries(Object(stored))
        .filter((entry): entry is [string, boolean] => typeof entry[1] === 'boolean')
        .slice(0, columnsMax),
    ),
  );
