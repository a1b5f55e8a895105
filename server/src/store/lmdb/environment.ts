// An LMDB environment: options, named tables, and synchronous transactions that are flushed before they return, so that readers only see what is on disk
// (D51). Files that were deleted or replaced under it, as by a restore, are recognized: what is written to them would be lost (D243). After a failed commit LMDB may reject every transaction; the environment is then reopened in place (D135).
import { type BigIntStats, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RangeOptions, type RootDatabase } from 'lmdb';
import { StoreError } from '../store.ts';
import { isPoisoned, openFailure } from './failure.ts';
import { completeCreation, corruptStore, createHeadroom, pagesFile, preparePagesFile } from './pages-file.ts';

/**
 * A table of binary keys and values. Nothing of it is asynchronous: an asynchronous transaction of lmdb that fails leaves a second rejected promise
 * that cannot be caught, and ends the process. Changes outside of a transaction throw.
 */
export type Table = {
  readonly get: (key: Buffer) => Buffer | undefined;
  /** As `get`, in memory of lmdb that the next read of any table overwrites: a copy of a run takes as long as half of its decompression. */
  readonly view: (key: Buffer) => Buffer | undefined;
  readonly getKeys: (range?: RangeOptions) => Iterable<Buffer>;
  readonly getRange: (range?: RangeOptions) => Iterable<{ readonly key: Buffer; readonly value: Buffer }>;
  readonly getKeysCount: () => number;
  readonly getStats: () => object;
  readonly put: (key: Buffer, value: Buffer) => void;
  readonly remove: (key: Buffer) => void;
  /** Whether there was something. */
  readonly removeSync: (key: Buffer) => boolean;
  readonly clearSync: () => void;
};

/** The environment as a whole. */
export type Root = {
  /** One transaction, durable when it returns; what throws inside changes nothing. */
  readonly transactionSync: <T>(act: () => T) => T;
  /** The next read sees what is committed by then. */
  readonly resetReadTxn: () => void;
  readonly getKeys: () => Iterable<Buffer>;
  readonly getStats: () => object;
  /** Frees the places of readers that are gone; returns how many. */
  readonly readerCheck: () => number;
  readonly backup: (folder: string, compact: boolean) => Promise<void>;
  readonly close: () => Promise<void>;
};

export type Environment = {
  readonly root: Root;
  readonly folder: string;
  /** The files that it was opened with, for another thread of this process. */
  readonly files: string | undefined;
  /** Opens a table; undefined where it is not there and not created. */
  readonly openNamed: (name: string, create: boolean, isCompressed: boolean) => Table | undefined;
  /** Whether LMDB refuses every further transaction. */
  readonly isRefused: () => boolean;
  /** Flushes what was ever written to the file. */
  readonly flush: () => void;
  /** Runs at the beginning of every transaction, inside it; what it throws ends the transaction. */
  readonly guardWith: (check: () => void) => void;
};

/**
 * lmdb opens an environment once per process: its threads share it, and its failure. Where LMDB refuses it, the thread that writes closes it, and
 * counts that; then this one closes and reopens it. Opened by one while the other still has it, it would be the refused one again.
 */
export type SharedEnvironment = {
  readonly closings: () => number;
  /** Whether the other thread has released it since so many closings; waits briefly for that. */
  readonly mayReopen: (seen: number) => boolean;
  /** What the other thread has opened; this one opens nothing else. */
  readonly files?: string | undefined;
};

/** For the thread that writes: it never reopens by itself. */
export const neverReopened = (files: string | undefined): SharedEnvironment => ({
  closings: () => 0,
  mayReopen: () => false,
  files,
});

/** Bytes of a page of LMDB. */
const pageBytes = 4_096; // a full run takes two or three of these; with 8 KB pages, one or two
const tablesMax = 16;
const readersMax = 512;

/** Addresses kept for an environment from the start. LMDB crashes when it cannot get more as the file grows, so it must not need to. */
const mapBytesMin = 2 ** 37;

const mapBytes = (folder: string): number =>
  Math.max(mapBytesMin, existsSync(pagesFile(folder)) ? 4 * statSync(pagesFile(folder)).size : 0);

type Inner = RootDatabase<Buffer, Buffer>;
type InnerTable = Database<Buffer, Buffer>;

