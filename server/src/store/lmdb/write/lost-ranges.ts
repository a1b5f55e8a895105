// Where reports were lost: the roll-ups may still count them, so the minute of a report that comes back is rebuilt from its reports instead of
// added to (D236).
import type { Window } from '../../store.ts';
import { hullOf, lostIn } from '../read/set-aside.ts';
import { observationsOfKey, type ReportTables, streamOfKey } from '../report-tables.ts';

export type LostRanges = {
  readonly add: (stream: number, lost: readonly Window[]) => void;
  /** Were any of a stream lost? */
  readonly isIn: (stream: number) => boolean;
  /** Of the keys of reports, those in a range where some of their stream were lost. */
  readonly among: (keys: readonly Buffer[]) => readonly Buffer[];
};

/** Reads what was set aside, as one range for each run. It is read once: the writer adds what it loses later. */
export const openLostRanges = ({ damaged }: ReportTables): LostRanges => {
  const ranges = new Map<number, Window[]>();
  const add = (stream: number, lost: readonly Window[]): void => {
    const known = ranges.get(stream) ?? [];
    if (lost.length > 0) known.push(hullOf(lost));
    if (known.length > 0) ranges.set(stream, known);
  };
  for (const { key, value } of damaged?.getRange() ?? [])
    if (key.length === keyBytes) add(streamOfKey(key), lostIn(key, value) ?? [everythingTo(key)]);
  const isLost = (key: Buffer): boolean => {
    const ms = observationsOfKey(key);
    const known = ranges.get(streamOfKey(key)) ?? [];
    return known.some(({ validFromMs, observationsMs }) => validFromMs <= ms && ms <= observationsMs);
  };
  return { add, isIn: (stream) => ranges.has(stream), among: (keys) => (ranges.size === 0 ? [] : keys.filter(isLost)) };
};

const keyBytes = 10; // of reportKey

/** Where the description of a run is damaged: it ended at its key at the latest. */
const everythingTo = (key: Buffer): Window => ({ validFromMs: 0, observationsMs: observationsOfKey(key) });
