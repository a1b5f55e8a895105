// Repairs for every engine: what is saved to a file before it is removed, and the report of a repair (D131).
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { writeAll } from '../runtime/file-replacement.ts';

/** What is gone. `fromMs` to `toMs` is the range, `reports` how many it held; null where unknown. */
export type Loss = {
  readonly table: string;
  readonly key: string;
  readonly feedId: FeedId | null;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly reports: number | null;
  readonly what: string;
};

/** What a repair did, or would do. */
export type Repaired = {
  /** The file with the damaged records as they were; null where there is none. */
  readonly file: string | null;
  readonly setAside: number;
  /** Records that were derived again, by table. */
  readonly rebuilt: Readonly<Record<string, number>>;
  /** Everything that is lost, also by earlier damage. */
  readonly lost: readonly Loss[];
  /** Damage that stays where it is, and why. */
  readonly left: readonly { readonly table: string; readonly key: string; readonly why: string }[];
};

export type RepairOptions = {
  /** Say what would be done, and change nothing. */
  readonly dryRun: boolean;
  /** Look only whether what is known to be lost is there again. */
  readonly lossesOnly?: true;
  /** The folder of the file for damaged records; a store in a folder has it in there. */
  readonly asideFolder: string;
  readonly nowMs: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (records: number, total: number) => void;
};

/** A damaged record as it was found. */
export type AsideRecord = {
  readonly environment: string;
  readonly table: string;
  readonly key: string;
  readonly value: Uint8Array;
  readonly reason: string;
};

/** A file that damaged records are appended to, one line of JSON each. It is made with the first one, and never overwritten. */
export type AsideFile = {
  readonly put: (record: AsideRecord) => void;
  /** Returns when what was put is on the disk. */
  readonly flush: () => void;
  readonly count: () => number;
  readonly path: () => string | null;
  readonly close: () => void;
};

const namesMax = 1_000;

/** Creates a new file, even if another repair started in the same second. */
const openNew = (folder: string, nowMs: number): { readonly path: string; readonly descriptor: number } => {
  const stamp = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  for (let n = 1; ; n++) {
    const path = join(folder, `set-aside-${stamp}${n === 1 ? '' : `-${n}`}.ndjson`);
    try {
      return { path, descriptor: openSync(path, 'wx', 0o600) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || n === namesMax) throw error; // of node:fs
    }
  }
};

/** `dryRun` counts what would be put aside, and makes no file. */
export const createAsideFile = ({ asideFolder, nowMs, dryRun }: RepairOptions): AsideFile => {
  let file: ReturnType<typeof openNew> | undefined;
  let count = 0;
  return {
    put: ({ value, ...record }) => {
      count += 1;
      if (dryRun) return;
      file ??= openNew(asideFolder, nowMs);
      const line = `${JSON.stringify({ ...record, value: Buffer.from(value).toString('hex') })}\n`;
      writeAll(file.descriptor, Buffer.from(line)); // what is put aside is removed from the store
    },
    flush: () => {
      if (file === undefined) return;
      fsyncSync(file.descriptor);
      const folder = openSync(asideFolder, 'r');
      fsyncSync(folder);
      closeSync(folder);
    },
    count: () => count,
    path: () => file?.path ?? null,
    close: () => {
      if (file !== undefined) closeSync(file.descriptor);
    },
  };
};

/** Counts of what was derived again. */
export const createRepairTally = () => {
  const counts = new Map<string, number>();
  return {
    add: (table: string, count = 1): void => void counts.set(table, (counts.get(table) ?? 0) + count),
    all: (): Readonly<Record<string, number>> => Object.fromEntries(counts),
  };
};
