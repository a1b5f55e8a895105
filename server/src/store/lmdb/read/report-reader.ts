// Reads reports from LMDB: synchronous, on one snapshot per call, into memory that belongs to the garbage collector. Used by every process. Corrupt reports are
// noted and missing (D120).
import type { FeedId } from '@sealpost/protocol';
import { createLastUsed } from '../../../runtime/kept-values.ts';
import type { CandleRange } from '../../candle-rollup.ts';
import type { DamageLog } from '../../damage.ts';
import {
  createRendering,
  renderLatest,
  renderReports,
  secondOf,
  wholeSecondsEnd,
} from '../../format/rendered-report.ts';
import type { StoredRun } from '../../format/report-run.ts';
import type {
  Appended,
  LatestReport,
  Neighbours,
  RenderedPage,
  RenderedReport,
  ReportPage,
  StoredReport,
  Window,
} from '../../store.ts';
import { type CandleSlice, readCandleSlice } from '../candles.ts';
import { createDirectory } from '../directory.ts';
import {
  lastPosition,
  observationsOfKey,
  openAppended,
  positionKey,
  positionOfKey,
  type ReportTables,
  streamOfKey,
  writtenIn,
} from '../report-tables.ts';
import {
  type FoundReports,
  firstRun,
  lastKey,
  lastWindowBefore,
  momentMax,
  type ReportSource,
  readFrom,
  reportIn,
  runsBefore,
  runsFrom,
  viewIn,
  visitFrom,
} from './runs.ts';

/**
 * Makes a reader. `renew` begins a new snapshot. `writes` is how often the store was written, for the process that alone writes it: without a write since the
 * last snapshot, what was made from that one still holds.
 */
export function createReportReader(
  tables: ReportTables,
  damage: DamageLog,
  renew: () => void,
  writes: () => number | undefined,
) {
  const directory = createDirectory(tables, damage);
  // Each run is used up before the next one is read.
  const source: ReportSource = { tables, directory, damage, unreadable: new Map(), runBytes: tables.runs.view };
  let written: Written = { changes: -1, rewrites: Number.NaN };
  let writesSeen: number | undefined;
  const look = (): Written => {
    const count = writes();
    if (count !== undefined && count === writesSeen) return written;
    renew();
    written = writtenIn(tables);
    writesSeen = count;
    return written;
  };
  const onSnapshot = <T>(feedId: FeedId, missing: T, read: (stream: number, changes: number) => T): T => {
    const { changes } = look();
    const stream = directory.numberOf(feedId);
    return stream === undefined ? missing : read(stream, changes);
  };
  const latest = createNewest(source, (feedId, stream) => findLatest(source, feedId, stream));
  const newest = createNewest(source, (_, stream) => lastWindowBefore(source, stream, momentMax + 1));
  const moments = createKept<number, RenderedReport | undefined>(momentsKept, (report) => report !== undefined);
  const pages = createKept<string, RenderedPage>(pagesKept, ({ more, damaged }) => more && !damaged);
  return {
    latest: (feedId: FeedId): LatestReport | undefined =>
      onSnapshot<LatestReport | undefined>(feedId, undefined, (stream, changes) => latest(feedId, stream, changes)),
    newestMs: (feedId: FeedId): number | undefined =>
      onSnapshot<number | undefined>(
        feedId,
        undefined,
        (stream, changes) => newest(feedId, stream, changes)?.observationsMs,
      ),
    at: (feedIds: readonly FeedId[], seconds: number): readonly (StoredReport | undefined)[] => {
      look();
      return feedIds.map((feedId) => findAt(source, feedId, seconds));
    },
    renderedAt: (feedIds: readonly FeedId[], seconds: number): readonly (RenderedReport | undefined)[] => {
      const seen = look();
      return feedIds.map((feedId) => {
        const stream = directory.numberOf(feedId);
        if (stream === undefined) return undefined;
        return moments(stream * 2 ** 32 + seconds, seen, () => renderAt(source, feedId, seconds));
      });
    },
    /** A page of few enough reports to be read at once. */
    renderedPage: (feedId: FeedId, fromSeconds: number, limit: number): RenderedPage => {
      return pages(`${feedId} ${fromSeconds} ${limit}`, look(), () => {
        const stream = directory.numberOf(feedId);
        return stream === undefined ? none : renderFrom(source, feedId, stream, fromSeconds * 1_000, limit);
      });
    },
    neighbours: (feedId: FeedId, seconds: number): Neighbours =>
      onSnapshot<Neighbours>(feedId, { previous: undefined, next: undefined }, (stream) =>
        findNeighbours(source, feedId, stream, seconds),
      ),
    from: (feedId: FeedId, fromMs: number, limit: number): FoundReports =>
      onSnapshot<FoundReports>(feedId, { reports: [], isDamaged: false }, (stream) =>
        readFrom(source, feedId, stream, fromMs, limit),
      ),
    windows: (feedId: FeedId, fromSeconds: number, toSeconds: number, limit: number): readonly Window[] =>
      onSnapshot<readonly Window[]>(feedId, [], (stream) => {
        const windows: Window[] = [];
        const endMs = (toSeconds + 1) * 1_000;
        let nextMs = fromSeconds * 1_000; // none twice, whatever is stored twice
        for (const { run } of runsFrom(source, stream, nextMs)) {
          for (let i = run?.firstAtOrAfter(nextMs) ?? 0; run !== undefined && i < run.count; i++) {
            const window = run.window(i);
            if (windows.length === limit || window.observationsMs >= endMs) return windows;
            windows.push(window);
            nextMs = window.observationsMs + 1;
          }
        }
        return windows;
      }),
    candles: (feedId: FeedId, range: CandleRange): CandleSlice =>
      onSnapshot<CandleSlice>(feedId, { candles: [] }, (stream) => readCandleSlice(tables, stream, range, damage)),
    position: (): number => {
      writesSeen = undefined; // polled, so what another process wrote after taking over is seen soon
      look();
      return lastPosition(tables, damage);
    },
    appendedAfter: (position: number, limit: number, feedIds?: ReadonlySet<FeedId>): Appended => {
      renew();
      return readAppended(source, position, limit, feedIds);
    },
  };
}

