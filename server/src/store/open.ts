// Opens the engine that a store URL names.
import { type StartWatch, unwatchedStart } from '../runtime/start-watch.ts';
import { copyStore } from './copy.ts';
import type { StoreMemory } from './memory/engine.ts';
import type { Migrated } from './postgres/schema.ts';
import { type Store, StoreError } from './store.ts';
import type { StoreEvent } from './store-event.ts';
import type { WritingTimes } from './write-state.ts';

export type OpenOptions = {
  /** Hears what the engine observes. */
  readonly tell?: (event: StoreEvent) => void;
  /** How many processes of a node divide its connections to a database. */
  readonly share?: number;
  /** Databases that follow the store's and answer readings of history, where they have got far enough. */
  readonly replicas?: readonly string[];
  /** Is this a command, which waits longer for a database than a node, whose clients wait (D144)? */
  readonly isCommand?: boolean;
  /** Says what the opening waits for. */
  readonly starting?: StartWatch;
  /** How long a store waits before it reports that writing stopped, and between retries. */
  readonly writing?: WritingTimes;
  /** False: an embedded store that is open does not keep the process alive by itself. */
  readonly keepsProcess?: boolean;
  /** Where the store `memory:` is. */
  readonly memory?: StoreMemory | undefined;
};

export { createStoreMemory, type StoreMemory } from './memory/engine.ts';

/** Opens `lmdb:FOLDER`, a bare folder, `postgres://…`, or `memory:` for programs that bring the memory. */
export async function openStore(
  url: string,
  mode: 'read' | 'write',
  {
    tell = () => {},
    share = 1,
    replicas = [],
    isCommand = false,
    starting = unwatchedStart,
    writing,
    keepsProcess,
    memory,
  }: OpenOptions = {},
): Promise<Store> {
  const scheme = /^([a-z][a-z0-9+]+):/.exec(url)?.[1];
  const isDatabase = scheme === 'postgres' || scheme === 'postgresql';
  if (!isDatabase && replicas.length > 0)
    throw new StoreError('store_url_invalid', 'A read store requires a store in PostgreSQL: --store postgres://….');
  // Drivers are loaded by those who use them.
  if (scheme === undefined || scheme === 'lmdb') {
    const { openLmdbStore } = await import('./lmdb/engine.ts');
    return openLmdbStore(folderOf(url), mode, tell, starting, { ...writing, keepsProcess });
  }
  if (isDatabase) {
    const { openPostgresStore } = await import('./postgres/engine.ts');
    const store = await openPostgresStore(url, mode, { tell, share, replicas, isCommand, writing });
    return withBackup(store);
  }
  if (scheme === 'memory') {
    if (memory !== undefined && url === 'memory:') return withBackup(memory.open(mode, tell));
    throw new StoreError('store_url_invalid', memoryRefused);
  }
  throw new StoreError(
    'store_url_invalid',
    `There is no store engine for ${scheme}:. Use lmdb:FOLDER or postgres://USER@HOST/DATABASE.`,
  );
}

const folderOf = (url: string): string => url.replace(/^lmdb:/, '');

const memoryRefused =
  'A store in memory is lost when its process exits. Use lmdb:FOLDER or postgres://USER@HOST/DATABASE.';

const withBackup = (store: Omit<Store, 'backup'>): Store => {
  const whole: Store = { ...store, backup: (folder) => copyToFolder(whole, folder) };
  return whole;
};

// A copy that opens as a store: the embedded engine's.
const copyToFolder = async (store: Store, folder: string): Promise<void> => {
  const { openLmdbStore, requireEmptyFolder } = await import('./lmdb/engine.ts');
  requireEmptyFolder(folder);
  const copy = await openLmdbStore(folder, 'write');
  try {
    await copyStore(store, copy);
  } finally {
    await copy.close();
  }
};

/** Upgrades the tables of a store to this release. An LMDB store needs none: its first writer creates it. */
export async function migrateStore(url: string): Promise<Migrated> {
  if (/^postgres(?:ql)?:/.test(url)) return (await import('./postgres/schema.ts')).migratePostgres(url);
  throw new StoreError(
    'store_url_invalid',
    'Only stores in PostgreSQL are migrated. Set one with --store postgres://….',
  );
}