const binary = { encoding: 'binary', keyEncoding: 'binary' } as const;
/** Every value, whatever its length, and without lmdb's own dictionary, which a release of it may change. Short runs as they are made the file 5 % larger. */
const compressed = { compression: { threshold: 1, dictionary: Buffer.alloc(0) } };

const openInner = (folder: string, readOnly: boolean, mapSize: number | undefined): Inner =>
  open<Buffer, Buffer>({
    path: folder,
    noSubdir: false,
    readOnly,
    pageSize: pageBytes,
    maxDbs: tablesMax,
    maxReaders: readersMax,
    overlappingSync: false,
    noMemInit: false,
    ...(mapSize !== undefined && { mapSize }),
    ...binary,
  });

const openChecked = (folder: string, readOnly: boolean): Inner => {
  preparePagesFile(folder, readOnly);
  try {
    return openInner(folder, readOnly, mapBytes(folder));
  } catch (cause) {
    const failure = openFailure(folder, cause);
    if (failure.code !== 'store_unavailable') throw failure;
  }
  try {
    return openInner(folder, readOnly, undefined); // addresses are limited here (ulimit -v)
  } catch (cause) {
    throw openFailure(folder, cause);
  }
};

/** Opens an environment; a writer creates it, a reader needs it to be there. `shared`: another thread of this process writes to it. */
export function openEnvironment(folder: string, readOnly: boolean, shared?: SharedEnvironment): Environment {
  const connection = connect(folder, readOnly, shared);
  let guard = (): void => {};
  const { attempt, inner } = connection;
  const root: Root = {
    transactionSync: (act) => {
      if (readOnly) throw new StoreError('store_read_only', `The store in ${folder} is open for reading only.`);
      return connection.transact(() => {
        guard();
        return act();
      });
    },
    resetReadTxn: () => {
      connection.refresh();
      attempt(() => inner().resetReadTxn());
    },
    getKeys: () => iterateWith(attempt, () => inner().getKeys()),
    getStats: () => attempt(() => inner().getStats()),
    readerCheck: () => attempt(() => inner().readerCheck()),
    backup: async (target, compact) => {
      await inner().backup(target, compact);
    },
    close: () => connection.close(),
  };
  return {
    root,
    folder,
    files: connection.files,
    openNamed: connection.open,
    flush: connection.flush,
    isRefused: connection.isRefused,
    guardWith: (check) => {
      guard = check;
    },
  };
}

/** The file at a path, if there is one. */
const findFile = (path: string): BigIntStats | undefined => statSync(path, { bigint: true, throwIfNoEntry: false });

/** Names the files in an environment's folder by device and inode; undefined without pages. */
const filesIn = (folder: string): string | undefined => {
  const pages = findFile(pagesFile(folder));
  const lock = findFile(join(folder, 'lock.mdb')); // without it, processes that open the environment write at the same time
  return pages && `${pages.dev}:${pages.ino} ${lock?.dev}:${lock?.ino}`;
};

const replacedStore = (folder: string) =>
  new StoreError(
    'store_replaced',
    `The files in ${folder} were deleted or replaced while this process was using them, so it stores nothing more. Move them back, or restart it to use what is there now.`,
  );

/** Throws unless the folder has the files that were opened. */
const requireFiles = (folder: string, opened: string | undefined): void => {
  const found = filesIn(folder);
  if (found === undefined || found !== opened) throw replacedStore(folder);
};

/** A table that stays the same object when the environment is opened again. */
type Slot = { readonly name: string; readonly isCompressed: boolean } & Opened;
/** A table, and the same one as it is stored. */
type Opened = { inner: InnerTable; stored: InnerTable };

/** Opens the environment again after an error that calls for it; throws any other. */
type Recover = (error: unknown) => void;
type Attempt = <T>(act: () => T) => T;

