// The table of corrupt runs that the writer moved out of the way: what they were, why, and which ranges are lost. Their bytes are kept for
// recovery (D120).
import { crc32 } from 'node:zlib';
import { CorruptRecordError, type Damage, type Window } from '../../store.ts';
import { keysFrom, type ReportTables } from '../report-tables.ts';
import type { RunTable } from './runs.ts';

/** What is known of a run that was set aside. `file`: a repair moved its bytes into that file, and what is described here is known to be lost. */
export type SetAside = {
  readonly table: RunTable;
  readonly reason: string;
  readonly lost: readonly Window[];
  readonly reports?: number | null;
  readonly file?: string;
};

/** Runs that are kept with their bytes, some 14 MB; of later ones only the description is. */
const keptMax = 1_000;

const headBytes = 4 + 2; // checksum of the rest, seeded by the key; length of the description

/** Keeps a damaged run. Inside a transaction; the caller removes or replaces the run itself. */
export const setAside = ({ damaged }: ReportTables, key: Buffer, value: Uint8Array, what: SetAside): void => {
  if (damaged === undefined) return;
  const { entryCount } = damaged.getStats() as { entryCount: number }; // lmdb types it as {}
  const known = damaged.get(key);
  // A run that lost reports before is rewritten under the same key: what it lost then stays lost.
  const lost = [...((known && lostIn(key, known)) ?? []), ...what.lost];
  damaged.put(key, encodeSetAside(key, { ...what, lost }, entryCount < keptMax ? value : Buffer.alloc(0)));
};

/** Windows that a description has; the last one covers all that follow it. */
const windowsMax = 128;

const boundWindows = (lost: readonly Window[]): readonly Window[] =>
  lost.length <= windowsMax ? lost : [...lost.slice(0, windowsMax - 1), hullOf(lost.slice(windowsMax - 1))];

/** The window from the first beginning to the last end of some. */
export const hullOf = (windows: readonly Window[]): Window => ({
  validFromMs: Math.min(...windows.map(({ validFromMs }) => validFromMs)),
  observationsMs: Math.max(...windows.map(({ observationsMs }) => observationsMs)),
});

/** The record of a run that was set aside. */
export const encodeSetAside = (key: Buffer, what: SetAside, value: Uint8Array = Buffer.alloc(0)): Buffer => {
  const text = Buffer.from(JSON.stringify({ ...what, lost: boundWindows(what.lost) }));
  const row = Buffer.concat([Buffer.alloc(headBytes), text, value]);
  row.writeUInt16BE(text.length, 4);
  row.writeUInt32BE(crc32(row.subarray(4), crc32(key)), 0);
  return row;
};

/** The description of a run that was set aside, and its bytes. */
export const decodeSetAside = (key: Buffer, row: Buffer): SetAside & { readonly value: Buffer } => {
  if (row.length < headBytes || crc32(row.subarray(4), crc32(key)) !== row.readUInt32BE(0))
    throw new CorruptRecordError('the record of a run that was set aside does not match its checksum');
  const end = headBytes + row.readUInt16BE(4);
  return { ...parseDescription(row.toString('utf8', headBytes, end)), value: row.subarray(end) };
};

const parseDescription = (text: string): SetAside => {
  try {
    return JSON.parse(text) as SetAside; // written by setAside, so says the checksum
  } catch {
    throw new CorruptRecordError('the record of a run that was set aside is not JSON');
  }
};

/** The windows that a record names; undefined where it is damaged. */
export const lostIn = (key: Buffer, row: Buffer): readonly Window[] | undefined => {
  try {
    return decodeSetAside(key, row).lost;
  } catch (error) {
    if (error instanceof CorruptRecordError) return undefined;
    throw error;
  }
};

/** Was something set aside that may have held at a moment? */
export const isLost = ({ damaged }: ReportTables, stream: number, ms: number): boolean => {
  if (damaged === undefined) return false;
  for (const { key, value } of damaged.getRange(keysFrom(stream, 0))) {
    const lost = lostIn(key, value) ?? [];
    if (lost.some(({ validFromMs, observationsMs }) => validFromMs < ms + 1_000 && ms <= observationsMs)) return true;
  }
  return false;
};

/** Every run that was set aside and that no repair has seen to, as damage. */
export const listSetAside = (tables: ReportTables): readonly Damage[] =>
  tables.damaged === undefined
    ? []
    : [...tables.damaged.getRange()].flatMap(({ key, value }): readonly Damage[] => {
        const name = key.toString('hex');
        try {
          const { table, reason, file } = decodeSetAside(key, value);
          return file === undefined ? [{ table, key: name, reason: `${reason}; it was set aside` }] : [];
        } catch (error) {
          if (!(error instanceof CorruptRecordError)) throw error;
          return [{ table: 'damaged', key: name, reason: error.message }];
        }
      });