/** Rendered reports and pages that are kept, twice as many at most: some 4 and 3 MB. */
const momentsKept = 1_024;
const pagesKept = 8;

type Written = ReturnType<typeof writtenIn>;

/** Keeps what many ask for until something is written that may change it; `isSettled` ones are not changed by newer reports of their stream (D282). */
const createKept = <K, T>(count: number, isSettled: (value: T) => boolean) => {
  const kept = createLastUsed<K, { readonly value: T; readonly written: Written }>(count);
  return (key: K, written: Written, make: () => T): T => {
    const known = kept.get(key);
    if (known !== undefined) {
      const { changes, rewrites } = known.written;
      if (changes === written.changes || (rewrites === written.rewrites && isSettled(known.value))) return known.value;
    }
    const value = make();
    kept.keep(key, { value, written });
    return value;
  };
};

const none: RenderedPage = { json: Buffer.alloc(0), lastMs: undefined, more: false };

const renderFrom = (
  source: ReportSource,
  feedId: FeedId,
  stream: number,
  fromMs: number,
  limit: number,
): RenderedPage => {
  const { add, take } = createRendering(limit);
  const moments: number[] = [];
  const isDamaged = visitFrom(source, feedId, stream, fromMs, limit + 1, (report) => {
    if (moments.push(report.observationsMs) <= limit) add(report);
  });
  const more = moments.length > limit;
  const count = more ? wholeSecondsEnd((i) => secondOf(moments[i] as number), limit) : moments.length; // within bounds
  return { json: take(count), lastMs: moments[count - 1], more, ...(isDamaged && { damaged: true }) };
};

const renderAt = (source: ReportSource, feedId: FeedId, seconds: number): RenderedReport | undefined => {
  const report = findAt(source, feedId, seconds, viewIn);
  return report && { observationsMs: report.observationsMs, json: renderReports([report]) };
};

export const renderPage = ({ reports, more, isDamaged }: DamagedPage): RenderedPage => ({
  json: renderReports(reports),
  lastMs: reports.at(-1)?.observationsMs,
  more,
  ...(isDamaged && { damaged: true }),
});

/** What is derived of a stream's newest report. It holds while the key of the stream's last run says that none is newer: that is when it was observed. */
const createNewest = <T extends Window>(
  source: ReportSource,
  find: (feedId: FeedId, stream: number) => T | undefined,
) => {
  const known = new Map<number, { changes: number; readonly found: T | undefined }>();
  return (feedId: FeedId, stream: number, changes: number): T | undefined => {
    const before = known.get(stream);
    if (before?.changes === changes) return before.found;
    const key = before?.found && lastKey(source.tables, stream);
    if (key !== undefined && observationsOfKey(key) === before?.found?.observationsMs) {
      before.changes = changes;
      return before.found;
    }
    const found = find(feedId, stream);
    known.set(stream, { changes, found });
    return found;
  };
};

/** The newest intact report of a stream. */
const findLatest = (source: ReportSource, feedId: FeedId, stream: number): LatestReport | undefined => {
  for (const { run } of runsBefore(source, stream, momentMax + 1)) {
    for (let i = (run?.count ?? 0) - 1; run !== undefined && i >= 0; i--) {
      const report = viewIn(source, feedId, stream, run, i);
      if (report !== undefined) return renderLatest(report);
    }
  }
  return undefined;
};

