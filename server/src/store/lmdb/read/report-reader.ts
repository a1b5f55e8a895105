// Reads reports from LMDB: synchronous, on one snapshot per call, so that a run that closes meanwhile is seen in one place. Used by every process, and by
// the writer in its transactions. Corrupt reports are noted and treated as missing (D120).
import type { FeedId } from '@sealpost/protocol';
import { createLastUsed, createValuesByObject } from '../../../runtime/kept-values.ts';
import type { AtOnceOrLater, InSlices } from '../../../runtime/reading.ts';
import type { CandleRange, CandleSlice } from '../../candle-rollup.ts';
import { renderReport, secondOf } from '../../format/rendered-report.ts';
import type {
  Appended,
  AppendedFilter,
  LatestReport,
  Neighbours,
  RenderedReport,
  StoredReport,
  Window,
} from '../../store.ts';
import { readCandles } from '../candles.ts';
import { lastPosition } from '../report-tables.ts';
import { readAppended } from './appended-reports.ts';
import { findAt, findNeighbours, findQuickly, readFrom } from './found-reports.ts';
import { createLatestReader, createNewestReader } from './latest.ts';
import { createPageRenderer } from './rendered-runs.ts';
import { noteRun, type ReportSource, runsFrom } from './runs.ts';
import { createSeenReports, type SeenReports, stillHolds } from './seen-reports.ts';
import { isLost } from './set-aside.ts';

/**
 * Makes a reader. `renew` begins a new snapshot; inside a write transaction it does nothing. `writes` is how often the store was written,
 * for the process that alone writes it; others are never told.
 */
export const createReportReader = (
  source: ReportSource,
  renew: () => void,
  writes: () => number | undefined = () => undefined,
) => {
  const { tables, damage, directory } = source;
  const streamOf = directory.numberOf;
  const onSnapshot = <T>(feedId: FeedId, missing: T, read: (stream: number) => T): T => {
    renew();
    const stream = streamOf(feedId);
    return stream === undefined ? missing : read(stream);
  };
  const latestOf = createLatestReader(source);
  const newestMs = createNewestReader(source);
  /** The newest report where a second is after it and nothing is damaged behind it: no search is needed. */
  const newestBefore = (feedId: FeedId, stream: number, seconds: number): Window | undefined => {
    const { report, isLast } = latestOf(feedId, stream);
    if (report === undefined || !isLast || secondOf(report.observationsMs) >= seconds) return undefined;
    const { validFromMs, observationsMs } = report;
    return { validFromMs, observationsMs };
  };
  const at = (feedId: FeedId, stream: number, seconds: number): StoredReport | undefined =>
    findQuickly(source, feedId, stream, seconds) ??
    (newestBefore(feedId, stream, seconds) === undefined ? findAt(source, feedId, stream, seconds) : undefined);
  const look = createSeenReports(tables, renew, writes);
  const lately = new Map<FeedId, { readonly seen: SeenReports; readonly report: LatestReport | undefined }>();
  return {
    streamOf,
    latest: (feedId: FeedId): LatestReport | undefined => {
      const seen = look();
      const known = lately.get(feedId);
      if (known?.seen === seen) return known.report;
      const report = onSnapshot<LatestReport | undefined>(
        feedId,
        undefined,
        (stream) => latestOf(feedId, stream).report,
      );
      lately.set(feedId, { seen, report });
      return report;
    },
    newestMs: (feedId: FeedId): number | undefined => onSnapshot(feedId, undefined, newestMs),
    at: (feedId: FeedId, seconds: number): StoredReport | undefined =>
      onSnapshot(feedId, undefined, (stream) => at(feedId, stream, seconds)),
    neighbours: (feedId: FeedId, seconds: number): Neighbours =>
      onSnapshot<Neighbours>(feedId, { previous: undefined, next: undefined }, (stream) => {
        const previous = newestBefore(feedId, stream, seconds);
        if (previous === undefined) return findNeighbours(source, stream, seconds);
        const damaged = isLost(tables, stream, seconds * 1_000);
        return { previous, next: undefined, ...(damaged && { damaged }) };
      }),
    from: (feedId: FeedId, fromMs: number, limit: number): readonly StoredReport[] =>
      onSnapshot<readonly StoredReport[]>(feedId, [], (stream) => readFrom(source, feedId, stream, fromMs, limit)),
    windows: (feedId: FeedId, fromSeconds: number, toSeconds: number, limit: number): readonly Window[] =>
      onSnapshot<readonly Window[]>(feedId, [], (stream) => {
        const windows: Window[] = [];
        const endMs = (toSeconds + 1) * 1_000;
        let fromMs = fromSeconds * 1_000;
        for (const run of runsFrom(source.tables, stream, fromMs)) {
          noteRun(source, stream, run);
          const { block } = run;
          for (let i = block?.firstAtOrAfter(fromMs) ?? 0; block !== undefined && i < block.count; i++) {
            const window = block.window(i);
            if (windows.length === limit || window.observationsMs >= endMs) return windows;
            windows.push(window);
            fromMs = window.observationsMs + 1; // none twice, whatever is stored twice
          }
        }
        return windows;
      }),
    candles: (feedId: FeedId, range: CandleRange, isOver: () => boolean = () => false): CandleSlice =>
      onSnapshot<CandleSlice>(feedId, { candles: [] }, (stream) => readCandles(tables, stream, range, isOver, damage)),
    renderedAt: createMomentRenderer(source, at, look),
    renderedPage: createPageRenderer(source, newestMs, renew, look),
    position: (): number => {
      renew();
      return lastPosition(tables, damage);
    },
    appendedAfter: (position: number, limit: number, filter?: AppendedFilter): Appended => {
      renew();
      return readAppended(source, position, limit, filter);
    },
  };
};

