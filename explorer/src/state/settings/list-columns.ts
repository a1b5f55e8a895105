// Which columns of the list of streams the user has chosen, kept in the browser.
import { createKept, type KeepingWindow, type Kept } from './kept.ts';

/** Column names; undefined if the user has chosen none. */
export type ListColumns = Kept<readonly string[] | undefined>;

const storageKey = 'sealpost-columns';
/** More than the list has; whatever else is stored is ignored by the list. */
const columnsMax = 50;

export const createListColumns = (window: KeepingWindow): ListColumns =>
  createKept<readonly string[] | undefined>(window, storageKey, (stored) =>
    Array.isArray(stored) ? stored.filter((name) => typeof name === 'string').slice(0, columnsMax) : undefined,
  );
