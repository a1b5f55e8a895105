// Owns the way from a store's URL to its engine.
import { openLmdbStore } from './lmdb.ts';
import { type Store, StoreError, type StoreEvent } from './store.ts';

/** Opens `lmdb:FOLDER`, or a bare folder. `tell` hears what the engine observes. */
export const openStore = (url: string, mode: 'read' | 'write', tell?: (event: StoreEvent) => void): Promise<Store> => {
  const scheme = /^([a-z][a-z0-9+]+):/.exec(url)?.[1];
  if (scheme === undefined) return openLmdbStore(url, mode, tell);
  if (scheme === 'lmdb') return openLmdbStore(url.slice('lmdb:'.length), mode, tell);
  throw new StoreError('store_url_unknown', `There is no store engine for ${scheme}:. Use lmdb:FOLDER.`);
};
