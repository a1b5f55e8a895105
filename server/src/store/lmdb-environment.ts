// Owns an LMDB environment as we use it: options, named tables, the checks that LMDB itself does not make (D51).
// Commits are synchronous and flushed: what a reader can see is on the disk.
import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import type { RecordBytes } from './record-bytes.ts';
import { StoreError } from './store.ts';

/** A table of binary keys and values. `viewRecord` reads without a copy. */
export type Table = Omit<Database<Buffer, Buffer>, 'getBinaryFast'>;

export type Environment = {
  readonly root: Omit<RootDatabase<Buffer, Buffer>, 'getBinaryFast'>;
  readonly folder: string;
};

/** The file that holds an environment's pages. */
export const pagesFile = (folder: string): string => join(folder, 'data.mdb');

const pageBytes = 8_192; // deleting half of two million rows took 88 s with 4 KB pages, 3 s with these
const tablesMax = 16;
const readersMax = 512;

/** Opens an environment; a writer creates it, a reader needs it to be there. */
export const openEnvironment = (folder: string, readOnly: boolean): Environment => {
  if (existsSync(pagesFile(folder))) checkPagesFile(folder);
  else if (readOnly)
    throw new StoreError(
      'store_not_found',
      `There is no store in ${folder}. Create one first, or name another folder.`,
    );
  try {
    const root = open<Buffer, Buffer>({
      path: folder,
      noSubdir: false,
      readOnly,
      pageSize: pageBytes,
      maxDbs: tablesMax,
      maxReaders: readersMax,
      overlappingSync: false,
      noMemInit: false,
      encoding: 'binary',
      keyEncoding: 'binary',
    });
    return { root, folder };
  } catch (cause) {
    throw new StoreError(
      'store_corrupt',
      `The store in ${folder} cannot be opened: ${String(cause)}. Restore a backup.`,
      { cause },
    );
  }
};

/** The names of an environment's tables; LMDB ends them with a zero. */
const tableNames = ({ root }: Environment): readonly string[] =>
  [...root.getKeys()].map((name) => name.toString('latin1').replace(/\0$/, ''));

const isOneBitOff = (a: string, b: string): boolean => {
  if (a.length !== b.length) return false;
  const odd = [...a].map((character, i) => character.charCodeAt(0) ^ b.charCodeAt(i)).filter((bits) => bits !== 0);
  return odd.length === 1 && ((odd[0] as number) & ((odd[0] as number) - 1)) === 0; // one left, with one bit set
};

/**
 * Opens a table of the environment, creating it where that is possible; undefined when a reader comes before it was made. A table whose name
 * has a flipped bit is opened under that name. One that is listed and cannot be found is never made anew: it would be empty.
 */
export const openTable = (environment: Environment, name: string): Table => {
  const { root, folder } = environment;
  const names = tableNames(environment);
  const isListed = names.includes(name);
  const stored = isListed ? name : (names.find((one) => isOneBitOff(one, name)) ?? name);
  const options = { encoding: 'binary', keyEncoding: 'binary' } as const;
  if (!names.includes(stored)) return root.openDB<Buffer, Buffer>(stored, options);
  try {
    const table = root.openDB<Buffer, Buffer>(stored, { ...options, create: false } as typeof options);
    if (table !== undefined) return table;
  } catch (cause) {
    throw corrupt(folder, `its table ${name} cannot be opened`, cause);
  }
  throw corrupt(folder, `its table ${name} is listed and cannot be found`);
};

/**
 * A record without a copy: the next read of any table overwrites it. lmdb returns its 16 MB read buffer with an overridden `length`, which
 * native code ignores, and from Node 24 on also `subarray` and `toString` (D90). The view has exactly the record's bytes; it costs 0.15 µs, a
 * copy of 1,700 bytes 1.8 µs.
 */
export const viewRecord = (table: Table, key: Buffer): RecordBytes | undefined => {
  const shared = (table as Database<Buffer, Buffer>).getBinaryFast(key); // openTable made it
  return shared?.subarray(0, shared.length);
};

const metaMagic = 0xbeefc0de;
const metaAt = 24;
const metaBytes = 160;

type Meta = { readonly pageBytes: number; readonly lastPage: number; readonly transaction: bigint };

// Layout: 24 bytes of page header, then magic, version, address, map size, two 48-byte trees (the first begins with the
// page size), last page, transaction.
const parseMeta = (bytes: Buffer): Meta | undefined => {
  if (bytes.readUInt32LE(metaAt) !== metaMagic) return undefined;
  const pageSize = bytes.readUInt32LE(metaAt + 24);
  return {
    pageBytes: pageSize,
    lastPage: Number(bytes.readBigUInt64LE(metaAt + 120)),
    transaction: bytes.readBigUInt64LE(metaAt + 128),
  };
};

/** Refuses a file that is shorter than its own meta page says: reading past the end would kill the process with SIGBUS. */
const checkPagesFile = (folder: string): void => {
  const file = openSync(pagesFile(folder), 'r');
  try {
    const { size } = fstatSync(file);
    const first = readMeta(file, 0);
    const second = first && readMeta(file, first.pageBytes);
    if (first === undefined || second === undefined) {
      throw corrupt(folder, 'its first pages are damaged');
    }
    const { lastPage } = first.transaction > second.transaction ? first : second;
    const needed = (lastPage + 1) * first.pageBytes;
    if (size < needed) throw corrupt(folder, `its file has ${size} bytes where ${needed} are in use`);
  } finally {
    closeSync(file);
  }
};

const readMeta = (file: number, position: number): Meta | undefined => {
  const bytes = Buffer.alloc(metaBytes);
  return readSync(file, bytes, 0, metaBytes, position) === metaBytes ? parseMeta(bytes) : undefined;
};

const corrupt = (folder: string, what: string, cause?: unknown) =>
  new StoreError(
    'store_corrupt',
    `The store in ${folder} is damaged: ${what}. Restore a backup with: sealpost store restore.`,
    cause === undefined ? undefined : { cause },
  );

const headroomBytes = 8 * 1024 * 1024;

/**
 * Keeps the file longer than any page in use, in sparse steps of 8 MB. LMDB may leave its last pages unwritten when they are
 * free, which would look like a truncated file; no transaction of ours takes 8 MB.
 */
export const keepHeadroom = ({ folder, root }: Environment): void => {
  const { lastPageNumber, pageSize } = root.getStats() as { lastPageNumber: number; pageSize: number };
  const file = openSync(pagesFile(folder), 'r+');
  try {
    const needed = (lastPageNumber + 1) * pageSize;
    const { size } = fstatSync(file);
    if (size < needed + headroomBytes / 2) ftruncateSync(file, Math.ceil(needed / headroomBytes + 1) * headroomBytes);
  } finally {
    closeSync(file);
  }
};