/** lmdb's environment with its tables, which all change when it is opened again. */
const openHandle = (folder: string, readOnly: boolean, shared: SharedEnvironment | undefined) => {
  if (shared !== undefined && 'files' in shared) requireFiles(folder, shared.files);
  let inner = openChecked(folder, readOnly);
  const files = shared?.files ?? filesIn(folder);
  /** The last transaction that was seen. */
  let newest = 0;
  /** Throws where other files are at the paths, or an older one was copied over this one; otherwise returns the bytes in use. */
  const requireOpened = (): number => {
    requireFiles(folder, files);
    const { usedBytes, transaction } = readState(inner);
    if (transaction < newest) throw replacedStore(folder);
    newest = transaction;
    return usedBytes;
  };
  const slots: Slot[] = [];
  return {
    files,
    /** A transaction; the act gets the bytes in use. What is flushed to files that are gone is not acknowledged. */
    transact: <T>(act: (usedBytes: number) => T): T => {
      const result = inner.transactionSync(() => act(requireOpened()));
      requireOpened();
      return result;
    },
    inner: () => inner,
    add: (slot: Slot) => void slots.push(slot),
    reopen: (): void => {
      requireFiles(folder, files);
      newest = 0;
      void inner.close(); // nothing is under way: it has closed when this returns
      inner = openChecked(folder, readOnly);
      for (const slot of slots)
        Object.assign(
          slot,
          requireTable(folder, slot.name, openInnerTable(inner, slot.name, false, slot.isCompressed)),
        );
    },
    // By the beginning of a transaction: failed reads add to a message of lmdb without a bound.
    isRefused: (): boolean => {
      try {
        inner.transactionSync(() => {});
        return false;
      } catch (error) {
        return isPoisoned(error);
      }
    },
  };
};

/** An environment that is reopened when LMDB rejects every transaction. */
const connect = (folder: string, readOnly: boolean, shared: SharedEnvironment | undefined) => {
  const handle = openHandle(folder, readOnly, shared);
  const { files, inner, isRefused } = handle;
  if (!readOnly) completeCreation(folder);
  const headroom = createHeadroom(folder);
  let seen = shared?.closings() ?? 0;
  let isLost = false;
  let isWriting = false;
  const mayReopen = (): boolean => shared?.mayReopen(seen) ?? true;
  const reopen = (): void => {
    isLost = true; // until it is open again, every act tries
    seen = shared?.closings() ?? 0;
    handle.reopen();
    isLost = false;
  };
  const recover: Recover = (error) => {
    if (!isLost && (isWriting || !isPoisoned(error) || !mayReopen())) throw error;
    reopen();
  };
  const attempt: Attempt = (act) => {
    try {
      return act();
    } catch (error) {
      recover(error);
      return act();
    }
  };
  const transact = <T>(act: () => T): T => {
    try {
      return handle.transact((usedBytes) => {
        isWriting = true;
        headroom.keep(usedBytes);
        return act();
      });
    } finally {
      isWriting = false;
    }
  };
  return {
    files,
    inner,
    attempt,
    refresh: (): void => {
      if (isLost || (shared !== undefined && shared.closings() !== seen)) reopen();
    },
    isRefused,
    transact: <T>(act: () => T): T => {
      try {
        return attempt(() => transact(act));
      } catch (error) {
        // At once, before another thread opens the refused one.
        if (!isLost && isRefused() && mayReopen()) attemptQuietly(reopen);
        throw error;
      }
    },
    flush: headroom.flush,
    close: (): Promise<void> => {
      headroom.close();
      return inner().close();
    },
    open: (name: string, create: boolean, isCompressed: boolean): Table | undefined => {
      const opened = attempt(() => openInnerTable(inner(), name, create, isCompressed));
      if (opened === undefined) return undefined;
      const slot: Slot = { name, isCompressed, ...opened };
      handle.add(slot);
      return createTable(slot, { attempt, recover, isWriting: () => isWriting });
    },
  };
};

const attemptQuietly = (act: () => void): void => {
  try {
    act();
  } catch {
    // What comes next tries again, and says why it fails.
  }
};

/** Bytes up to the end of the last page, and the number of the last transaction that was committed. */
const readState = (inner: Inner): { readonly usedBytes: number; readonly transaction: number } => {
  type Stats = { lastPageNumber: number; pageSize: number; lastTxnId: number };
  const { lastPageNumber, pageSize, lastTxnId } = inner.getStats() as Stats; // lmdb types it as {}
  return { usedBytes: (lastPageNumber + 1) * pageSize, transaction: lastTxnId };
};

