// What a process keeps in memory of a database: the newest report of each stream, and the last ones in append order.
import type { FeedId } from '@sealpost/protocol';
import { renderLatest } from '../format/rendered-report.ts';
import { keepReport } from '../format/report-contents.ts';
import { searchFirst } from '../format/report-run.ts';
import type { Appended, LatestReport, StoredReport } from '../store.ts';

/** Reports kept in memory for those who follow, and a quarter more between two cuts: up to 14 MB with reports of 1 KB. */
export const recentMax = 8_192;
/** Batches whose marks are kept, so that a server that is behind is known to be behind on the same way. */
const marksMax = 1_024;

/** How far the database was read: a position, and the checksum of the batch that ends there, as far as it is known. */
export type Reached = { readonly position: number; readonly mark: number | undefined };

/** `position` is that of the report or a later one; undefined while it is not known. */
type Newest = { readonly report: StoredReport; position: number | undefined; latest?: LatestReport };

/** The newest report of each stream, rendered when it is asked for the first time. */
export function createNewestReports() {
  const newest = new Map<FeedId, Newest>();
  return {
    get: (feedId: FeedId): LatestReport | undefined => {
      const known = newest.get(feedId);
      if (known === undefined) return undefined;
      known.latest ??= renderLatest(known.report);
      return known.latest;
    },
    offer: (report: StoredReport, position: number | undefined): void => {
      const known = newest.get(report.feedId);
      const knownMs = known?.report.observationsMs ?? -1;
      if (knownMs < report.observationsMs) newest.set(report.feedId, { report: keepReport(report), position });
      else if (known !== undefined && knownMs === report.observationsMs) known.position ??= position;
    },
    /** When the newest one was observed; -1 without any. */
    observedMs: (feedId: FeedId): number => newest.get(feedId)?.report.observationsMs ?? -1,
    /** From which position on a database has the newest one; 0 without any, undefined while it is not known. */
    position: (feedId: FeedId): number | undefined => (newest.has(feedId) ? newest.get(feedId)?.position : 0),
    all: (): ReadonlyMap<FeedId, Newest> => new Map(newest),
    /** Forgets these, unless a newer one came meanwhile. */
    forget: (entries: readonly (readonly [FeedId, Newest])[]): void => {
      for (const [feedId, entry] of entries) if (newest.get(feedId) === entry) newest.delete(feedId);
    },
  };
}

type Recent = { readonly position: number; readonly report: StoredReport };

/** The last reports in the order of appending, without holes after `from`. */
export function createRecent(start: Reached) {
  let entries: Recent[] = [];
  let from = start.position;
  let reached = start;
  const marks = new Map<number, number>(); // of the last batches, by their positions
  const note = ({ position, mark }: Reached): void => {
    if (mark !== undefined) marks.set(position, mark);
    const [oldest] = marks.keys();
    if (oldest !== undefined && marks.size > marksMax) marks.delete(oldest);
  };
  note(start);
  return {
    reached: (): Reached => reached,
    /** Was the batch that ends at a position this one? False also where that is no longer known. */
    recognizes: ({ position, mark }: Reached): boolean => mark !== undefined && marks.get(position) === mark,
    add: (fresh: readonly Recent[], to: Reached): void => {
      for (const { position, report } of fresh) entries.push({ position, report: keepReport(report) });
      if (to.position > reached.position) {
        reached = { position: to.position, mark: to.mark };
        note(reached);
      }
      // Cut now and then, not at every report.
      if (entries.length <= 1.25 * recentMax) return;
      const gone = entries.length - recentMax;
      from = (entries[gone - 1] as Recent).position; // there are more than that
      entries = entries.slice(gone);
    },
    skipTo: (to: Reached): void => {
      entries = [];
      from = to.position;
      reached = to;
      marks.clear();
      note(to);
    },
    /** Undefined when it is not here, or nothing is: then the database may know more. */
    after: (position: number, limit: number, feedIds?: ReadonlySet<FeedId>): Appended | undefined => {
      if (position < from || position >= reached.position) return undefined;
      const found = firstAfter(entries, position);
      if (found === entries.length) return undefined;
      const { wanted, end } = chooseEntries(entries, found, limit, feedIds);
      return {
        reports: wanted.map(({ report }) => report),
        positions: wanted.map((entry) => entry.position),
        position: end === entries.length ? reached.position : (entries[end - 1] as Recent).position, // at least one was read
        missed: false,
      };
    },
  };
}

/** The entries of the streams that are wanted, from a place on, and where looking ended. */
const chooseEntries = (
  entries: readonly Recent[],
  from: number,
  limit: number,
  feedIds: ReadonlySet<FeedId> | undefined,
) => {
  if (feedIds === undefined)
    return { wanted: entries.slice(from, from + limit), end: Math.min(entries.length, from + limit) };
  const wanted: Recent[] = [];
  let end = from;
  while (end < entries.length && wanted.length < limit) {
    const entry = entries[end++] as Recent; // below the length
    if (feedIds.has(entry.report.feedId)) wanted.push(entry);
  }
  return { wanted, end };
};

/** Where the entries after a position begin. */
const firstAfter = (entries: readonly Recent[], position: number): number =>
  searchFirst(entries.length, (i) => (entries[i] as Recent).position > position); // inside the list