/** Rendered answers to `at` that are kept, twice as many at most: some 7 MB. */
const momentsKept = 2_048;
/** Reports in the lists of these that are kept. Callers keep as many bytes again of what they made of them. */
const listedKept = 4_096;

/** Streams that are read at once: one takes 40 µs, or 100 where it has no report then. */
const renderedAtOnce = 32;

/** Memory of its own: Node's shared pieces, cut for all that is short, would be kept whole for the part that stays. */
const toKeptBytes = (ascii: string): Buffer => {
  const bytes = Buffer.allocUnsafeSlow(ascii.length);
  bytes.write(ascii, 'latin1');
  return bytes;
};

/** What holds of some streams at a second. */
type Moment<T> = { readonly found: T; readonly seen: SeenReports; readonly isSettled: boolean };
type Found = RenderedReport | undefined;

/**
 * Renders what holds at a second; `look` is at the stored reports. Many ask for the same one, so each is rendered once until a write may have changed it, and the same list of
 * feed ids gets the same list of reports.
 */
const createMomentRenderer = (
  source: ReportSource,
  at: (feedId: FeedId, stream: number, seconds: number) => StoredReport | undefined,
  look: () => SeenReports,
) => {
  const moments = createLastUsed<number, Moment<Found>>(momentsKept);
  type List = Moment<readonly Found[]> & { readonly seconds: number };
  const lists = createValuesByObject<readonly FeedId[], List>(listedKept);
  const renderOne = (feedId: FeedId, seconds: number, seen: SeenReports): Moment<Found> => {
    const stream = source.directory.numberOf(feedId);
    if (stream === undefined) return { found: undefined, seen, isSettled: false };
    const key = stream * 2 ** 32 + seconds;
    const known = moments.get(key);
    if (known && stillHolds(known.seen, known.isSettled, seen)) return known;
    const report = at(feedId, stream, seconds);
    const found = report && { observationsMs: report.observationsMs, json: toKeptBytes(renderReport(report)) };
    // What begins later in this second may have another one before it some day.
    const moment = { found, seen, isSettled: report !== undefined && report.validFromMs <= seconds * 1_000 };
    moments.keep(key, moment);
    return moment;
  };
  /** `seen` is of before the first was rendered. */
  const keepList = (
    feedIds: readonly FeedId[],
    seconds: number,
    seen: SeenReports,
    each: readonly Moment<Found>[],
  ): readonly Found[] => {
    const found = each.map((moment) => moment.found);
    const isSettled = each.every((moment) => moment.isSettled);
    lists.put(feedIds, { seconds, found, seen, isSettled }, feedIds.length);
    return found;
  };
  const renderInSlices = (
    feedIds: readonly FeedId[],
    seconds: number,
    begun: SeenReports,
    inSlices: InSlices,
  ): Promise<readonly Found[]> =>
    inSlices(async (slice) => {
      const each: Moment<Found>[] = [];
      while (each.length < feedIds.length)
        await slice(async (isOver) => {
          const seen = look();
          for (const feedId of feedIds.slice(each.length)) {
            each.push(renderOne(feedId, seconds, seen));
            if (isOver()) break;
          }
        });
      return keepList(feedIds, seconds, begun, each);
    });
  return (feedIds: readonly FeedId[], seconds: number, inSlices?: InSlices): AtOnceOrLater<readonly Found[]> => {
    const seen = look();
    const known = lists.get(feedIds);
    if (known?.seconds === seconds && stillHolds(known.seen, known.isSettled, seen)) return known.found;
    if (inSlices !== undefined && feedIds.length > renderedAtOnce)
      return renderInSlices(feedIds, seconds, seen, inSlices);
    const each = feedIds.map((feedId) => renderOne(feedId, seconds, seen));
    if (feedIds.length === 1) return each.map(({ found }) => found); // what it is of is kept by itself
    return keepList(feedIds, seconds, seen, each);
  };
};