const findAt = (
  source: ReportSource,
  feedId: FeedId,
  seconds: number,
  read: typeof viewIn = reportIn,
): StoredReport | undefined => {
  const stream = source.directory.numberOf(feedId);
  const { run } = stream === undefined ? { run: undefined } : firstRun(source, stream, seconds * 1_000);
  if (run === undefined || stream === undefined) return undefined;
  const i = run.firstAtOrAfter(seconds * 1_000); // its last report is at or after the moment: that is its key
  return secondOf(run.window(i).validFromMs) <= seconds ? read(source, feedId, stream, run, i) : undefined;
};

const findNeighbours = (source: ReportSource, feedId: FeedId, stream: number, seconds: number): Neighbours => {
  const ms = seconds * 1_000;
  const { run, isDamaged } = firstRun(source, stream, ms);
  const i = run?.firstAtOrAfter(ms) ?? 0;
  const next = run?.window(i);
  // What holds here counts as missing only because it cannot be read.
  const isHere = run !== undefined && next !== undefined && secondOf(next.validFromMs) <= seconds;
  const damaged = isDamaged || (isHere && viewIn(source, feedId, stream, run, i) === undefined);
  const previous = run !== undefined && i > 0 ? run.window(i - 1) : lastWindowBefore(source, stream, ms);
  return damaged ? { previous, next, damaged: true } : { previous, next };
};

/** A page, and whether damaged reports are left out of it. */
export type DamagedPage = ReportPage & { readonly isDamaged: boolean };

/** The page of reports that were read, one more than its limit where others follow. */
export function toPage({ reports, isDamaged }: FoundReports, limit: number): DamagedPage {
  if (reports.length <= limit) return { reports, more: false, isDamaged };
  const secondAt = (i: number): number | undefined => reports[i] && secondOf(reports[i].observationsMs);
  return { reports: reports.slice(0, wholeSecondsEnd(secondAt, limit)), more: true, isDamaged };
}

/** Entries that are looked at for some streams at once: 1 ms. */
const lookedAtMax = 512;

/** Reports in the order in which they were appended. Those of a slice that lie in the same run are read together. */
const readAppended = (
  source: ReportSource,
  position: number,
  limit: number,
  feedIds: ReadonlySet<FeedId> | undefined,
): Appended => {
  const { appended } = source.tables;
  const streams = feedIds && new Set([...feedIds].map(source.directory.numberOf));
  const reports: StoredReport[] = [];
  const positions: number[] = [];
  let entries: Entry[] = [];
  let reached = position;
  let expected: number | undefined;
  let missed = false;
  const readCollected = (): void => {
    const found = readEntries(source, entries);
    for (const entry of entries) {
      const report = found.get(entry);
      if (report === undefined) continue;
      reports.push(report);
      positions.push(entry.position);
    }
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
        if (reports.length === limit || streams !== undefined) return slice();
      }
      if (streams !== undefined && reached >= position + lookedAtMax) return slice();
      reached = first + i;
      const key = batch.at(i);
      if (streams?.has(streamOfKey(key)) ?? true) entries.push({ position: reached, key });
    }
  }
  const last = lastPosition(source.tables, source.damage);
  if (reached < last) [reached, missed] = [last, true];
  return slice();
};

type Entry = { readonly position: number; readonly key: Buffer };

/** The reports of entries, without those that retention has removed since or that are damaged. */
const readEntries = (source: ReportSource, entries: readonly Entry[]): ReadonlyMap<Entry, StoredReport> => {
  const found = new Map<Entry, StoredReport>();
  let held: { readonly stream: number; readonly run: StoredRun } | undefined;
  // By stream and time, as they are stored.
  for (const entry of [...entries].sort((a, b) => Buffer.compare(a.key, b.key))) {
    const [stream, ms] = [streamOfKey(entry.key), observationsOfKey(entry.key)];
    const feedId = source.directory.feedIdOf(stream);
    if (feedId === undefined) continue;
    let i = held?.stream === stream ? held.run.firstAtOrAfter(ms) : undefined;
    if (held === undefined || i === undefined || i === held.run.count) {
      const { run } = firstRun(source, stream, ms);
      held = run && { stream, run };
      i = run?.firstAtOrAfter(ms);
    }
    if (held === undefined || i === undefined || held.run.window(i).observationsMs !== ms) continue;
    const report = reportIn(source, feedId, stream, held.run, i);
    if (report !== undefined) found.set(entry, report);
  }
  return found;
};
