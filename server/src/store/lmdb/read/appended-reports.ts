// Reports in the order in which they were appended. Those of a slice that lie in the same run are read together: opening a run takes longer than reading
// one of its reports.
import type { CopyBytes } from '../../../runtime/reading.ts';
import type { Appended, AppendedFilter, StoredReport } from '../../store.ts';
import {
  lastPosition,
  observationsOfKey,
  openAppended,
  positionKey,
  positionOfKey,
  streamOfKey,
} from '../report-tables.ts';
import { findFirst, quickFirst, quickRun } from './found-reports.ts';
import { type FoundReport, foundIn, type ReportSource, readFound } from './runs.ts';

/** Entries of other streams that are skipped between two checks of the clock. */
const passedOverMax = 32;

/** Whether an entry is wanted, by its stream's number, and whether to stop after it. */
const createFilter = ({ directory }: ReportSource, filter: AppendedFilter | undefined) => {
  if (filter === undefined) return { isWanted: () => true, isOver: () => false };
  const streams = new Set([...filter.feedIds].map(directory.numberOf));
  let passed = 0;
  return {
    isWanted: (entry: Buffer): boolean => streams.has(streamOfKey(entry)),
    isOver: (wasRead: boolean): boolean => {
      passed = wasRead ? passedOverMax : passed + 1;
      if (passed < passedOverMax) return false;
      passed = 0;
      return filter.isOver();
    },
  };
};

export const readAppended = (
  source: ReportSource,
  position: number,
  limit: number,
  filter: AppendedFilter | undefined,
): Appended => {
  const { appended } = source.tables;
  const { isWanted, isOver } = createFilter(source, filter);
  const reports: StoredReport[] = [];
  const positions: number[] = [];
  let entries: Entry[] = [];
  let reached = position;
  let expected: number | undefined;
  let missed = false;
  const readCollected = (): void => {
    const read = readEntries(source, entries, filter?.copy);
    reports.push(...read.reports);
    positions.push(...read.positions);
    entries = [];
  };
  const slice = (): Appended => {
    readCollected();
    return { reports, positions, position: reached, missed };
  };
  const before = { start: positionKey(position + 1), end: positionKey(0), reverse: true, limit: 1 };
  const [containing] = [...appended.getKeys(before)];
  for (const { key, value } of appended.getRange({ start: containing ?? positionKey(0) })) {
    const first = positionOfKey(key);
    const batch = source.damage.contain({ table: 'appended', key: `${first}` }, () => openAppended(key, value));
    // The content of a damaged batch is unknown: a reader that is not past it has missed something.
    if (batch === undefined) continue;
    if (first > (expected ?? position + 1) && first > position + 1) missed = true;
    expected = first + batch.count;
    for (let i = Math.max(0, position + 1 - first); i < batch.count; i++) {
      if (reports.length + entries.length === limit) {
        readCollected();
        if (reports.length === limit || filter !== undefined) return slice();
      }
      reached = first + i;
      const entry = batch.at(i);
      const wanted = isWanted(entry);
      if (wanted) entries.push({ position: reached, key: entry });
      if (isOver(wanted)) return slice();
    }
  }
  const last = lastPosition(source.tables, source.damage);
  if (reached < last) [reached, missed] = [last, true];
  return slice();
};

type Entry = { readonly position: number; readonly key: Buffer };

/** The reports of entries, in their order, without those that cannot be read. */
const readEntries = (
  source: ReportSource,
  entries: readonly Entry[],
  copy: CopyBytes | undefined,
): Pick<Appended, 'reports' | 'positions'> => {
  const found = new Map<Entry, StoredReport>();
  const byKey = [...entries].sort((a, b) => Buffer.compare(a.key, b.key)); // by stream and time, as they are stored
  for (let i = 0; i < byKey.length; ) i += readOfRun(source, byKey, i, found, copy);
  const readable = entries.filter((entry) => found.has(entry));
  return {
    reports: readable.map((entry) => found.get(entry) as StoredReport), // it has them
    positions: readable.map((entry) => entry.position),
  };
};

/** Reads an entry, and those after it that are in the same run; returns how many were looked at. */
const readOfRun = (
  source: ReportSource,
  entries: readonly Entry[],
  first: number,
  found: Map<Entry, StoredReport>,
  copy: CopyBytes | undefined,
): number => {
  const entry = entries[first] as Entry; // within bounds
  const stream = streamOfKey(entry.key);
  const feedId = source.directory.feedIdOf(stream);
  if (feedId === undefined) return 1;
  const run = quickRun(source.tables, stream, observationsOfKey(entry.key));
  let i = first;
  for (; run !== undefined && i < entries.length; i++) {
    const { key } = entries[i] as Entry; // within bounds
    const at = streamOfKey(key) === stream ? run.firstAtOrAfter(observationsOfKey(key)) : run.count;
    if (at === run.count || run.window(at).observationsMs !== observationsOfKey(key)) break;
    const report = readFound(source, stream, foundIn(run, at, copy));
    if (report === undefined) return i + 1 - first; // what notes the damage may have read over the run
    found.set(entries[i] as Entry, { feedId, ...report }); // within bounds
  }
  if (i > first) return i - first;
  const report = readExact(source, entry.key);
  if (report !== undefined) found.set(entry, report);
  return 1;
};

// Undefined when retention has removed it since, or it is damaged.
const readExact = (source: ReportSource, key: Buffer): StoredReport | undefined => {
  const stream = streamOfKey(key);
  const observationsMs = observationsOfKey(key);
  const feedId = source.directory.feedIdOf(stream);
  if (feedId === undefined) return undefined;
  const isIt = (one: FoundReport | undefined): one is FoundReport => one?.window.observationsMs === observationsMs;
  const quick = quickFirst(source.tables, stream, observationsMs);
  const found = isIt(quick) ? quick : findFirst(source, stream, observationsMs);
  const report = isIt(found) ? readFound(source, stream, found) : undefined;
  return report && { feedId, ...report };
};