const openInnerTable = (inner: Inner, name: string, create: boolean, isCompressed: boolean): Opened | undefined => {
  const openAs = (options: object): InnerTable | undefined =>
    inner.openDB<Buffer, Buffer>(name, { ...binary, ...options, ...(!create && { create: false }) } as typeof binary); // lmdb's types lack `create`
  const table = openAs(isCompressed ? compressed : {});
  const stored = isCompressed ? openAs({}) : table;
  return table && stored && { inner: table, stored };
};

const requireTable = (folder: string, name: string, table: Opened | undefined): Opened => {
  if (table !== undefined) return table;
  throw corruptStore(folder, `its table ${name} is listed and cannot be found`);
};

const iterateWith = <T>(attempt: Attempt, make: () => Iterable<T>): Iterable<T> => ({
  [Symbol.iterator]: () => attempt(() => make()[Symbol.iterator]()),
});

type Access = { readonly attempt: Attempt; readonly recover: Recover; readonly isWriting: () => boolean };

const createTable = (slot: Slot, { attempt, recover, isWriting }: Access): Table => {
  const writable = (): InnerTable => {
    if (isWriting()) return slot.inner;
    throw new Error(`The table ${slot.name} is changed outside of a transaction.`);
  };
  return {
    // Without `attempt` and its function: these two are called for every record.
    view: (key) => {
      try {
        return viewOf(slot, key);
      } catch (error) {
        recover(error);
        return viewOf(slot, key);
      }
    },
    get: (key) => {
      try {
        return slot.inner.get(key);
      } catch (error) {
        recover(error);
        return slot.inner.get(key);
      }
    },
    getKeys: (range) => iterateWith(attempt, () => slot.inner.getKeys(range)),
    getRange: (range) => iterateWith(attempt, () => slot.inner.getRange(range)),
    getKeysCount: () => attempt(() => slot.inner.getKeysCount()),
    getStats: () => attempt(() => slot.inner.getStats()),
    put: (key, value) => void writable().put(key, value),
    remove: (key) => void writable().remove(key),
    removeSync: (key) => writable().removeSync(key),
    clearSync: () => writable().clearSync(),
  };
};

/** The first byte of a compressed value of 16 MB or more, so of a damaged one: lmdb would grow its read buffer by that length, and read nothing more into one of 2 GB. */
const isHuge = 255;

/** lmdb returns its whole read buffer with an overridden `length`, which native code ignores, and from Node 24 on also `subarray` and `toString`. */
const viewOf = ({ inner, stored, isCompressed }: Slot, key: Buffer): Buffer | undefined => {
  if (isCompressed && stored.getBinaryFast(key)?.[0] === isHuge) return inner.get(key);
  const shared = inner.getBinaryFast(key);
  return shared && Buffer.from(shared.buffer, shared.byteOffset, shared.length);
};

/** The names of an environment's tables; LMDB ends them with a zero. */
const tableNames = ({ root }: Environment): readonly string[] =>
  [...root.getKeys()].map((name) => name.toString('latin1').replace(/\0$/, ''));

/** Every table of both environments. */
const knownNames: readonly string[] = [
  ...['meta', 'numbers', 'feedIds', 'runs', 'candles', 'hourCandles', 'dayCandles', 'appended', 'quarantine', 'writer'],
  ...['records', 'audit', 'usage', 'secretUses', 'retention'],
];

/**
 * Opens a table of the environment, creating it where that is possible; undefined when a reader comes before it was made. One that is listed and cannot be
 * found, or whose name may be damaged, is never created again: it would be empty. `isCompressed`: by the engine, every value.
 */
export function openTable(environment: Environment, name: string, isCompressed = false): Table {
  const { folder, openNamed } = environment;
  const names = tableNames(environment);
  const isListed = names.includes(name);
  const unknown = names.find((one) => !knownNames.includes(one));
  if (!isListed && knownNames.includes(name) && unknown !== undefined)
    throw corruptStore(folder, `it has no table ${name}, but one named ${JSON.stringify(unknown)}`);
  try {
    const table = openNamed(name, !isListed, isCompressed);
    if (table !== undefined || !isListed) return table as Table; // undefined as said above
  } catch (cause) {
    if (!isListed) throw openFailure(folder, cause);
    throw corruptStore(folder, `its table ${name} cannot be opened`, cause);
  }
  throw corruptStore(folder, `its table ${name} is listed and cannot be found`);
}
